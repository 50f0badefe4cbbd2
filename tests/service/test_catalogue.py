"""racedata.service.catalogue: the objects of a database."""

from racedata.service.catalogue import Catalogue
from racedata.service.snapshot import Snapshot


def test_what_comes_is_in_order_and_begins_after_the_last_race_with_results(sample_database):
    catalogue = Catalogue(Snapshot.read(sample_database))
    rounds = [
        (catalogue.race_rows[id]["year"], catalogue.race_rows[id]["round"])
        for id in (catalogue.last_race, *catalogue.coming)
    ]
    assert rounds == [(2023, round) for round in (18, 19, 20, 21, 22)]
