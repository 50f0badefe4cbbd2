"""racedata.loader.sources.api_rows: a wrong value of an API is refused with its place."""

import shutil
from pathlib import Path

import pytest
from support.answers import client
from support.apis import answers_of, refreshed, served
from support.loads import (
    changed,
)
from support.refreshes import state

from racedata.loader.errors import LoadError


def test_a_wrong_value_is_refused_with_its_place(api, behind):
    before = state(behind.parent)
    for wrong, right, place in [
        (b'"millis":"x', b'"millis":"', "record 1, Time.millis: 'x"),
        (b'"driverId":"../', b'"driverId":"', "'../"),
        (b'"grid":"\xc2\xb2', b'"grid":"', "record 1, grid: '²"),
        (b'"points":"1e', b'"points":"', "points: '1e"),
        (b'"Driver":"x","y":{', b'"Driver":{', "record 1, Driver.driverId: missing"),
    ]:
        api.paths.clear()
        api.faults = {
            2: lambda body, wrong=wrong, right=right: (200, {}, body.replace(right, wrong))
        }
        with pytest.raises(LoadError, match=r"2023, Austrian Grand Prix") as caught:
            refreshed(behind, api.url)
        assert place in str(caught.value)
        assert state(behind.parent) == before


def test_a_driver_who_is_twice_in_a_session_is_refused_with_the_place(complete, behind, tmp_path):
    twice = changed(
        Path(shutil.copy(complete, tmp_path / "twice.db")),
        "UPDATE qualifying SET DRIVER(alonso) WHERE RACE(2023/18) AND DRIVER(stroll)",
    )
    place = "2023, United States Grand Prix, qualifying, record 19"
    said = f"{place}: 'alonso' appears twice; expected once"
    with served(answers_of(client(twice))) as server, pytest.raises(LoadError, match=said):
        refreshed(behind, server.url)
