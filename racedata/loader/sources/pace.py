"""The pace of the requests to a source: its limits, its pauses (`Retry-After`), and its clock."""

import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import IO

from racedata.formats import counted
from racedata.loader.errors import NotYet, Progress
from racedata.loader.http import Answer, Request, WrongStatus
from racedata.values import whole_number

# How many requests, in how many seconds. A source may set its own limits.
PACE = ((4, 1),)
WAIT_SECONDS = 30  # after a refusal without Retry-After, at least
MAX_WAIT_SECONDS = 600  # a longer pause is left to the caller
REFUSALS = (429, 503)


class Pace:
    """The pace of the requests to an API, as long as the program runs. `requests` counts them.

    `clock` and `now` return seconds: since an arbitrary moment, and since 1970.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.clock, self.sleep, self.now = clock, sleep, now
        self.limits: Sequence[tuple[int, int]] = PACE
        self.requests = 0
        self.ends: list[float] = []  # when the latest requests ended

    def time(self) -> datetime:
        """The time now, in UTC."""
        return datetime.fromtimestamp(self.now(), UTC)

    def fetch(
        self, request: Request, file: IO[bytes], progress: Progress, tries: int = 1
    ) -> Answer:
        """Copies what is requested into `file`, at the pace of the source. If it asks for a pause
        of up to ten minutes, tries again after that, up to `tries` times.

        Raises LoadError: NotYet, with the seconds, if it still asks for a pause.
        """
        from racedata.loader.exchange import fetch

        while True:
            tries -= 1
            try:
                return fetch(request, file, progress, partial(self.turn, progress))
            except WrongStatus as error:
                if error.status not in REFUSALS:
                    raise
                seconds = self.retry_after(error.retry_after)
                if not tries or seconds > MAX_WAIT_SECONDS:
                    # 429 is a limit, which is not a failure
                    if error.status != 429 and error.retry_after is None:
                        raise
                    what = f"status {error.status}: try again in {seconds:,.0f} seconds"
                    raise NotYet(f"{request.place}: {what}", seconds) from None
                progress(f"status {error.status}: waiting for {seconds:,.0f} seconds")
            self.sleep(seconds)

    def content(self, request: Request, progress: Progress, tries: int = 1) -> bytes:
        """What is requested, as `fetch` copies it."""
        content = io.BytesIO()
        self.fetch(request, content, progress, tries)
        return content.getvalue()

    @contextmanager
    def turn(self, progress: Progress) -> Iterator[None]:
        """Waits until one more request keeps to the limits. The block sends it.

        It counts from the end of a request, because only then is it certain that the API has
        counted it.
        """
        due = max(
            (
                self.ends[-count] + seconds
                for count, seconds in self.limits
                if len(self.ends) >= count
            ),
            default=0.0,
        )
        wait = due - self.clock()
        if wait > 0:
            if wait > 5:
                requests = counted(self.requests, "request")
                progress(f"{requests}: waiting for {wait:,.0f} seconds")
            self.sleep(wait)
        self.requests += 1
        try:
            yield
        finally:
            self.ends.append(self.clock())
            del self.ends[: -max(count for count, _ in self.limits)]

    def counted_requests(self) -> list[int]:
        """When the requests ended that a limit over more than a minute still counts: seconds since
        1970.
        """
        longest = max(seconds for _, seconds in self.limits)
        since, offset = self.clock() - longest, self.now() - self.clock()
        return [round(end + offset) for end in self.ends if longest > 60 and end > since]

    def resume(self, ends: Sequence[int]) -> None:
        """Counts the requests that another run has sent: its `counted_requests`."""
        if not self.ends:
            # that run's clock may have been ahead
            self.ends = [min(end - self.now(), 0) + self.clock() for end in sorted(ends)]

    def retry_after(self, header: str | None) -> float:
        """The seconds of a Retry-After header, which has them or a date (RFC 9110, section 10.2.3).
        Without a header that can be read, a limit may refuse for as long as it counts.
        """
        if header and whole_number.fullmatch(header.strip()):
            return int(header)
        try:
            date = parsedate_to_datetime(header or "")
        except (ValueError, OverflowError):  # the latter for a time zone of many digits
            return max(WAIT_SECONDS, *(seconds for _, seconds in self.limits))
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - self.now())
