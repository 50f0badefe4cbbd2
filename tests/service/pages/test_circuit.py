"""racedata.service.pages.circuit: winners, layouts and lap records."""

import re

from support import PACKAGE
from support.answers import asking, links_of, words_of
from support.loads import select

from racedata.formats import milliseconds
from racedata.service.outlines import layouts_of
from racedata.service.pages import circuit
from racedata.service.pages.races import most


def test_the_outlines_of_a_circuit_are_in_the_page_with_their_source_and_licence(sample):
    html = sample.get("/circuits/monza").text
    layouts = layouts_of("monza")
    assert re.findall('<path d="([^"]+)"', html) == [each.path for each in reversed(layouts)]
    assert "by f1db, under CC BY 4.0" in html
    licence = (PACKAGE / "service" / "outlines-licence.txt").read_text(encoding="utf-8")
    assert licence.startswith("CC BY 4.0\n")
    sources = {"https://github.com/f1db/f1db", "https://creativecommons.org/licenses/by/4.0/"}
    assert sources <= {*links_of(html)} & {*re.findall(r"\((https:[^)]+)\)", licence)}
    page = words_of(html)
    assert "Length 5.793 km Turns 11 Direction clockwise" in page
    assert "Layout of 1955 to 1956, 1960 to 1961 10.000 km, 7 turns, clockwise" in page


def test_those_who_won_most_often_are_first_and_both_drivers_of_a_shared_car_have_won():
    def winner(name):
        return {"driverId": name}

    won = [*"abbcccddddeeefffgghhiijjkkllmm"]
    found = most(map(winner, won))
    assert [(each["driverId"], number) for each, number in found][:2] == [("d", 4), ("c", 3)]
    assert len(found) == 12  # those with as many wins as the tenth too, and not who won once
    assert most(map(winner, "ab")) == []


def test_the_facts_of_every_circuit_of_a_full_dump_are_those_of_the_views(full_database):
    ask = asking(full_database)
    wins = {
        (ref, driver): number
        for ref, driver, number in select(
            full_database,
            """SELECT circuitRef, driverRef, count(DISTINCT date) FROM race_results
               WHERE isWinner GROUP BY 1, 2""",
        )
    }
    laps = dict(
        select(
            full_database,
            """SELECT circuitRef, min(fastestLapSeconds) FROM race_results
               WHERE rank = 1 GROUP BY circuitRef""",
        )
    )
    for reference in ask.catalogue.ids["circuits"]:
        facts = circuit.facts(ask, reference)
        for driver, number in facts["most_drivers"]:
            assert wins[reference, driver["driverId"]] == number
        records = [lap for track in facts["tracks"] for lap in track.records]
        best = min((milliseconds(lap["time"]) / 1000 for lap in records), default=None)
        assert best == laps.get(reference)
        assert not [track for track in facts["tracks"] if track.layout is None]
    bahrain = circuit.facts(ask, "bahrain")["tracks"]
    records = [(track.layout.length, track.records[0]["race"]["season"]) for track in bahrain]
    assert records == [("5.412", "2004"), ("3.543", "2020"), ("6.299", "2010")]
