"""Cached answers and conditional requests: the only cache of answers, and the HTTP caching headers.

The data never changes while a database is served. So an answer depends only on the database, the settings and the
request. The first two are fixed for an `Answers`; the third is the cache key.
"""

import hashlib
import threading
from collections import OrderedDict
from datetime import datetime
from email.utils import format_datetime

import falcon

from racedata.requested import Requested

Key = tuple[str, str, int, int]
ENTRY_BYTES = 500  # the rough overhead of an entry, without its texts and body: measured with 20,000 entries


class Answers:
    """Middleware that sends cached answers; the endpoints pass new ones to `send`.

    `version` must differ if any answer may differ. `built_at` is the time when the database was built. `max_age` is the
    number of seconds for which clients and proxies may reuse an answer. `capacity` is the maximum size of the cache in
    bytes.
    """

    def __init__(self, version: bytes, built_at: datetime, max_age: int, capacity: int) -> None:
        self.etag = f'"{hashlib.sha256(version).hexdigest()[:20]}"'
        self.last_modified = format_datetime(built_at, usegmt=True)
        self.headers = [
            ("ETag", self.etag),
            ("Last-Modified", self.last_modified),
            ("Cache-Control", f"public, max-age={max_age}" if max_age else "no-cache"),
        ]
        self.capacity = capacity
        self.size = 0  # bytes
        self._bodies: OrderedDict[Key, bytes] = OrderedDict()  # the last used at the end
        self._lock = threading.Lock()

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        requested = req.context.get("requested")
        if requested and req.method != "OPTIONS":
            body = self.find(key_of(requested))
            if body is not None:
                self.answer(req, resp, body)
                resp.complete = True  # no route, no resource

    def is_current(self, req: falcon.Request) -> bool:
        """Whether the client already has the answer, by its If-None-Match or else its If-Modified-Since."""
        field = req.env.get("HTTP_IF_NONE_MATCH")
        if field is None:
            # The same date only, as nginx has it by default: after a return to an older database, a client may have
            # a later date and other data.
            return req.env.get("HTTP_IF_MODIFIED_SINCE") == self.last_modified
        # The header may have many tags, also weak ones: a proxy that compresses answers makes their tags weak.
        return field.strip() == "*" or self.etag.strip('"') in (req.if_none_match or ())

    def send(self, req: falcon.Request, resp: falcon.Response, body: bytes) -> None:
        """Answers a request with `body`, and caches it."""
        self.keep(key_of(req.context.requested), body)
        self.answer(req, resp, body)

    def send_not_modified(self, resp: falcon.Response) -> None:
        resp.status = falcon.HTTP_304
        resp.set_headers(self.headers)

    def answer(
        self, req: falcon.Request, resp: falcon.Response, body: bytes, content_type: str = falcon.MEDIA_JSON
    ) -> None:
        """Answers with `body` and the caching headers; without the body if the client already has it."""
        if self.is_current(req):
            self.send_not_modified(resp)
        else:
            resp.content_type = content_type
            resp.set_headers(self.headers)
            resp.data = body

    def find(self, key: Key) -> bytes | None:
        """The cached body, if there is one."""
        with self._lock:
            body = self._bodies.get(key)
            if body is not None:
                self._bodies.move_to_end(key)
            return body

    def keep(self, key: Key, body: bytes) -> None:
        """Caches a body, and evicts the least recently used ones if the cache is full."""
        body = bytes(memoryview(body))  # a copy: orjson allocates at least 4 KB for each, however short
        with self._lock:
            if key not in self._bodies:
                self._bodies[key] = body
                self.size += size_of(key, body)
            while self.size > self.capacity:
                self.size -= size_of(*self._bodies.popitem(last=False))


def key_of(requested: Requested) -> Key:
    """The cache key of a request. Its path identifies the whole address."""
    address, limit, offset, base_url = requested
    return base_url, address.path, limit, offset


def size_of(key: Key, body: bytes) -> int:
    base_url, path, _, offset = key
    return len(base_url) + len(path) + offset.bit_length() // 8 + len(body) + ENTRY_BYTES
