"""racedata.service.pages.career_queries: what is counted is what the views count."""

from collections import defaultdict

import pytest
from support.answers import Counted
from support.loads import changed, select

from racedata.service.pages import career_queries
from racedata.service.snapshot import Snapshot

COLUMNS = {
    "driverId": ("drivers", "driverRef"),
    "constructorId": ("constructors", "constructorRef"),
}
RACE = "year || '/' || round"


def ids_of(database, column):
    """The ids of all drivers or constructors, with their references."""
    table, reference = COLUMNS[column]
    return select(database, f"SELECT {column}, {reference} FROM {table}")


def counted_by_views(database, column):
    """By reference, season and name, what the views count."""
    _, ref = COLUMNS[column]
    podium = RACE if column == "driverId" else f"{RACE} || ' ' || position"
    found = defaultdict(dict)
    for name, what, condition in [
        ("starts", f"count(DISTINCT {RACE})", "isStart"),
        ("wins", f"count(DISTINCT {RACE})", "isWinner"),
        ("poles", f"count(DISTINCT {RACE})", "TRUE"),
        ("podiums", f"count(DISTINCT {podium})", "position BETWEEN 1 AND 3"),
        ("first", "min(round)", "isStart"),
        ("last", "max(round)", "isStart"),
    ]:
        view = "poles" if name == "poles" else "race_results"
        sql = f"SELECT {ref}, year, {what} FROM {view} WHERE {condition} GROUP BY {ref}, year"
        for reference, year, number in select(database, sql):
            found[reference, year][name] = number
    return found


@pytest.mark.parametrize("column", COLUMNS)
def test_the_seasons_of_a_career_are_those_of_the_views(any_database, column):
    data, views = Snapshot.read(str(any_database)), counted_by_views(any_database, column)
    for id, reference in ids_of(any_database, column):
        for row in career_queries.seasons(data, column, id):
            expected = views.pop((reference, row["year"]), {})
            assert {**dict(row), "year": None} == {
                "year": None,
                **dict.fromkeys(("starts", "wins", "poles", "podiums"), 0),
                **dict.fromkeys(("first", "last"), None),
                **expected,
            }
    assert not views


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("part", [1, 7, 5000])
def test_the_races_of_all_are_those_of_each_however_many_results_a_statement_reads(
    sample_database, monkeypatch, column, part
):
    monkeypatch.setattr(career_queries, "PART", part)
    data = Counted.read(sample_database)
    drives = [*career_queries.drives(data, column)]
    assert (data.queries == 2) == (part == 5000)  # the second finds no more
    ids = [row["id"] for row in drives]
    assert ids == sorted(ids)
    for id, _ in ids_of(sample_database, column):
        races = [row for row in drives if row["id"] == id]
        seasons = career_queries.seasons(data, column, id)
        assert sum(row["isStart"] for row in races) == sum(row["starts"] for row in seasons)
        assert sum(row["place"] == 1 for row in races) == sum(row["wins"] for row in seasons)
        assert sum(bool(row["isPole"]) for row in races) == sum(row["poles"] for row in seasons)


def compared_by_views(database, view, condition):
    """By year, constructor and pair of drivers: together, ahead, behind; from a view."""
    places = defaultdict(dict)
    sql = f"SELECT year, round, constructorRef, driverRef, position FROM {view} WHERE {condition}"
    for year, round, constructor, driver, place in select(database, sql):
        cars = places[year, round, constructor]
        known = [each for each in (cars.get(driver), place) if each is not None]
        cars[driver] = min(known, default=None)
    found = defaultdict(lambda: [0, 0, 0])
    for (year, _, constructor), cars in places.items():
        for own, place in cars.items():
            for mate, other in cars.items():
                if mate != own:
                    score = found[own, year, constructor, mate]
                    score[0] += 1
                    if place is not None and other is not None:
                        score[1] += place < other
                        score[2] += place > other
    return found


def test_team_mates_are_compared_by_the_places_in_the_views(any_database):
    database, data = any_database, Snapshot.read(str(any_database))
    drivers = dict(ids_of(database, "driverId"))
    constructors = dict(ids_of(database, "constructorId"))
    for compared, view, condition in [
        (career_queries.compared_in_races, "race_results", "isStart"),
        (career_queries.compared_in_qualifying, "qualifying_results", "TRUE"),
    ]:
        found = {
            (reference, row["year"], constructors[row["constructorId"]], drivers[row["mate"]]): [
                row["together"],
                row["ahead"],
                row["behind"],
            ]
            for id, reference in drivers.items()
            for row in compared(data, id)
        }
        assert found
        assert found == compared_by_views(database, view, condition)


def test_nobody_is_ahead_in_a_shared_car_or_without_a_place(database):
    def score(*statements):
        data = Snapshot.read(str(changed(database, *statements)))
        (moss,) = select(database, "SELECT driverId FROM drivers WHERE driverRef = 'moss'")
        (brooks,) = select(database, "SELECT driverId FROM drivers WHERE driverRef = 'brooks'")
        return [
            (row["together"], row["ahead"], row["behind"])
            for row in career_queries.compared_in_races(data, *moss)
            if row["mate"] == brooks[0]
        ]

    # Both won the British Grand Prix in the same car.
    ((together, ahead, behind),) = score("UPDATE results SET laps = laps WHERE RACE(1957/5)")
    won = "WHERE RACE(1957/5) AND positionText = '1' AND DRIVER(brooks)"
    assert score(f"UPDATE results SET positionText = '2' {won}") == [(together, ahead + 1, behind)]
    assert score("UPDATE results SET positionText = 'R' WHERE RACE(1957/5) AND DRIVER(brooks)") == [
        (together, ahead, behind)
    ]


def test_the_lists_for_finding_count_the_same_starts(sample_database):
    data = Snapshot.read(str(sample_database))
    for column in COLUMNS:
        rows = career_queries.all_starts(data, column)
        for id, _ in ids_of(sample_database, column):
            seasons = career_queries.seasons(data, column, id)
            assert sum(row["starts"] for row in seasons) == (rows[id]["races"] if id in rows else 0)
            years = [row["year"] for row in seasons if row["starts"]]
            if years:
                assert (rows[id]["first"], rows[id]["last"]) == (years[0], years[-1])
