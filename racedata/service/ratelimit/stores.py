"""The interface of a limit store, and the choice of one by the settings.

The middleware knows only the interface.
"""

import shlex
import sys
from collections.abc import Sequence
from typing import Protocol

from racedata.service.ratelimit.bucket import Decision
from racedata.service.ratelimit.local_store import LocalStore
from racedata.settings import Rate, SettingError, Settings


class LimitStore(Protocol):
    """Holds the buckets of all clients. Threads and processes may call `take` at the same time."""

    @property
    def limits(self) -> Sequence[Rate]: ...

    def take(self, client: bytes) -> Decision:
        """Takes a token for `client` from the bucket of each limit, or from none."""


def store_for(settings: Settings) -> LimitStore | None:
    """The limit store that the settings name; None if all limits are off. Raises SettingError."""
    if not settings.rate_limits:
        return None
    local = LocalStore(settings.rate_limits)
    if settings.limit_store == "local":
        return local
    try:
        # Imported here, because `redis` is an extra, and its import takes half as long as all other
        # imports together.
        from racedata.service.ratelimit.redis_store import RedisStore

        return RedisStore(settings.limit_store, local)
    except ImportError:
        raise SettingError(
            "RACEDATA_LIMIT_STORE names a Redis server, but the redis package is not installed: "
            f"run {shlex.quote(sys.executable)} -m pip install 'racedata-f1[redis]'"
        ) from None
    except ValueError as error:  # the message omits the URL, which may contain a password
        raise SettingError(f"RACEDATA_LIMIT_STORE: {error}") from None
