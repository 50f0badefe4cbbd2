"""The database as a file: `/racedata.db`, whole, with its checksum as the ETag.

It is for services without nginx: where there is one, nginx hands out the file itself, also in parts
(deploy/nginx.conf). The content of the file does not matter here.
"""

import falcon

from racedata.service.caching import RETRY_SECONDS, has_known
from racedata.service.environment import FileBody
from racedata.service.snapshot import Snapshot

PATH = "/racedata.db"
CONTENT_TYPE = "application/vnd.sqlite3"
NOT_OFFERED = "This service does not offer its database for download"
HOW_TO_OFFER = f"{NOT_OFFERED}. Its operator can enable downloads with RACEDATA_DOWNLOAD=on."

CHANGED = "Something has written into the database file, so it cannot be sent; try again later."


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
