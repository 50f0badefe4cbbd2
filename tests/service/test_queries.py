"""racedata.service.queries: which rows filters match, how pages are cut, and that indexes carry
every query.
"""

import itertools
from contextlib import suppress

import pytest
from support.answers import EXAMPLE_OF_FILTER

from racedata.service import queries
from racedata.service.addresses import Grammar, RefusedAddress
from racedata.service.catalogue import Catalogue
from racedata.service.content import Served
from racedata.service.endpoints import ENDPOINTS, RULES
from racedata.service.request import ParsedRequest
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings

GRAMMAR = Grammar("/ergast/f1", RULES)


@pytest.fixture(scope="module")
def data(sample_database):
    return Snapshot.read(sample_database)


class Recorded(Snapshot):
    """A database that records its queries: `{sql: values}`."""

    def rows(self, sql, values=()):
        vars(self).setdefault("queries", {})[sql] = values
        return super().rows(sql, values)


LARGE = (
    *("results", "entries", "qualifying", "practice", "lap_times", "pit_stops"),
    *("driver_standings", "constructor_standings"),
)


def addresses(endpoint):
    """The endpoint behind each front, with each set of filters that it takes."""
    for front in (
        ["/2023", "/2023/18"] if endpoint.rules.needs_season else ["", "/2023", "/2023/18"]
    ):
        for count in range(len(endpoint.rules.filters) + 1):
            for names in itertools.combinations(sorted(endpoint.rules.filters), count):
                filters = "".join(f"/{name}/{EXAMPLE_OF_FILTER[name]}" for name in names)
                with suppress(RefusedAddress):
                    yield GRAMMAR.parse(f"{front}{filters}/{endpoint.name}")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_no_address_scans_a_large_table_that_an_index_could_avoid(full_database, endpoint):
    # On a full dump: ANALYZE tells SQLite the sizes of tables, and it would rather scan the small
    # ones of the sample.
    data = Recorded.read(full_database)
    served = Served(data, Catalogue(data), Settings())
    checked = set()
    for address in addresses(endpoint):
        data.queries.clear()
        endpoint.answer(served, ParsedRequest(address, 10, 1, "http://localhost"))
        for sql, values in data.queries.copy().items():
            if sql not in checked and " WHERE " in sql:  # else all rows are needed
                steps = [row["detail"] for row in data.rows(f"EXPLAIN QUERY PLAN {sql}", values)]
                assert not [
                    step for step in steps if step.split()[:2] in [["SCAN", name] for name in LARGE]
                ], sql
            checked.add(sql)
    assert len(checked) > len(endpoint.rules.filters)


def instructions(data, filters, offset):
    """How many times SQLite's virtual machine asked to go on for 30 timings: a tenth of its
    instructions.
    """
    count = []
    data.connection.set_progress_handler(lambda: count.append(1), 10)
    assert len(queries.LAPS.page(data, filters, 30, offset)[1]) == 30
    data.connection.set_progress_handler(None, 0)
    return len(count)


@pytest.mark.parametrize("filters", [{"season": 2023}, {"race": 18}], ids=str)
def test_a_page_of_timings_costs_the_same_wherever_it_begins(data, filters):
    if "race" in filters:
        filters = {"race": Catalogue(data).id_of_round[2023, filters["race"]]}
    instructions(data, filters, 0)  # makes SQLite read the schema
    first = instructions(data, filters, 0)
    assert first > 10
    assert all(abs(instructions(data, filters, offset) - first) <= 2 for offset in (500, 980))
