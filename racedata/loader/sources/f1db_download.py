"""Downloads a release of f1db, and checks its SHA-256, which is published beside it. f1db.py reads it."""

import io
import re
from collections.abc import Collection
from contextlib import AbstractContextManager

from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import Dump, downloaded
from racedata.loader.files.download import HTTP, download

FILE = "f1db-csv.zip"
CHECKSUMS = "checksums_sha256.txt"
CHECKSUMS_BYTES, CHECKSUMS_SECONDS = 100_000, 30


def is_release(address: str) -> bool:
    """Whether this is the address of a release, or of a copy of one."""
    return bool(HTTP.match(address)) and address.endswith(f"/{FILE}")


def published_release(url: str, recognised_by: Collection[str], progress: Progress) -> AbstractContextManager[Dump]:
    """The dump in the release at `url`. Raises LoadError."""
    expected = (release_checksum(url, progress), f"{CHECKSUMS} beside it")
    return downloaded(url, expected, recognised_by, progress)


def release_checksum(url: str, progress: Progress) -> str:
    """The SHA-256 of the release at `url`, by the file beside it: whether there is a new release, in one request."""
    address = url.removesuffix(FILE) + CHECKSUMS
    content = io.BytesIO()
    download(address, content, progress, CHECKSUMS_SECONDS, CHECKSUMS_BYTES, expected="the checksums of a release")
    found = re.search(
        rf"^([0-9A-Fa-f]{{64}})[ *]+(?:\S*/)?{FILE}\s*$", content.getvalue().decode("latin-1"), re.MULTILINE
    )
    if not found:
        raise LoadError(f"{address}: no line with the SHA-256 of {FILE}; expected one")
    return found[1].lower()
