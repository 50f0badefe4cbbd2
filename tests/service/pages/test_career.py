"""racedata.service.pages.career: what the views count, and team mates."""

from collections import defaultdict

import pytest
from support.answers import asking
from support.loads import select

from racedata.service.pages import career


def sums(database, sql):
    return {reference.lower(): values for reference, *values in select(database, sql)}


@pytest.mark.parametrize(
    ("who", "podium"),
    [
        ("driver", "year || '/' || round"),
        ("constructor", "year || '/' || round || ' ' || position"),
    ],
)
def test_the_numbers_on_each_page_are_those_of_the_views(any_database, who, podium):
    database, ask = any_database, asking(any_database)
    race, ref, view = "year || '/' || round", f"{who}Ref", f"{who}_championship"
    results = sums(
        database,
        f"""SELECT {ref}, count(DISTINCT iif(isStart, {race}, NULL)),
                count(DISTINCT iif(isWinner, {race}, NULL)),
                (SELECT count(*) FROM poles WHERE poles.{ref} = race_results.{ref}),
                count(DISTINCT iif(position <= 3, {podium}, NULL)),
                min(iif(isStart, date, NULL)), max(iif(isStart, date, NULL))
            FROM race_results GROUP BY {ref}""",
    )
    points = sums(database, f"SELECT {ref}, sum(points) FROM weekend_points GROUP BY {ref}")
    titles = sums(
        database,
        f"SELECT {ref}, group_concat(year, ' ') FROM (SELECT * FROM {view} ORDER BY year) "
        f"WHERE isChampion GROUP BY {ref}",
    )
    drivers_titles = sums(
        database,
        "SELECT constructorRef, count(*) FROM driver_championship "
        "WHERE isChampion AND constructorRef IS NOT NULL GROUP BY constructorRef",
    )
    # The drivers that a page names after a win: the other winners, or all of the constructor.
    winners = {}
    for reference, *win in select(
        database,
        f"""SELECT own.{ref}, year, round, other.driverRef
            FROM race_results AS own JOIN race_results AS other USING (year, round)
            WHERE own.isWinner AND other.isWinner
                AND own.{ref} {"<>" if who == "driver" else "="} other.{ref}""",
    ):
        winners.setdefault(reference.lower(), set()).add(tuple(win))
    for reference in ask.catalogue.ids[f"{who}s"]:
        facts = getattr(career, who)(ask, reference)
        dates = [race["date"] for race in facts["first_and_last"]]
        totals = [facts["totals"][name] for name in ("starts", "wins", "poles", "podiums")]
        expected = results.get(reference, [0] * 4 + [None] * 2)
        assert [*totals, *dates] == [each for each in expected if each is not None]
        said = float(facts["points"].replace(",", ""))
        assert said == pytest.approx((points.get(reference) or [0])[0] or 0, abs=0.005)
        assert " ".join(map(str, facts["titles"])) == titles.get(reference, [""])[0]
        wins = [
            (race, drivers)
            for _, of_season in facts["wins"]
            for drivers, races in of_season
            for race in races
        ]
        assert len(wins) == totals[1]
        named = {
            (int(race["season"]), int(race["round"]), driver["driverId"])
            for race, drivers in wins
            for driver in drivers
        }
        assert named == winners.get(reference, set())
        if who == "constructor":
            assert len(facts["drivers_titles"]) == drivers_titles.get(reference, [0])[0]


def test_the_points_of_a_page_have_no_noise():
    assert [career.number(points) for points in (0, 2377.0, 277.64000000000004, 11587.77)] == [
        "0",
        "2,377",
        "277.64",
        "11,587.77",
    ]


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
    ask, races, qualifyings = asking(any_database), {}, {}
    for driver in ask.catalogue.drivers.values():
        for row in ask.rows("mates", driver["driverId"]):
            year, constructor, mate, *numbers = row
            key = driver["driverId"], year, constructor, mate
            for found, score in ((races, numbers[:3]), (qualifyings, numbers[3:])):
                if score != [0, 0, 0]:
                    found[key] = score
    assert races == compared_by_views(any_database, "race_results", "isStart") != {}
    assert qualifyings == compared_by_views(any_database, "qualifying_results", "TRUE") != {}
