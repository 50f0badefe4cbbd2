"""The pace of requests, with a clock that only sleeping moves."""

import pytest

from racedata.loader.sources import source_at
from racedata.loader.sources.pace import Pace


def test_a_source_may_set_limits_larger_than_the_default_and_they_are_kept_to():
    clock = [0.0]

    def sleep(seconds):
        clock[0] += seconds

    pace = Pace(clock=lambda: clock[0], sleep=sleep)
    pace.limits = ((1_000, 60),)
    times = []
    for _ in range(2_001):
        pace.begin(lambda text: None)
        times.append(clock[0])
        pace.end()
    assert times == [0.0] * 1_000 + [60.0] * 1_000 + [120.0]


@pytest.mark.parametrize(("host", "per_hour"), [("api.jolpi.ca", 200), ("f1.example.org", None)])
def test_only_jolpicas_own_host_is_asked_at_most_200_times_an_hour(host, per_hour):
    limits = source_at(f"https://{host}/ergast/f1").pace.limits
    assert dict((seconds, count) for count, seconds in limits).get(3600) == per_hour
    assert limits[0] == (4, 1)
