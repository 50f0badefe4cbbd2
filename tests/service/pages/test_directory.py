"""racedata.service.pages.directory: all names are there."""

import re

from support.answers import client, words_of
from support.loads import select


def links_to(kind, html):
    """The links to pages of a kind, with their texts."""
    return re.findall(rf'<a href="\./{kind}/([\w-]+)">([^<]*)</a>', html)


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
