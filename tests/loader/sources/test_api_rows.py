"""racedata.loader.sources.api_rows: a wrong value of an API is refused with its place."""

import json
import random
import shutil
from pathlib import Path

import pytest
from support.answers import client
from support.apis import answers_of, refreshed, served
from support.loads import (
    changed,
)
from support.refreshes import RENAMED, state

from racedata.database import store_path
from racedata.loader.errors import LoadError


def test_a_wrong_value_is_refused_with_its_place(api, behind):
    before = state(behind.parent)
    for wrong, right, place in [
        (b'"millis":"x', b'"millis":"', "record 1, Time.millis: 'x"),
        (b'"driverId":"../', b'"driverId":"', "'../"),
        (b'"grid":"\xc2\xb2', b'"grid":"', "record 1, grid: '²"),
        (b'"points":"1e', b'"points":"', "points: '1e"),
    ]:
        api.paths.clear()
        api.faults = {
            2: lambda body, wrong=wrong, right=right: (200, {}, body.replace(right, wrong))
        }
        with pytest.raises(LoadError, match=r"2023, Austrian Grand Prix") as caught:
            refreshed(behind, api.url)
        assert place in str(caught.value)
        assert state(behind.parent) == before


def with_wrong(body, path, value):
    """An answer with a calendar in which a field of round 9 of 2023 has another value."""
    answer = json.loads(body)
    race = answer["MRData"]["RaceTable"]["Races"][8]
    for name in path[:-1]:
        race = race[name]
    race[path[-1]] = value
    return json.dumps(answer).encode()


def fields_of(value, path=()):
    """The paths of all fields in an object, at any depth."""
    for name, inner in value.items():
        yield (*path, name)
        if isinstance(inner, dict):
            yield from fields_of(inner, (*path, name))


NESTED = json.loads("[" * 900 + "]" * 900)


WRONG = [
    None,
    1,
    -1.5,
    True,
    [],
    {},
    ["x"],
    {"x": "y"},
    "",
    "\ud800",
    "\x00",
    "x" * 2000,
    "a\nb",
    10**400,
    NESTED,
]


@pytest.mark.long
def test_any_wrong_type_in_a_calendar_is_one_line_that_names_the_place_or_is_left_out(api, behind):
    calendar = json.loads(api.answer("/ergast/f1/2023/races.json?limit=2000")[2])
    race = calendar["MRData"]["RaceTable"]["Races"][8]
    content, refused = changed(behind, RENAMED).read_bytes(), 0
    for path in fields_of(race):
        for value in random.sample(WRONG, 3):
            api.paths.clear()
            body = with_wrong(json.dumps(calendar).encode(), path, value)
            api.faults = {1: lambda _, body=body: (200, {}, body)}
            try:
                refreshed(behind, api.url)
            except LoadError as error:
                said = str(error)
                assert said.startswith(api.url) and (
                    "; expected" in said or "does not have" in said
                )
                assert len(said) < 400 and "\n" not in said
                assert behind.read_bytes() == content
                refused += 1
            behind.write_bytes(content)
            store_path(behind).unlink(missing_ok=True)
    assert refused


def test_a_driver_who_is_twice_in_a_session_is_refused_with_the_place(complete, behind, tmp_path):
    twice = changed(
        Path(shutil.copy(complete, tmp_path / "twice.db")),
        "UPDATE qualifying SET DRIVER(alonso) WHERE RACE(2023/18) AND DRIVER(stroll)",
    )
    place = "2023, United States Grand Prix, qualifying, record 19"
    said = f"{place}: 'alonso' appears twice; expected once"
    with served(answers_of(client(twice))) as server, pytest.raises(LoadError, match=said):
        refreshed(behind, server.url)
