"""racedata.loader.sources.api: which seasons an API is asked for, and when it has news."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support import SAMPLE
from support.answers import bodies, client
from support.apis import answers_of, hurried, recorded_answers, refreshed, served
from support.loads import (
    RECORDS,
    built,
    changed,
    loader_settings,
    race_ids,
    rows_of,
    without,
)
from support.refreshes import like_jolpica, moved, with_a_penalty

from racedata.loader.corrections import CORRECTIONS
from racedata.loader.errors import LoadError
from racedata.loader.load import load
from racedata.loader.refresh import Refresh
from racedata.loader.schedule import Expected


@pytest.fixture(scope="module")
def jolpica_answers(jolpica):
    """What Jolpica-F1 answered to a refresh of 2023, refusals too."""
    return recorded_answers(jolpica / "refresh-2023.jsonl.gz")


def test_a_season_comes_whole_from_jolpica_itself(jolpica_answers, database):
    with served(jolpica_answers) as server:
        said, requests = refreshed(database, server.url, season=2023)
        rounds = ", ".join(map(str, range(1, 23)))
        assert said[0] == f"2023: fetched the calendar (22 races) and rounds {rounds}"
        assert requests == len(server.paths) == len(set(server.paths))
    for endpoint in ("results", "qualifying", "sprint"):
        address = f"/ergast/f1/2023/{endpoint}.json"
        _, _, theirs = jolpica_answers(f"{address}?limit=100&offset=0")
        assert total(bodies(database, [address])[address]) == total(theirs)


def total(body):
    return json.loads(body)["MRData"]["total"]


def test_the_tests_api_refuses_an_endpoint_as_jolpica_does(jolpica_answers, complete):
    address = "/ergast/f1/2023/1/practice.json?limit=2000&offset=0"
    status, headers, body = jolpica_answers(address)
    ours = like_jolpica(complete)(address)
    assert (status, headers["Content-Type"], body) == (ours[0], ours[1]["Content-Type"], ours[2])


def test_an_api_is_not_loaded_and_a_url_without_zip_is_taken_for_one(database):
    for address in ("http://127.0.0.1:1/ergast/f1", "http://127.0.0.1:1/dump?key=secret"):
        with pytest.raises(LoadError) as refused:
            load([address], loader_settings(database), lambda text: None)
        where = address.partition("?")[0]
        what = "is taken for an API, which is not loaded whole; expected a URL that ends with .zip"
        assert str(refused.value).startswith(f"{where}: {what}, or ")
        assert str(refused.value).endswith(f"refresh --from {where}")


def later(row):
    return moved(row, 2024) if row["year"] == "2021" else row


def test_before_the_first_race_of_a_season_the_season_before_is_refreshed_too(
    complete, tmp_path, finished, made
):
    """The API has a calendar of 2024: the races of 2021, a few years later."""

    gone = {
        "results": lambda row: (
            None if row["raceId"] in set(race_ids(SAMPLE, 2021).values()) else row
        )
    }
    winter = made("winter", races=later, **gone)
    behind = built(without(finished, tmp_path / "dump", 2023, 18), tmp_path / "racedata.db")
    with served(answers_of(client(winter))) as server:
        said, _ = refreshed(behind, server.url)
    assert "2023: fetched the calendar (22 races) and round 18" in said
    assert any(line.startswith("2024: fetched the calendar (2 races) and ") for line in said)
    addresses = [
        f"/ergast/f1/{path}.json"
        for path in ("2024/races", "2023/results", "2023/18/driverstandings")
    ]
    assert bodies(behind, addresses) == bodies(winter, addresses)


def test_no_season_between_the_stored_ones_and_the_latest_stays_empty(complete, made):
    """The first that is unfinished here is 2005; 2021 is missing."""
    ids = race_ids(SAMPLE, 2005), race_ids(SAMPLE, 2021)
    gone = {ids[0][7], *ids[1].values()}
    edits = dict.fromkeys(RECORDS, lambda row: None if row["raceId"] in gone else row)
    edits["races"] = lambda row: None if row["raceId"] in {*ids[1].values()} else row
    edits["seasons"] = lambda row: None if row["year"] == "2021" else row
    behind = made("dump", **edits)
    with served(answers_of(client(complete))) as server:
        said, _ = refreshed(behind, server.url)
        what = "2005 to 2023: about 350 requests for each season; loading a dump first is quicker"
        assert said[0].startswith(what)
        assert [line[:4] for line in said if "fetched the calendar" in line] == [
            "2005",
            "2021",
            "2023",
        ]
        paths = [
            f"/ergast/f1/{year}/{kind}.json?limit=2000"
            for year in (2005, 2021, 2023)
            for kind in ("races", "results")
        ]
        assert bodies(behind, paths) == bodies(complete, paths)
        # Then, the earlier seasons are left alone.
        server.paths.clear()
        assert "nothing new" in refreshed(behind, server.url)[0][-1]
        assert {path[:4] for path in server.paths} == {"seas", "2023"}


def test_a_season_without_races_is_left_out(behind, complete, tmp_path):
    next_season = "INSERT INTO seasons (year) VALUES (2024)"
    winter = changed(Path(shutil.copy(complete, tmp_path / "winter.db")), next_season)
    with served(answers_of(client(winter))) as server:
        refreshed(behind, server.url)
        assert rows_of(behind) == rows_of(complete)
        assert "nothing new" in refreshed(behind, server.url)[0][-1]
        what = "no races in any season from 2024 on; expected the calendar of at least one"
        with pytest.raises(LoadError, match=f"^{server.url}: {what}$"):
            refreshed(behind, server.url, season=2024)


def test_a_season_that_the_api_lacks_is_refused(api, behind):
    with pytest.raises(LoadError, match=r"/seasons\.json\S+: no season 2022; it has 1957 to 2023$"):
        refreshed(behind, api.url, season=2022)


def test_a_followed_api_has_news_until_it_is_stored_and_again_if_a_result_changes(
    api, behind, complete, finished, tmp_path
):
    def asked(url, kind, is_stored):
        refresh = Refresh(
            loader_settings(behind, CORRECTIONS), [url], None, lambda text: None, hurried
        )
        expected = Expected(2023, 18, "race", kind, datetime(2023, 10, 22, tzinfo=UTC), is_stored)
        return refresh.has_news(refresh.sources[0], [expected])

    assert asked(api.url, "results", False)
    assert not asked(api.url, "sessions", False)  # an API has no list of them
    refreshed(behind, api.url)
    assert rows_of(behind) == rows_of(complete)
    assert not asked(api.url, "results", True)
    with served(answers_of(client(with_a_penalty(finished, tmp_path, 18)))) as later:
        assert asked(later.url, "results", True)
