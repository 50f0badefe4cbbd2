"""racedata.service.ratelimit.bucket, against a slow and obvious model of a token bucket."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from support.limits import BURST, NOW, SECOND

from racedata.service.ratelimit.bucket import take
from racedata.settings import Rate


class Model:
    """A token bucket as one would explain it: a number of tokens, and the time at which they were
    counted.
    """

    def __init__(self, limit):
        self.limit, self.tokens, self.now = limit, Fraction(limit.quota), NOW

    def refill(self, now):
        self.tokens = min(
            Fraction(self.limit.quota), self.tokens + Fraction(now - self.now, self.limit.interval)
        )
        self.now = now


LIMITS = st.builds(Rate, st.just("limit"), st.integers(1, 40), st.sampled_from([1, 7, 60, 3600]))


@given(
    st.lists(LIMITS, min_size=1, max_size=2),
    st.lists(st.integers(0, 3 * SECOND) | st.integers(0, 10**10)),
)
def test_the_bucket_decides_like_the_model(limits, pauses):
    now, full_at = NOW, [0] * len(limits)
    models = [Model(limit) for limit in limits]
    for pause in pauses:
        now += pause
        for model in models:
            model.refill(now)
        allowed = all(model.tokens >= 1 for model in models)
        if allowed:
            for model in models:
                model.tokens -= 1
        decision, full_at = take(limits, full_at, now)
        assert (decision.refused_by is None) == allowed
        assert decision.remaining == [model.tokens // 1 for model in models]
        assert decision.reset == [(m.limit.quota - m.tokens) * m.limit.interval for m in models]
        waits = [max(0, (1 - model.tokens) * model.limit.interval) for model in models]
        assert decision.wait == (0 if allowed else max(waits))
        if not allowed:
            assert decision.refused_by is limits[waits.index(max(waits))]


@given(LIMITS)
def test_an_empty_bucket_needs_its_window_to_fill_or_up_to_a_microsecond_per_token_more(limit):
    assert 0 <= limit.capacity - limit.window * SECOND < limit.quota


def test_a_state_stored_under_a_larger_limit_does_not_lock_a_client_out():
    decision, _ = take([BURST], [NOW + 86400 * SECOND], NOW)
    assert decision.wait == SECOND // 4
