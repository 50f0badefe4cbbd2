"""The pace of requests, with a clock that only sleeping moves."""

import pytest

from racedata.loader.sources import source_at
from racedata.loader.sources.pace import Pace


@pytest.mark.parametrize(("host", "per_hour"), [("api.jolpi.ca", 200), ("f1.example.org", None)])
def test_only_jolpicas_own_host_is_asked_at_most_200_times_an_hour(host, per_hour):
    limits = source_at(f"https://{host}/ergast/f1").pace.limits
    assert dict((seconds, count) for count, seconds in limits).get(3600) == per_hour
    assert limits[0] == (4, 1)


def test_requests_of_an_earlier_run_count_for_limits_over_more_than_a_minute():
    """The program starts again after ten minutes: its clock has begun at zero again."""
    first = Pace(clock=lambda: 5000.0, sleep=lambda seconds: None, now=lambda: 1_800_000_000)
    first.limits = ((4, 1), (2, 3600))
    for _ in range(2):
        with first.turn(lambda text: None):
            pass
    slept = []
    second = Pace(clock=lambda: 0.0, sleep=slept.append, now=lambda: 1_800_000_600)
    second.limits = first.limits
    second.resume(first.counted_requests())
    with second.turn(lambda text: None):
        assert slept == [3000]
    third = Pace(clock=lambda: 0.0, sleep=slept.append, now=lambda: 1_799_999_000)
    third.resume(first.counted_requests())
    assert third.ends == [0, 0]  # the clock has been set back since


def test_without_a_limit_over_more_than_a_minute_no_request_is_remembered():
    pace = Pace()
    with pace.turn(lambda text: None):
        pass
    assert pace.counted_requests() == []
