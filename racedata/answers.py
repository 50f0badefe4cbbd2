"""Answers that were made before: the one place that caches, and what HTTP says about how long an answer is good.

The data never changes while a database is served, so an answer is determined by that database, by the settings, and by
the scheme, host, path and query of its request. The first two are fixed for an Answers, and the others are its keys.
"""

import hashlib
import threading
from collections import OrderedDict
from email.utils import format_datetime

import falcon

ENTRY_BYTES = 700  # what an entry costs beside its texts and its body, roughly


class Answers:
    """Middleware that gives answers again, and keeps what the endpoints hand to `send`.

    `version` is some bytes that differ when any answer may; `built_at` the datetime of the database; `max_age` the
    seconds that clients and proxies may keep an answer; `capacity` the bytes that all that is kept may take.
    """

    def __init__(self, version, built_at, max_age, capacity):
        self.etag = f'"{hashlib.sha256(version).hexdigest()[:20]}"'
        self.headers = [
            ("ETag", self.etag),
            ("Last-Modified", format_datetime(built_at, usegmt=True)),
            ("Cache-Control", f"public, max-age={max_age}" if max_age else "no-cache"),
        ]
        self.capacity = capacity
        self.size = 0  # bytes
        self._bodies = OrderedDict()  # by key, the one that was asked for last at the end
        self._lock = threading.Lock()

    def process_request(self, req, resp):
        if req.method in ("GET", "HEAD"):
            body = self.find(req)
            if body is not None:
                self.answer(req, resp, body)
                resp.complete = True  # no route, no resource

    def is_current(self, req):
        """Whether the client has the answer already, by its If-None-Match."""
        field = req.env.get("HTTP_IF_NONE_MATCH")
        if field is None:
            return False
        # The header may have many tags, and weak ones: a proxy that compresses weakens them.
        return field.strip() == "*" or self.etag.strip('"') in (req.if_none_match or ())

    def send(self, req, resp, body):
        """Answers a request with `body`, and keeps it."""
        self.keep(req, body)
        self.answer(req, resp, body)

    def send_not_modified(self, resp):
        resp.status = falcon.HTTP_304
        resp.set_headers(self.headers)

    def answer(self, req, resp, body, content_type=falcon.MEDIA_JSON):
        """Answers with `body`, and says how long it is good; without it where the client has it already."""
        if self.is_current(req):
            self.send_not_modified(resp)
        else:
            resp.content_type = content_type
            resp.set_headers(self.headers)
            resp.data = body

    def find(self, req):
        """The body that was kept for a request like this one, or None."""
        key = key_of(req)
        with self._lock:
            body = self._bodies.get(key)
            if body is not None:
                self._bodies.move_to_end(key)
            return body

    def keep(self, req, body):
        key = key_of(req)
        with self._lock:
            if key not in self._bodies:
                self._bodies[key] = body
                self.size += size_of(key, body)
            while self.size > self.capacity:
                self.size -= size_of(*self._bodies.popitem(last=False))


def size_of(key, body):
    return sum(map(len, key)) + len(body) + ENTRY_BYTES


def key_of(req):
    """All of a request that its answer depends on."""
    env = req.env
    # Without a Host header the url names the server.
    return env["wsgi.url_scheme"], env.get("HTTP_HOST") or req.netloc, env["PATH_INFO"], env["QUERY_STRING"]
