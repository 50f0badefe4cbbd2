"""The pace of the requests to a source, and its clock."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime

from racedata.formats import counted
from racedata.loader.errors import Progress
from racedata.values import whole_number

# How many requests, in how many seconds. A source may set its own limits.
PACE = ((4, 1),)
WAIT_SECONDS = 30  # after a refusal without Retry-After, at least
LONGEST_REFUSAL = 86_400  # seconds for which a refusal is believed: a day


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

    def begin(self, progress: Progress) -> None:
        """Waits until one more request keeps to the limits.

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

    def retry_after(self, header: str | None) -> float | None:
        """The seconds of a Retry-After header, which has them or a date (RFC 9110, section 10.2.3);
        None if it has neither; at most a day. Without a header, a limit may refuse for as long as
        it counts.
        """
        if header is None:
            return max(WAIT_SECONDS, *(seconds for _, seconds in self.limits))
        if whole_number.fullmatch(header.strip()):
            return min(int(header), LONGEST_REFUSAL)
        try:
            date = parsedate_to_datetime(header)
        except (ValueError, OverflowError):  # OverflowError: a year or an offset of many digits
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return min(max(0.0, date.timestamp() - self.now()), LONGEST_REFUSAL)

    def end(self) -> None:
        self.ends.append(self.clock())
        del self.ends[: -max(count for count, _ in self.limits)]
