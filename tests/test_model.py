"""racedata.model: whatever lists kinds of records or tables knows each of them."""

import sqlite3
from contextlib import closing

import pytest

from racedata.database import SCHEMA
from racedata.loader.compare.differences import groups_of
from racedata.loader.compare.sides import IDENTIFIED, compared_columns
from racedata.loader.existing import expected_records, open_read_only
from racedata.loader.sources.ergast_files import ERGAST, OTHERS
from racedata.model import (
    API_ENDPOINTS,
    DECLARED,
    KIND_BY_GROUP,
    KINDS,
    LIST_BY_SINGULAR,
    RECORDS,
    SESSION_GROUPS,
    SESSIONS,
    TABLE_BY_NAME,
    TABLE_OF,
)
from racedata.service.endpoints import ENDPOINTS
from racedata.service.schemas import OPENAPI

WITH_ENDPOINT = [kind for kind in KINDS.values() if kind.endpoint]


@pytest.fixture(scope="module")
def columns():
    """The columns of each table, with their places in the primary key, from 1; 0 if they are not in
    it.
    """
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return {
            name: {row[1]: row[5] for row in db.execute(f"PRAGMA table_info({name})")}
            for name in tables
        }


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_table_of_a_kind_has_its_columns(kind, columns):
    assert {column.name for column in kind.facts} <= {*columns[kind.in_table or kind.name]}


@pytest.mark.parametrize("kind", [*KINDS, *IDENTIFIED, "races", "sessions"])
def test_each_column_that_is_compared_has_a_group_of_differences(kind):
    compared = compared_columns(kind)
    assert compared and all(groups_of(TABLE_OF[kind].name, column) for column in compared)


@pytest.mark.parametrize("table", TABLE_BY_NAME)
def test_an_export_has_a_file_for_each_table_that_a_source_fills(table):
    assert table in {*ERGAST, *OTHERS}


@pytest.mark.parametrize("kind", WITH_ENDPOINT, ids=lambda kind: kind.name)
def test_a_kind_is_numbered_as_its_primary_key_says(kind, columns):
    key = [
        name
        for name, place in sorted(columns[kind.name].items(), key=lambda each: each[1])
        if place
    ]
    assert key == (["raceId", "record"] if kind.is_numbered_by_race else ["record"])
    assert TABLE_BY_NAME[kind.name].is_numbered


def test_each_table_with_records_of_sessions_is_a_kind():
    assert {*KINDS} == {table.name for table in DECLARED if table.sessions}


def test_the_follower_expects_each_kind_after_its_sessions(sample_database):
    with closing(open_read_only(sample_database)) as db:
        expected = {(each.kind, each.session) for each in expected_records(db)}
    # The sample has no race with three practices and a sprint, but these are the only sessions it
    # lacks.
    named = {(name, session) for name in RECORDS for session in KINDS[name].sessions}
    assert {kind for kind, _ in expected} == {*RECORDS}
    assert expected <= named


@pytest.mark.parametrize("kind", WITH_ENDPOINT, ids=lambda kind: kind.name)
def test_a_kind_has_its_endpoint_in_the_service_in_its_description_and_in_an_api(kind, sample):
    (endpoint,) = [endpoint for endpoint in ENDPOINTS if endpoint.name == kind.endpoint]
    assert (endpoint.table_key, endpoint.objects_key, endpoint.records_key) == kind.keys[:3]
    assert f"/{{season}}/{{round}}/{kind.endpoint}" in sample.get("/openapi.json").json["paths"]
    assert endpoint.schema in OPENAPI["components"]["schemas"]
    assert API_ENDPOINTS[kind.endpoint].keys == kind.keys
    assert f'<section id="{kind.endpoint}">' in sample.get("/docs").text


@pytest.mark.parametrize("table", LIST_BY_SINGULAR.values(), ids=LIST_BY_SINGULAR)
def test_a_list_has_its_ids_in_a_column_with_the_name_of_one_row(table, columns):
    assert columns[table.name][table.id_key] == 1  # its whole primary key


@pytest.mark.parametrize("group", SESSION_GROUPS)
def test_the_kind_of_a_group_is_published_after_each_of_its_sessions(group):
    kind = KIND_BY_GROUP[group]
    assert {session.name for session in SESSIONS if session.group == group} == {*kind.sessions}


def test_the_sessions_of_the_kinds_exist_and_each_is_in_a_group_of_calendars():
    names = {session.name for session in SESSIONS}
    assert {name for kind in KINDS.values() for name in kind.sessions} == names
    assert {session.group for session in SESSIONS} == {*SESSION_GROUPS}
