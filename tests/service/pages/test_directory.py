"""racedata.service.pages.directory: all names are there."""

import re

import pytest
from support.answers import client, words_of
from support.loads import select


def links_to(kind, html):
    """The links to pages of a kind, with their texts."""
    return re.findall(rf'<a href="\./{kind}/([\w-]+)">([^<]*)</a>', html)


def test_every_driver_with_a_start_has_a_link(sample, sample_database):
    links = {id for id, _ in links_to("drivers", sample.get("/drivers").text)}
    started = select(sample_database, "SELECT DISTINCT driverRef FROM race_results WHERE isStart")
    assert links == {reference for (reference,) in started}


@pytest.mark.parametrize("kind", ["constructors", "circuits"])
def test_every_constructor_and_circuit_has_a_link(sample, sample_database, kind):
    links = {id for id, _ in links_to(kind, sample.get(f"/{kind}").text)}
    rows = select(sample_database, f"SELECT {kind[:-1]}Ref FROM {kind}")
    assert links == {reference for (reference,) in rows}


def test_circuits_are_by_country_those_with_most_races_first(full_database):
    html = client(full_database).get("/circuits").text
    countries = re.findall('<dt>(.*?)</dt><dd class="found">(.*?)</dd>', html, re.S)
    assert [name for name, _ in countries] == sorted(name for name, _ in countries)
    rows = select(full_database, "SELECT country, count(*) FROM circuits GROUP BY country")
    assert {name: len(links_to("circuits", part)) for name, part in countries} == dict(rows)
    (italy,) = (words_of(part) for name, part in countries if name == "Italy")
    monza, imola = italy.index("Monza"), italy.index("Imola")
    assert monza < imola < italy.index("Mugello")
    for _, part in countries:
        races = [int(number) for number in re.findall(r", (\d+) races?<", part)]
        assert races == sorted(races, reverse=True)
