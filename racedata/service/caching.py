"""How answers are sent: conditional requests, the cache, compression, headers.

While a database is served, its data never changes. So an answer depends only on the request, and
the key of the cache identifies that. What answers say does not matter here.
"""

import hashlib
import re
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from email.utils import format_datetime
from typing import Any, NamedTuple

import falcon

from racedata import __version__
from racedata.service.environment import IS_BUSY, UNFINISHED
from racedata.service.snapshot import Snapshot
from racedata.settings import Affected, Settings

RETRY_SECONDS = 10  # as in deploy/nginx.conf

# the rough overhead of an entry, without its texts and body: measured with 20,000 entries
ENTRY_BYTES = 600
# the allocator's overhead for bodies: measured with four threads and bodies of up to 60 KB
FRAGMENTATION = 9 / 8

# Shorter answers stay plain: with 500 bytes of headers, they fit into one TCP segment (1,448 bytes)
# anyway.
SMALL = 900
# Level 3 takes half the time of level 6, for answers that are a tenth longer
# (scripts/bench/README.md).
LEVEL = 3
GZIP = 16 + zlib.MAX_WBITS  # makes zlib write and read the gzip format
MAGIC = b"\x1f\x8b"  # the first bytes of every gzip, and of no JSON, HTML or other text

# gzip in an Accept-Encoding that does not refuse it with the weight 0 (RFC 9110, 12.5.3)
ACCEPTS_GZIP = re.compile(r"(?i)gzip(?!\s*;\s*q=0(\.0*)?\s*(,|$))")


class Body(NamedTuple):
    """The body of an answer, and the one header that depends on it."""

    content: bytes  # plain, or as `compressed` returns it
    total: int | None = None  # the header X-Total-Count; None: the answer has none


class Cache:
    """The bodies of answers of one database: gzip, or plain if short.

    Compressed bodies take a fifth of the memory, and nearly all clients accept them. `capacity` is
    the maximum size in bytes. A full cache evicts the least recently used bodies.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.size = 0  # bytes
        self.bodies: OrderedDict[Hashable, Body] = OrderedDict()  # in the order of their last use
        self.lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self.bodies

    def find(self, key: Hashable) -> Body | None:
        with self.lock:
            body = self.bodies.get(key)
            if body is not None:
                self.bodies.move_to_end(key)
            return body

    def put(self, key: Hashable, body: Body) -> None:
        size = size_of(key, body)
        if size > self.capacity:  # it would evict all others, and then itself
            return
        with self.lock:
            if key not in self.bodies:
                self.bodies[key] = body
                self.size += size
            while self.size > self.capacity:
                oldest, body = self.bodies.popitem(last=False)
                self.size -= size_of(oldest, body)


class Answers:
    """Sends answers of one database: 304, from the cache, or made now. They share the ETag, the
    Last-Modified and the headers next to them.

    The ETag follows from the database, the version, the settings that affect what is `shown`, and
    the times at which refreshes read each source, if answers show these.
    """

    def __init__(
        self,
        settings: Settings,
        data: Snapshot,
        cache: Cache,
        *shown: Affected,
        max_age: int,  # seconds for which clients and proxies may reuse an answer
        level: int = LEVEL,  # of gzip
        asked_at: Mapping[str, str] = {},
    ) -> None:
        self.cache, self.level = cache, level
        facts = [__version__, sorted(asked_at.items()), *settings.values_that_affect(*shown)]
        version = data.checksum + repr(facts).encode()
        modified = max([data.build()["builtAt"], *asked_at.values()])
        self.tag = f'"{hashlib.sha256(version).hexdigest()[:20]}"'
        self.last_modified = format_datetime(datetime.fromisoformat(modified), usegmt=True)
        self.headers = [  # the names are in lower case, as Falcon sends them
            # Weak, because the gzip and the plain form share it (RFC 9110, 8.8.3.3). So a 304 does
            # not depend on Accept-Encoding.
            ("etag", f"W/{self.tag}"),
            ("last-modified", self.last_modified),
            ("cache-control", f"public, max-age={max_age}" if max_age else "no-cache"),
            ("vary", "Accept-Encoding"),
        ]

    def respond(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        content_type: str,
        key: Hashable,
        make: Callable[[], Body],
        is_slow: bool,
    ) -> None:
        """Answers 304, or 200 with the cached body under `key`. If the cache has none, `make` makes
        it, uncompressed; if that is slow, the answer stays UNFINISHED.

        Raises HTTPServiceUnavailable if too many slow answers wait already.
        """
        if self.send_if_known(req, resp):
            return

        def finish() -> None:
            body = self.cache.find(key)
            if body is None:
                body = make()
                if self.cache.capacity or accepts_gzip(req.env):
                    body = body._replace(content=compressed(body.content, self.level))
                self.cache.put(key, body)
            self.send(req, resp, body, content_type)

        if not is_slow or key in self.cache:
            finish()
        elif not req.env.get(IS_BUSY):
            req.env[UNFINISHED] = req, resp, finish
        else:
            raise falcon.HTTPServiceUnavailable(
                description="Too many pages and large answers are waiting at the moment; try "
                "again later. Answers with limit=100 or less do not wait, except calendars.",
                retry_after=RETRY_SECONDS,
            )

    def send_if_known(self, req: falcon.Request, resp: falcon.Response) -> bool:
        """Answers 304 if the client has the answer; returns whether it has."""
        is_known = has_known(req.env, self.tag)
        if is_known:
            resp.status = falcon.HTTP_304
            resp.set_headers(self.headers)
        return is_known

    def send(
        self, req: falcon.Request, resp: falcon.Response, body: Body, content_type: str
    ) -> None:
        """Answers 200 with a body that may be compressed: plain if the client wants it so."""
        content = body.content if accepts_gzip(req.env) else decompressed(body.content)
        counted = [] if body.total is None else [("x-total-count", str(body.total))]
        headers = [*counted, ("content-type", content_type), *self.headers]
        if content.startswith(MAGIC):
            headers.append(("content-encoding", "gzip"))
        resp.set_headers(headers)
        resp.data = content


class Document:
    """A resource whose body is made once per database, such as `/openapi.json`."""

    def __init__(self, answers: Answers, content: bytes, content_type: str) -> None:
        self.answers, self.content_type = answers, content_type
        self.body = Body(compressed(content))

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        if not self.answers.send_if_known(req, resp):
            self.answers.send(req, resp, self.body, self.content_type)

    on_head = on_get


def has_known(env: dict[str, Any], tag: str) -> bool:
    """Whether a client knows an answer, by its If-None-Match. If-Modified-Since does not count,
    because Last-Modified stays the same when a setting changes the answer.
    """
    field: str = env.get("HTTP_IF_NONE_MATCH", "")
    # The header may have many tags. Whether they are weak does not matter (RFC 9110, 13.1.2).
    return tag in field or field.strip() == "*"


def compressed(body: bytes, level: int = LEVEL) -> bytes:
    """`body` as gzip, or unchanged if it is short."""
    if len(body) >= SMALL:
        return zlib.compress(body, level, GZIP)
    # A copy for the cache: orjson's own object occupies 4 KB, even for an answer of 145 bytes.
    return bytes(memoryview(body))


def decompressed(body: bytes) -> bytes:
    """The plain form of a body that may be compressed."""
    return zlib.decompress(body, GZIP) if body.startswith(MAGIC) else body


def accepts_gzip(env: dict[str, Any]) -> bool:
    """Whether the client accepts gzip; other weights than 0 do not count."""
    return ACCEPTS_GZIP.search(env.get("HTTP_ACCEPT_ENCODING", "")) is not None


def size_of(key: Hashable, body: Body) -> int:
    """The memory that an entry takes, in bytes."""
    return len(repr(key)) + int(len(body.content) * FRAGMENTATION) + ENTRY_BYTES
