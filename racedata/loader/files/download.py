"""Requests to servers: valid addresses, redirects, limits on time and size, downloads.

Which addresses are requested, and what their content means, does not belong here.
"""

import errno
import re
import signal
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException, HTTPMessage
from types import FrameType
from typing import IO, Never

from racedata.formats import HTTP, without_query
from racedata.loader.errors import LoadError, Progress, no_space_for_temporary_files

CREDENTIALS = re.compile("https?://[^/?#]*@", re.IGNORECASE)  # errors and databases would show them

# Limits of time and memory, far above what any dump needs.
DOWNLOAD_SECONDS = 600
DOWNLOAD_BYTES = 200_000_000


class NotDownloaded(LoadError):
    """A download that failed. Another try may succeed."""


def is_address(url: str) -> bool:
    """Whether a text is an http(s) address that can be requested, without a user or password."""
    if CREDENTIALS.match(url) or not HTTP.match(url):
        return False
    try:
        parts = urllib.parse.urlsplit(url)
        return bool(parts.hostname) and parts.port != 0  # `port` raises ValueError above 65535
    except ValueError:
        return False


def check_address(url: str, name: str) -> None:
    """Raises LoadError, without any password, if `url` is not such an address.

    `name` says what it is used for.
    """
    if CREDENTIALS.match(url):
        raise LoadError(f"{name} has a user or password in it; expected one without")
    if not is_address(url):
        expected = "an http(s) URL with a host and, if any, a port from 1 to 65535"
        raise LoadError(f"{url}: not {name}; expected {expected}")


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https. Does not read their bodies, which may be endless."""

    def http_error_302(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage
    ) -> IO[bytes] | None:
        # Errors name only the scheme, because the rest may contain a key. urllib's own error shows
        # the whole address.
        try:
            scheme = urllib.parse.urlsplit(
                urllib.parse.urljoin(
                    req.full_url, headers.get("Location") or headers.get("URI", "")
                )
            ).scheme
        except ValueError:
            scheme = ""
        if scheme not in ("http", "https"):
            fp.close()
            raise urllib.error.URLError(f"redirects to {scheme[:20]!r}; expected http or https")
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        fp.close()  # urllib would read the body to its end; a closed response has nothing to read
        if not is_address(newurl):
            raise urllib.error.URLError(
                "redirects to an unusable address; expected one without user or password"
            )
        if req.type == "https" and not newurl.lower().startswith("https:"):
            raise urllib.error.URLError("redirects from https to 'http'; expected https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError inside the block after `seconds`, whatever the block is doing."""

    def end(number: int, frame: FrameType | None) -> Never:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def download(
    url: str,
    file: IO[bytes],
    progress: Progress,
    seconds: float = DOWNLOAD_SECONDS,
    size: int = DOWNLOAD_BYTES,
    expected: str = "the zip of a dump",
    handlers: Sequence[urllib.request.BaseHandler] = (),
    method: str = "GET",
) -> None:
    """Copies the content of `url` into `file`. `expected` names it in errors; `handlers` are those
    of urllib. With the method HEAD, there is no content.

    Raises NotDownloaded if it takes more than `seconds`, or LoadError if it has more than `size`
    bytes.
    """
    check_address(url, "the URL of a source")
    place = without_query(url)
    too_large = LoadError(f"{place}: more than {size:,} bytes; expected {expected}")
    try:
        opener = urllib.request.build_opener(Redirects, *handlers)
        request = urllib.request.Request(url, method=method)
        with time_limit(seconds), opener.open(request, timeout=30) as response:
            if (response.length or 0) > size:
                raise too_large
            # read1 returns what has arrived, so that a slow download shows progress too.
            while block := response.read1(1 << 16):
                file.write(block)
                progress(f"downloading: {file.tell():,} bytes")
                if file.tell() > size:
                    raise too_large
            if response.length:  # bytes of Content-Length that did not arrive
                raise NotDownloaded(
                    f"{place}: the connection ended {response.length:,} bytes before the file did"
                )
    except TimeoutError:
        what = f"not complete in {seconds:,} seconds, or no data for 30; got {file.tell():,} bytes"
        raise NotDownloaded(f"{place}: {what}") from None
    except urllib.error.HTTPError as error:
        error.close()
        reason = reason_of(error) or f"status {error.code}"  # not every server gives a reason
        raise NotDownloaded(f"{place}: {reason}; expected {expected}") from None
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise no_space_for_temporary_files() from None
        raise NotDownloaded(f"{place}: {reason_of(error)}") from None
    except (HTTPException, ValueError) as error:
        raise NotDownloaded(f"{place}: {reason_of(error)}; expected {expected}") from None


def reason_of(error: Exception) -> str:
    """Why a request failed, in one line and without `[Errno 111]`."""
    reason = getattr(error, "reason", error)
    # a redirect loop gives several lines
    return " ".join(str(getattr(reason, "strerror", None) or reason).split())
