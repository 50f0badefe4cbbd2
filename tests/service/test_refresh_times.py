"""racedata.service.refresh_times: the store is read again when it changes, and only then."""

from support.loads import remember

from racedata.database import store_path
from racedata.service.refresh_times import RefreshTimes

AT, LATER = "2026-11-22T06:00:00Z", "2026-11-23T06:00:00Z"


def test_until_the_store_changes_the_times_are_the_same_object(several_sources):
    remember(several_sources, {"f1db": {"refreshedAt": AT, "followedSince": AT}})
    times = RefreshTimes(str(several_sources))
    first = times.by_source()
    assert first == {"f1db": {"refreshedAt": AT, "followedSince": AT}}
    assert times.by_source() is first
    remember(several_sources, {"f1db": {"refreshedAt": LATER}})
    assert times.by_source()["f1db"]["refreshedAt"] == LATER


def test_a_source_that_was_never_asked_has_no_time(several_sources):
    remember(several_sources, {"f1db": {"followedSince": AT}, "later": {"refreshedAt": AT}})
    assert RefreshTimes(str(several_sources)).asked_at() == {"later": AT}


def test_when_the_store_is_gone_there_are_no_times(several_sources):
    remember(several_sources, {"f1db": {"refreshedAt": AT}})
    times = RefreshTimes(str(several_sources))
    assert times.asked_at() == {"f1db": AT}
    store_path(several_sources).unlink()
    assert times.by_source() == {}
