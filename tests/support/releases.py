"""Releases as GitHub publishes them: two redirects, and files on another host.

`…/releases/latest/download/FILE` is a 302 to `…/releases/download/TAG/FILE`, and that a 302 to a
signed address at release-assets.githubusercontent.com, which soon expires and in which the file's
name is only a parameter. The form of the addresses, and the empty bodies, are those that `curl -iL`
shows in github.com/AikidoSec/safe-chain/issues/257 (December 2025).
"""

import hashlib
import io
import urllib.parse
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from itertools import count
from pathlib import Path

from support.apis import Answer, Server, running, served

LATEST, TAGGED = "/releases/latest/download/", "/releases/download/v2025.21.0/"
ASSETS = "/github-production-release-asset/1018072308/"
# Azure's storage, where GitHub has the files, describes errors in XML.
EXPIRED: Answer = (
    403,
    {"Content-Type": "application/xml"},
    b'<?xml version="1.0" encoding="utf-8"?><Error><Code>AuthenticationFailed</Code></Error>',
)


class Release(Server):
    """The host that has the files. `answer` makes them, by name; `paths` has the requested names.

    `url` is the address at the other host, which redirects here.
    """

    def __init__(self, answer: Callable[[str], Answer]) -> None:
        super().__init__(answer)
        self.storage = ""
        self.signed: dict[str, str] = {}  # the names of the files, by address
        self.numbers = count()

    def sign(self, file: str) -> str:
        """A new address of a file."""
        query = {
            "sp": "r",
            "se": "2025-12-18T11:40:34Z",
            "rscd": f"attachment; filename={file}",
            "rsct": "application/octet-stream",
            "sig": hashlib.sha256(f"{next(self.numbers)}".encode()).hexdigest(),
        }
        path = f"{ASSETS}f5d45de9-f1d6-4e76-9aec-c61fb3a02cb9?{urllib.parse.urlencode(query)}"
        self.signed[path] = file
        return f"{self.storage}{path}"

    def redirects(self, path: str) -> Answer:
        """What GitHub answers."""
        for place, target in (
            (LATEST, lambda file: f"{self.url.removesuffix(LATEST.rstrip('/'))}{TAGGED}{file}"),
            (TAGGED, self.sign),
        ):
            if place in path:
                file = path.partition(place)[2]
                headers = {"Content-Type": "text/html; charset=utf-8", "Location": target(file)}
                return 302, headers, b""
        return 404, {"Content-Type": "text/plain; charset=utf-8"}, b"Not Found"

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        # An address expires after five minutes; here, where no test waits so long, after one use.
        handler.path = self.signed.pop(handler.path, "")
        super().handle(handler)


@contextmanager
def released(answer: Callable[[str], Answer]) -> Iterator[Release]:
    """A release on two hosts. `answer` says what the files are."""
    release = Release(lambda file: answer(file) if file else EXPIRED)
    with running(release), served(release.redirects) as github:
        release.storage = release.url.removesuffix("/ergast/f1")
        release.url = f"{github.url}{LATEST.rstrip('/')}"
        yield release


def zip_of(folder: Path, without: Collection[str] = ()) -> bytes:
    """The zip of a folder's files. Of a release of f1db, without the records of some races, which
    stay in its calendar.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(folder.iterdir()):
            lines = path.read_bytes().splitlines(keepends=True)
            if path.name.startswith("f1db-races-"):
                lines = [line for line in lines if line.partition(b",")[0].decode() not in without]
            # the time is not now, so that the same files have the same checksum
            archive.writestr(zipfile.ZipInfo(path.name), b"".join(lines))
    return content.getvalue()


def answers_of_release(folder: Path) -> Callable[[str], Answer]:
    """The files of a release of f1db with the files in a folder: the `answer` of a Release."""
    return lambda file: file_of_release(zip_of(folder), file)


def file_of_release(content: bytes, file: str) -> Answer:
    """A file of a release of f1db, whose zip has this content.

    JReleaser, which publishes it, lists the SHA-256 and the name of each file (Checksum.java).
    """
    if file == "checksums_sha256.txt":
        files = {"f1db-csv.zip": content, "f1db-json-single.zip": b""}
        lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in files]
        return 200, {}, "".join(lines).encode()
    return 200, {"Content-Type": "application/octet-stream"}, content
