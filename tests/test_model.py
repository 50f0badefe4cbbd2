"""racedata.model: whatever lists kinds of records or tables knows each of them."""

from contextlib import closing

import pytest

from racedata.loader.compare.differences import groups_of
from racedata.loader.compare.sides import IDENTIFIED, compared_columns
from racedata.loader.existing import expected_records, open_read_only
from racedata.loader.sources.ergast_files import ERGAST, OTHERS
from racedata.model import (
    API_ENDPOINTS,
    DECLARED,
    KIND_BY_GROUP,
    KINDS,
    RECORDS,
    SESSION_GROUPS,
    SESSIONS,
    TABLE_BY_NAME,
    TABLE_OF,
)
from racedata.service.endpoints import ENDPOINTS
from racedata.service.schemas import OPENAPI

WITH_ENDPOINT = [kind for kind in KINDS.values() if kind.endpoint]


@pytest.mark.parametrize("kind", [*KINDS, *IDENTIFIED, "races", "sessions"])
def test_each_column_that_is_compared_has_a_group_of_differences(kind):
    compared = compared_columns(kind)
    assert compared and all(groups_of(TABLE_OF[kind].name, column) for column in compared)


@pytest.mark.parametrize("table", TABLE_BY_NAME)
def test_an_export_has_a_file_for_each_table_that_a_source_fills(table):
    assert table in {*ERGAST, *OTHERS}


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


@pytest.mark.parametrize("group", SESSION_GROUPS)
def test_the_kind_of_a_group_is_published_after_each_of_its_sessions(group):
    kind = KIND_BY_GROUP[group]
    assert {session.name for session in SESSIONS if session.group == group} == {*kind.sessions}


def test_the_sessions_of_the_kinds_exist_and_each_is_in_a_group_of_calendars():
    names = {session.name for session in SESSIONS}
    assert {name for kind in KINDS.values() for name in kind.sessions} == names
    assert {session.group for session in SESSIONS} == {*SESSION_GROUPS}
