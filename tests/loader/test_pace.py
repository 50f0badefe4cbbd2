"""The pace of requests, with a clock that only sleeping moves."""

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
