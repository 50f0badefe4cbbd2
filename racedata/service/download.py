"""The database as a file: `/racedata.db`, with conditional requests and ranges (RFC 9110, 13, 14).

All answers come from this file, even while another one replaces it. filepart.py sends its bytes.
The content of the file does not matter here.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from urllib.parse import quote

import falcon

from racedata.database import OpenFile
from racedata.service.answers import Validators
from racedata.service.filepart import FilePart
from racedata.service.ratelimit.clients import TrustedProxies
from racedata.service.ratelimit.middleware import RateLimits, is_from_proxy
from racedata.service.snapshot import Snapshot

PATH = "/racedata.db"
CONTENT_TYPE = "application/vnd.sqlite3"
BYTES_PER_TOKEN = 1 << 18  # the rate limits count this much as one request
NOT_OFFERED = "This service does not offer its database for download"
HOW_TO_OFFER = f"{NOT_OFFERED}. Its operator can enable downloads with RACEDATA_DOWNLOAD=on."
IN_NGINX = "/racedata-download"  # a location in deploy/nginx.conf

Bounds = tuple[int, int]  # the first byte of a range, and the one after its last


class Download:
    """`/racedata.db`. Its ETag is its checksum, so machines with equal files have equal ETags.

    The rate limits count a download as one request for each 256 KB that are sent. Behind nginx,
    nginx sends whole files: it fetches each file once, and asks here before each download.
    """

    def __init__(
        self,
        data: Snapshot,
        validators: Validators,
        limits: RateLimits | None,
        proxies: TrustedProxies,
    ) -> None:
        self.data = data
        self.limits = limits
        self.proxies = proxies
        self.etag = falcon.ETag(data.checksum.hex())
        self.last_modified = validators.last_modified
        self.built_at = falcon.http_date_to_dt(self.last_modified)
        self.headers = [
            ("etag", self.etag.dumps()),
            ("last-modified", self.last_modified),
            ("accept-ranges", "bytes"),
            # Caches may keep the file, but must ask each time whether it is still the same.
            ("cache-control", "no-cache"),
            ("link", license_link(data)),
        ]

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        file = self.data.file
        status, (start, end) = self.select(req, file.size)
        is_sent = req.method == "GET" and status in (falcon.HTTP_200, falcon.HTTP_206)
        self.count(req, resp, end - start if is_sent else 0)
        self.refuse(req, status, file)
        if is_sent and self.can_redirect(req):
            resp.set_headers([("x-accel-redirect", IN_NGINX), ("etag", self.etag.dumps())])
            return
        resp.status = status
        resp.set_headers(self.headers)
        if status == falcon.HTTP_304:
            return
        resp.content_type = CONTENT_TYPE
        if status == falcon.HTTP_206:
            resp.set_header("content-range", f"bytes {start}-{end - 1}/{file.size}")
        resp.content_length = end - start
        if is_sent:
            resp.stream = FilePart(file, start, end - start)

    on_head = on_get

    def select(self, req: falcon.Request, size: int) -> tuple[str, Bounds]:
        """The status that a request asks for: 200, 206, 304, 412 or 416; and the bytes to send."""
        if status := self.precondition(req):
            return status, (0, 0)
        # A date is not a strong validator: two files may have been built in the same second.
        is_ours = req.get_header("If-Range") in (None, self.etag.dumps())
        field = req.get_header("Range")
        if not field or not is_ours or req.method != "GET":
            return falcon.HTTP_200, (0, size)
        bounds = range_of(field, size)
        if not bounds:
            return falcon.HTTP_416, (0, 0)
        return falcon.HTTP_200 if bounds == (0, size) else falcon.HTTP_206, bounds

    def count(self, req: falcon.Request, resp: falcon.Response, size: int) -> None:
        """Counts a request that gets `size` bytes. Raises HTTPTooManyRequests."""
        # If nginx names no client, it fetches the file for all of them.
        is_for_all = "HTTP_X_FORWARDED_FOR" not in req.env and is_from_proxy(req.env, self.proxies)
        if self.limits and not is_for_all:
            self.limits.count(req, resp, max(1, -(-size // BYTES_PER_TOKEN)))

    def refuse(self, req: falcon.Request, status: str, file: OpenFile) -> None:
        """Raises an HTTPError if the client gets neither the file nor a 304."""
        if status == falcon.HTTP_412:
            raise falcon.HTTPPreconditionFailed(
                description="The database is not the one that If-Match or If-Unmodified-Since "
                "expects; to get the whole new file, omit these headers.",
                headers=self.headers[:1],
            )
        if status == falcon.HTTP_416:
            raise falcon.HTTPRangeNotSatisfiable(
                file.size,
                description=f"Range is {req.get_header('Range', default='')[:50]!r}; expected one "
                f"within the {file.size} bytes of the file, such as bytes=0-99.",
            )
        if file.has_changed():
            raise falcon.HTTPServiceUnavailable(
                description=(
                    "A program is writing to the database file; expected it to replace the file "
                    "instead. Try again later."
                ),
                retry_after=1,
            )

    def precondition(self, req: falcon.Request) -> str:
        """The status 304 or 412 if a condition of the request demands it; else empty."""
        if req.if_match is not None:
            if not self.matches(req.if_match, is_strong=True):
                return falcon.HTTP_412
        elif is_before(req.get_header("If-Unmodified-Since"), self.built_at):
            return falcon.HTTP_412
        if req.if_none_match is not None:
            is_known = self.matches(req.if_none_match, is_strong=False)
        else:  # only the exact date counts, as for other answers: see Validators.match
            is_known = req.get_header("If-Modified-Since") == self.last_modified
        return falcon.HTTP_304 if is_known else ""

    def can_redirect(self, req: falcon.Request) -> bool:
        """Whether nginx can send the file: only a whole one.

        nginx and this module may read Range and If-Range differently. For example, nginx drops an
        empty If-Range and then sends the whole file, which was counted as a part. It also does not
        ignore an invalid If-Unmodified-Since.
        """
        return (
            req.get_header("X-Sendfile-Type") == "X-Accel-Redirect"
            and is_from_proxy(req.env, self.proxies)
            and req.get_header("Range") is None
            and req.get_header("If-Match") in (None, self.etag.dumps())
            and req.get_header("If-Unmodified-Since") is None
        )

    def matches(self, tags: Sequence[falcon.ETag | Literal["*"]], is_strong: bool) -> bool:
        """Whether one of the tags is this file's. A strong comparison refuses weak tags."""
        return any(
            tag == "*" or (tag == self.etag and not (is_strong and tag.is_weak)) for tag in tags
        )


def is_before(field: str | None, time: datetime) -> bool:
    """Whether a header has a date before `time`. An invalid one is ignored (RFC 9110, 13.1.4)."""
    try:
        return field is not None and falcon.http_date_to_dt(field) < time
    except ValueError:
        return False


def range_of(field: str, size: int) -> Bounds | None:
    """The bytes of a file of this size that a Range selects; None if there are none.

    Several ranges, and units other than bytes, select the whole file (RFC 9110, 14.2).
    """
    unit, _, ranges = field.partition("=")
    if unit.lower() != "bytes" or "," in ranges:
        return 0, size
    # int() takes at most 4300 digits
    match = re.fullmatch("([0-9]{1,4300})-([0-9]{0,4300})|-([0-9]{1,4300})", ranges.strip(" \t"))
    if not match:
        return None
    first, last, suffix = match.groups()
    if suffix:
        start, end = max(size - int(suffix), 0), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
    return (start, end) if start < end else None


def license_link(data: Snapshot) -> str:
    """A Link header that names the licences, and links to the list of sources on the page."""
    licences = dict.fromkeys(source["licence"] or "not stated" for source in data.sources())
    return f"<./#sources>; rel=\"license\"; title*=UTF-8''{quote('; '.join(licences), safe='')}"
