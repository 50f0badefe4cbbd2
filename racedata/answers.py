"""Cached answers and conditional requests: the one place that caches, and what HTTP says about an answer's age.

The data never changes while a database is served. So an answer depends on the database, the settings and what the
request asks for; the first two are fixed for an Answers, the third is its key.
"""

import hashlib
import threading
from collections import OrderedDict
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

import falcon

from racedata.requested import Requested

Key = tuple[str, str, int, int]
ENTRY_BYTES = 500  # what an entry takes beside its texts and its body, roughly: measured with 20,000 entries


class Answers:
    """Middleware that sends cached answers; the endpoints hand new ones to `send`.

    `version` is some bytes that differ if any answer may; `built_at` is when the database was built; `max_age` are the
    seconds for which clients and proxies may reuse an answer; `capacity` is the most bytes that the cache may take.
    """

    def __init__(self, version: bytes, built_at: datetime, max_age: int, capacity: int) -> None:
        self.etag = f'"{hashlib.sha256(version).hexdigest()[:20]}"'
        self.headers = [
            ("ETag", self.etag),
            ("Last-Modified", format_datetime(built_at, usegmt=True)),
            ("Cache-Control", f"public, max-age={max_age}" if max_age else "no-cache"),
        ]
        self.built_at = built_at
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
        """Whether the client has the answer already: by its If-None-Match or, without one, its If-Modified-Since."""
        field = req.env.get("HTTP_IF_NONE_MATCH")
        if field is None:
            since = req.env.get("HTTP_IF_MODIFIED_SINCE")
            return since is not None and is_since(since, self.built_at)
        # The header may have many tags, and weak ones: a proxy that compresses weakens them.
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
        """Answers with `body` and the headers of its age; without the body if the client has it already."""
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
        """Caches a body; those that were used least recently make room."""
        body = bytes(memoryview(body))  # a copy: orjson allocates 4 KB and more for each, however short
        with self._lock:
            if key not in self._bodies:
                self._bodies[key] = body
                self.size += size_of(key, body)
            while self.size > self.capacity:
                self.size -= size_of(*self._bodies.popitem(last=False))


def is_since(field: str, moment: datetime) -> bool:
    """Whether an HTTP date is `moment` or later; one that is none is ignored (RFC 9110, 13.1.3)."""
    try:
        return parsedate_to_datetime(field).astimezone(UTC) >= moment
    except (ValueError, OverflowError):
        return False


def key_of(requested: Requested) -> Key:
    """The path stands for the whole address."""
    address, limit, offset, base_url = requested
    return base_url, address.path, limit, offset


def size_of(key: Key, body: bytes) -> int:
    base_url, path, _, offset = key
    return len(base_url) + len(path) + offset.bit_length() // 8 + len(body) + ENTRY_BYTES
