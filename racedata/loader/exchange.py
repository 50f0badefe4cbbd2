"""All requests of the loader: one pool of connections, redirects, proxies, limits on time and size.

Only the first request imports this module, because it takes as long to import as all others
together. What is requested and answered is in http.py.
"""

import errno
import re
import ssl
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from http.client import responses
from threading import Event, Thread
from typing import IO
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from urllib3 import PoolManager, ProxyManager
from urllib3.exceptions import HTTPError, IncompleteRead
from urllib3.response import HTTPResponse
from urllib3.util import Timeout, make_headers, parse_url

from racedata import __version__
from racedata.loader.errors import LoadError, Progress, no_space_for_temporary_files
from racedata.loader.http import (
    Answer,
    NotFetched,
    Request,
    Secret,
    WrongStatus,
    check_address,
    is_address,
)

IDLE_SECONDS = 30  # without a byte
LOOK_SECONDS = 0.1  # how often a waiting program shows progress, and notices that it is to end
REDIRECTS = 10


def fetch(
    request: Request,
    file: IO[bytes],
    progress: Progress,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Answer:
    """Copies what is requested into `file`. `turn` surrounds each request: redirects are requests.

    Raises LoadError: NotFetched, unless the answer is too large.
    """
    check_address(request.url)
    url, left = request.url, request.seconds
    for _ in range(REDIRECTS + 1):
        with turn():
            start = time.monotonic()
            answer = Exchange(request, url, file).result(start + left, progress)
            left -= time.monotonic() - start
        if not answer.location:
            return answer
        url = target_of_redirect(url, answer.location, request.place)
    what = f"more than {REDIRECTS} redirects; expected {request.expected}"
    raise NotFetched(f"{request.place}: {what}")


def target_of_redirect(url: str, location: str, place: str) -> str:
    """Raises NotFetched, whose text has nothing of the target, because it may contain a key."""
    with suppress(ValueError):
        target = urljoin(url, location)
        is_less_safe = urlsplit(url).scheme == "https" != urlsplit(target).scheme
        if is_address(target) and not is_less_safe:
            return target
    what = "redirects to an unusable address; expected https, or http after http, and no password"
    raise NotFetched(f"{place}: {what}")


class Exchange(Thread):
    """One request and its answer, in a thread of its own. So the program can give it up at any
    moment, even while a name is looked up or a header arrives byte by byte. The thread then ends
    with the next byte of the body, or IDLE_SECONDS after the last one of a header.
    """

    def __init__(self, request: Request, url: str, file: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.request, self.url, self.file = request, url, file
        self.received = 0
        self.done, self.is_given_up = Event(), False
        self.answer: Answer | None = None
        self.error: BaseException | None = None

    def result(self, deadline: float, progress: Progress) -> Answer:
        """The answer, at the latest at the deadline, by time.monotonic."""
        request = self.request
        try:
            self.start()
            while not self.done.wait(min(LOOK_SECONDS, max(0, deadline - time.monotonic()))):
                progress(f"{request.place}: {self.received:,} bytes")
                if time.monotonic() >= deadline:
                    raise TimeoutError
            if self.error:
                raise self.error
        except (TimeoutError, HTTPError, ValueError) as error:
            raise NotFetched(f"{request.place}: {self.reason_of(error)}") from None
        except OSError as error:  # from the file
            if error.errno == errno.ENOSPC:
                raise no_space_for_temporary_files() from None
            raise
        finally:
            self.is_given_up = True
        assert self.answer
        return self.answer

    def run(self) -> None:
        try:
            self.answer = self.exchanged()
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()

    def exchanged(self) -> Answer:
        request = self.request
        headers = {"User-Agent": f"racedata/{__version__} (+refresh)"}
        if request.known:
            headers["If-None-Match"] = ", ".join(request.known)
        if request.secret and is_for(request.secret, self.url):
            headers["Authorization"] = request.secret.value
        response = pool(proxy_of(self.url)).urlopen(
            request.method,
            self.url,
            headers=headers,
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,
            timeout=Timeout(IDLE_SECONDS, IDLE_SECONDS),
        )
        assert isinstance(response, HTTPResponse)
        try:
            if location := response.get_redirect_location():
                return Answer("", False, location)
            etag = entity_tag(response)
            # Some servers have entity tags, but never answer 304.
            if request.known and (response.status == 304 or etag in request.known):
                return Answer(etag, True)
            if response.status != 200:
                phrase = responses.get(response.status, "")
                raise WrongStatus(request, response.status, phrase, response.headers)
            self.receive(response)
            return Answer(etag, False)
        finally:
            response.close()  # the body of another answer may be endless

    def receive(self, response: HTTPResponse) -> None:
        size, too_large = self.request.size, response.length_remaining or 0
        # read1 returns what has arrived, so that a slow download shows progress too.
        while too_large <= size and (block := response.read1(1 << 16)):
            if self.is_given_up:
                return
            self.file.write(block)
            self.received = too_large = self.received + len(block)
        if too_large > size:
            what = f"more than {size:,} bytes; expected {self.request.expected}"
            raise LoadError(f"{self.request.place}: {what}")

    def reason_of(self, error: BaseException) -> str:
        """Why it failed, in one line and without `[Errno 111]`."""
        while cause := error.__cause__ or error.__context__:
            error = cause
        if isinstance(error, TimeoutError):
            what = f"not complete in {self.request.seconds:,} seconds, or no data for"
            return f"{what} {IDLE_SECONDS}; got {self.received:,} bytes"
        if isinstance(error, IncompleteRead) and error.expected:
            return f"the connection ended {error.expected:,} bytes before the answer did"
        text = " ".join(str(getattr(error, "strerror", None) or error).split())
        return text if isinstance(error, OSError) else f"{text}; expected {self.request.expected}"


def is_for(secret: Secret, url: str) -> bool:
    """Whether a secret is for the scheme, host and port of an address."""
    ours, other = parse_url(secret.address), parse_url(url)
    return ours[:1] + ours[2:4] == other[:1] + other[2:4]


def proxy_of(url: str) -> str | None:
    """The proxy for an address, as variables such as `https_proxy` and `no_proxy` say."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)


@cache
def pool(proxy: str | None) -> PoolManager:
    """The connections of this program, through a proxy or without one."""
    context = ssl.create_default_context()
    if proxy:
        address = parse_url(proxy if "://" in proxy else f"http://{proxy}")
        user = make_headers(proxy_basic_auth=unquote(address.auth)) if address.auth else None
        connections: PoolManager = ProxyManager(
            address._replace(auth=None).url, proxy_headers=user, ssl_context=context
        )
    else:
        connections = PoolManager(ssl_context=context)
    return connections


def entity_tag(response: HTTPResponse) -> str:
    """The entity tag of an answer; empty if it has none that can be sent back."""
    tag = response.headers.get("ETag", "")
    return tag if re.fullmatch('(W/)?"[!#-~]{1,200}"', tag) else ""
