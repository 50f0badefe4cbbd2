"""Fills the templates in templates/: their environment, filters, and the headers of pages.

What a page shows is in the module of the same name, such as race.py.
"""

import hashlib
import re
from base64 import b64encode
from datetime import datetime
from functools import lru_cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from racedata.colours import colour_in
from racedata.formats import counted
from racedata.service.words import full_name, place_of

CONTENT_TYPE = "text/html; charset=utf-8"

FOLDER = files(__package__) / "templates"
# Every page has both, without the comments of the script.
STYLE, SCRIPT = (
    re.sub("(?m)^//.*\n", "", FOLDER.joinpath(name).read_text(encoding="utf-8"))
    for name in ("style.css", "script.js")
)
# The card is what other sites show beside a link to a page; scripts/picture.py makes it.
ICON, MANIFEST, CARD = (
    FOLDER.joinpath(name).read_bytes() for name in ("icon.svg", "manifest.webmanifest", "card.png")
)


def csp_hash(text: str) -> str:
    """The hash of a style or script, as Content-Security-Policy names it."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Only on HTML pages: no browser runs or follows anything in an answer of another type.
HEADERS = [
    (
        "content-security-policy",
        f"default-src 'none'; style-src {csp_hash(STYLE)}; script-src {csp_hash(SCRIPT)}; "
        "img-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'",
    ),
    # Other sites must not learn the address of a service in a private network.
    ("referrer-policy", "no-referrer"),
]


@lru_cache(4096)
def in_words(utc: str) -> str:
    """A date, or a date and time: `Sun 22 Oct 2023, 19:00`."""
    at = datetime.fromisoformat(utc)
    return f"{at:%a} {at.day} {at:%b %Y}" + (f", {at:%H:%M}" if "T" in utc else "")


TEMPLATES = Environment(
    loader=PackageLoader(__package__),
    autoescape=True,
    undefined=StrictUndefined,  # a name that a page does not have is an error
    auto_reload=False,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.globals.update(style=STYLE, script=SCRIPT)
TEMPLATES.filters.update(
    colour=colour_in,
    counted=counted,
    full_name=full_name,
    in_words=in_words,
    number="{:,}".format,
    place=place_of,
)


def render(name: str, path: str, /, **facts: object) -> str:
    """The page at `path`: the template of this name, filled with facts. One that is called `root`
    or `path` would be an error.
    """
    # relative, because a proxy may serve all pages below a path of its own
    root = "../" * (path.count("/") - 1) or "./"
    return TEMPLATES.get_template(name).render(**facts, root=root, path=path)
