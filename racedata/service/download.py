"""The database as a file: `/racedata.db`, whole, with its checksum as the ETag.

It is for services without nginx: where there is one, nginx hands out the file itself, also in parts
(deploy/nginx.conf). The content of the file does not matter here.
"""

import os
from collections.abc import Iterator

import falcon

from racedata.database import OpenFile
from racedata.service.caching import RETRY_SECONDS, has_known
from racedata.service.snapshot import Snapshot

PATH = "/racedata.db"
CONTENT_TYPE = "application/vnd.sqlite3"
NOT_OFFERED = "This service does not offer its database for download"
HOW_TO_OFFER = f"{NOT_OFFERED}. Its operator can enable downloads with RACEDATA_DOWNLOAD=on."

CHANGED = "Something has written into the database file, so it cannot be sent; try again later."


class FileBody:
    """An open file as the body of an answer, in pieces.

    The worker reads the next one when the client can take it, so other clients have their turn in
    between, and a download takes little memory.
    """

    PIECE = 1 << 16  # bytes

    def __init__(self, file: OpenFile) -> None:
        self.file = file

    def __iter__(self) -> Iterator[bytes]:
        """Raises OSError if the file has changed; then the connection is closed."""
        for begin in range(0, self.file.size, self.PIECE):
            if self.file.has_changed():
                raise OSError("the file has changed")
            yield os.pread(self.file.descriptor, self.PIECE, begin)


class Download:
    """`/racedata.db`: the file that was read, even while another one replaces it.

    If something has written into that file, its ETag no longer names its bytes, and requests
    are refused until there is a good one again.
    """

    def __init__(self, data: Snapshot, last_modified: str) -> None:
        self.data = data
        self.tag = f'"{data.checksum.hex()}"'
        self.headers = [
            ("etag", self.tag),
            ("last-modified", last_modified),
            # Caches may keep the file, but must ask each time whether it is still the same.
            ("cache-control", "no-cache"),
            ("link", '<./data#sources>; rel="license"'),
        ]

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        file, is_known = self.data.file, has_known(req.env, self.tag)
        if file.has_changed() and not is_known:
            raise falcon.HTTPServiceUnavailable(description=CHANGED, retry_after=RETRY_SECONDS)
        resp.set_headers(self.headers)
        if is_known:
            resp.status = falcon.HTTP_304
            return
        resp.content_type = CONTENT_TYPE
        resp.content_length = file.size
        if req.method == "GET":
            resp.stream = FileBody(file)

    on_head = on_get
