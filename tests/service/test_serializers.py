"""racedata.service.serializers: what a value looks like on the wire."""

import pytest

from racedata.service import serializers


@pytest.mark.parametrize(
    ("format_time", "time", "winner", "text"),
    [
        (serializers.race_time, 5133607, 5133607, "1:25:33.607"),
        (serializers.race_time, 5138762, 5133607, "1:25:38.762"),
        (serializers.race_time, 207071, 207071, "0:03:27.071"),
        (serializers.race_time, 0, 0, "0:00:00.000"),
        (serializers.sprint_time, 1538426, 1538426, "25:38.426"),
        (serializers.sprint_time, 540001, 1, "09:00.001"),
        (serializers.sprint_time, 3600000, 1, "1:00:00.000"),
        (serializers.gap_time, 5133607, 5133607, "1:25:33.607"),
        (serializers.gap_time, 207071, 207071, "3:27.071"),
        (serializers.gap_time, 5138762, 5133607, "+5.155"),
        (serializers.gap_time, 5197885, 5133607, "+1:04.278"),
        (serializers.gap_time, 8733608, 5133607, "+1:00:00.001"),
        (serializers.gap_time, 4797040, 4797566, "1:19:57.040"),
        (serializers.gap_time, 4797040, None, "1:19:57.040"),
    ],
)
def test_a_time_is_written(format_time, time, winner, text):
    assert format_time(time, winner) == text


def test_a_shared_object_is_written_once_for_all_answers():
    driver = serializers.Shared({"driverId": "räikkönen"})
    assert serializers.written({"Driver": driver}) == '{"Driver":{"driverId":"räikkönen"}}'.encode()
    driver["code"] = "RAI"
    assert serializers.written({"Driver": driver}) == '{"Driver":{"driverId":"räikkönen"}}'.encode()
