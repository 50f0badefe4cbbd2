"""Downloads the dump that Jolpica publishes: finds it in an index, and checks its SHA-256.
jolpica.py reads it.
"""

import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from racedata.formats import HTTP
from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import Dump
from racedata.loader.http import Request, Secret, WrongStatus
from racedata.loader.sources import jolpica
from racedata.loader.sources.dump import PUBLISHED, DumpSource
from racedata.loader.sources.pace import Pace
from racedata.settings import LoaderSettings

INDEX = "https://api.jolpi.ca/data/dumps/download/"
INDEX_BYTES = 1_000_000


class JolpicaDump(DumpSource):
    """The dump in an index: Jolpica's own, or another one, named by `jolpica:` and its URL."""

    licence = jolpica.LICENCE

    def __init__(self, address: str, pace: Pace) -> None:
        super().__init__(address, pace)
        self.name = PUBLISHED["jolpica"]

    @classmethod
    def accepts(cls, address: str) -> bool:
        return address.partition(":")[0] == PUBLISHED["jolpica"]

    @contextmanager
    def dump(self, progress: Progress) -> Iterator[Dump]:
        """With a token the latest dump, else one 14 days old.

        Raises LoadError, in which the token does not appear.
        """
        token = LoaderSettings.read(os.environ).jolpica_token
        index = self.address.partition(":")[2] or INDEX
        secret = Secret(f"Token {token}", index) if token else None
        content = io.BytesIO()
        try:
            request = Request(index, "Jolpica's index", size=INDEX_BYTES, secret=secret)
            self.pace.fetch(request, content, progress)
            name = "latest" if token else "delayed"
            url, checksum = dump_in_index(content.getvalue(), name, index)
            with self.downloaded(url, progress, (checksum, index), secret) as dump:
                yield dump._replace(address=self.address)  # the URL is of this release only
        except LoadError as error:
            what = str(error)
            if isinstance(error, WrongStatus) and error.had_secret and error.status in (401, 403):
                what = f"{error.place}: does not accept JOLPICA_TOKEN ({error.status})"
            error.args = (what.replace(token, "…") if token else what,)
            raise


def dump_in_index(content: bytes, name: str, index: str) -> tuple[str, str]:
    """The URL and SHA-256 of the CSV dump `name` (`latest` or `delayed`) in the JSON of an index.

    Jolpica's serializers name the fields: `{"latest_dumps": {"csv": {"download_url", "file_hash",
    …}}, "delayed_dumps": …}`. An index may lack `delayed_dumps`.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise LoadError(f"{index}: not JSON; expected Jolpica's index") from None
    entry = document
    for key in (f"{name}_dumps", "csv"):
        entry = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(entry, dict):
        raise LoadError(f"{index}: no {name}_dumps.csv; expected the {name} dump in CSV files")
    url, checksum = entry.get("download_url"), entry.get("file_hash")
    scheme = "https:" if index.lower().startswith("https:") else "http"
    if not (isinstance(url, str) and HTTP.match(url) and url.lower().startswith(scheme)):
        what = f"{name}_dumps.csv.download_url is {str(url)[:80]!r}"
        raise LoadError(f"{index}: {what}; expected an {scheme.rstrip(':')} address")
    if not (isinstance(checksum, str) and re.fullmatch("[0-9A-Fa-f]{64}", checksum)):
        what = f"{name}_dumps.csv.file_hash is {str(checksum)[:80]!r}"
        raise LoadError(f"{index}: {what}; expected a SHA-256 in hexadecimal")
    return url, checksum.lower()
