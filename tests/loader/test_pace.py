from racedata.loader.sources.pace import Pace


def requests_in(pace, clock, seconds):
    """How many requests a program sends that sends as many as it may."""
    sent = 0
    while clock[0] < seconds:
        pace.begin(lambda text: None)
        pace.end()
        sent += 1
    return sent


def test_a_source_may_set_limits_larger_than_the_default_and_they_are_kept_to():
    clock = [0.0]

    def sleep(seconds):
        clock[0] += seconds

    pace = Pace(clock=lambda: clock[0], sleep=sleep)
    pace.limits = ((1_000, 60),)
    assert requests_in(pace, clock, 60) == 1_001
    assert requests_in(pace, clock, 120) == 1_000
