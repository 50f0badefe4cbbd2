"""The Falcon middleware: which requests count, the RateLimit headers, and 429.

No other module of the rate limits knows HTTP.
"""

from functools import lru_cache
from typing import Any

import falcon

from racedata.formats import plural
from racedata.service import download
from racedata.service.addresses import after_base
from racedata.service.ratelimit.bucket import Decision, whole_seconds
from racedata.service.ratelimit.clients import TrustedProxies, bucket_key
from racedata.service.ratelimit.stores import LimitStore

FORWARDED_CHARACTERS = 500  # the part of X-Forwarded-For that is read: about ten proxies
# What counts outside the base address: searches and the two largest files. Nothing else does, so
# the limits refuse no health check and no reader of other pages. (If too many pages that are not
# cached wait for the worker, the next one is a 503.)
COUNTED_OUTSIDE = ("/find", "/openapi.json", download.PATH)


class RateLimits:
    """Counts requests under the base address and COUNTED_OUTSIDE, and refuses with 429.

    The headers are those of the IETF draft "RateLimit header fields for HTTP"
    (draft-ietf-httpapi-ratelimit-headers).
    """

    def __init__(self, store: LimitStore, proxies: TrustedProxies, base_address: str) -> None:
        self.store, self.base = store, base_address.lower()
        self.policy = ", ".join(
            f'"{limit.name}";q={limit.quota};w={limit.window}' for limit in store.limits
        )
        self.template = ", ".join(f'"{limit.name}";r=%d;t=%d' for limit in store.limits)
        # Behind a proxy, this cache saves a tenth of a cached answer's CPU time.
        self.bucket_key = lru_cache(maxsize=4096)(
            lambda peer, forwarded_for: bucket_key(proxies.client(peer, forwarded_for))
        )

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Takes a token for the client. Raises HTTPTooManyRequests if it has none."""
        counts = after_base(req.path, self.base) is not None or req.path in COUNTED_OUTSIDE
        if not counts or is_preflight(req.env):
            return
        # Trusted proxies have written the end. Before it, a client can send anything of any length.
        forwarded_for = req.env.get("HTTP_X_FORWARDED_FOR", "")[-FORWARDED_CHARACTERS:]
        key = self.bucket_key(req.env.get("REMOTE_ADDR", ""), forwarded_for)
        decision = self.store.take(key)
        resp.set_headers(self.headers(decision))
        if limit := decision.refused_by:
            wait, requests = whole_seconds(decision.wait), plural("request", limit.quota)
            raise falcon.HTTPTooManyRequests(
                description=f"The {limit.name} limit of {limit.quota} {requests} in "
                f"{limit.window} s has been reached; this request can succeed after {wait} s.",
                retry_after=wait,
            )

    def headers(self, decision: Decision) -> list[tuple[str, str]]:
        values: list[int] = []
        for tokens, fill_time in zip(decision.remaining, decision.reset):
            values += tokens, whole_seconds(fill_time)
        return [("ratelimit-policy", self.policy), ("ratelimit", self.template % tuple(values))]


def is_preflight(env: dict[str, Any]) -> bool:
    """Whether this is a CORS preflight, which a browser sends before a script's request."""
    return (
        "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in env
        and "HTTP_ORIGIN" in env
        and env["REQUEST_METHOD"] == "OPTIONS"
    )
