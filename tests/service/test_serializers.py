"""racedata.service.serializers: where each column of a record goes. test_oracle.py has the rest."""

import pytest

from racedata.formats import short_time
from racedata.service import queries, serializers


class Entrants(dict):
    """Drivers and constructors by any number, which is their id."""

    def __missing__(self, id):
        return {"driverId": id, "constructorId": id}


ENTRANTS = Entrants()
NUMBERS = {number: number for number in range(100)}


def result(row, drivers, constructors):
    return serializers.result(row, drivers, constructors, NUMBERS, serializers.gap_time, None)


def timing(row, drivers, _):
    (lap,) = serializers.laps([row], drivers)
    return {"lap": lap["number"], **lap["Timings"][0]}


@pytest.mark.parametrize(
    ("table", "record"),
    [
        (queries.RESULTS, result),
        (queries.SPRINT, result),
        (queries.QUALIFYING, serializers.qualifying_result),
        (queries.SPRINT_QUALIFYING, serializers.qualifying_result),
        (queries.PRACTICE, serializers.practice_result),
        (queries.LAPS, timing),
        (queries.PITSTOPS, serializers.pit_stop),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_each_column_of_a_record_is_at_its_path(table, record):
    row = range(10, 10 + len(table.columns))  # each value is another number
    found = record(row, ENTRANTS, ENTRANTS)
    for column, value in zip(table.columns, row):
        if column in table.kind.paths:
            place = found
            for key in table.kind.paths[column].split("."):
                place = place[key]
            is_duration = table.kind.paths[column] == "duration"
            assert str(place) == (short_time(value) if is_duration else str(value)), column
