"""racedata.loader.sources.history: whether an API is asked for laps."""

import pytest
from support.loads import changed

from racedata.loader.sources import History


@pytest.mark.parametrize("checksum", [None, "0" * 64], ids=["an API", "a dump"])
def test_a_source_without_a_checksum_is_an_api_whatever_its_address_is(database, checksum):
    value = f"'{checksum}'" if checksum else "NULL"
    changed(
        database,
        f"UPDATE sources SET address = 'https://example.org', checksum = {value}, isLoaded = 0",
        "UPDATE origins SET fetchedAt = '2023-07-02T13:00:00Z'",
    )
    with History(database, "").database() as old:
        assert old.without_laps(also_from_apis=True)
        assert bool(old.without_laps(also_from_apis=False)) is bool(checksum)
