"""racedata.loader.overlay: what was fetched stays beside the database, and combines with older and newer dumps."""

import json
import os
import shutil

import pytest
from support import SAMPLE
from support.answers import bodies, client
from support.apis import answers_of, refreshed, served
from support.loads import built, edited, race_ids, rows_of, run_loader, select, without

from racedata.loader import overlay
from racedata.loader.errors import LoadError
from racedata.loader.overlay import CalendarRace, Season

AFTER_ROUND_9, AFTER_ROUND_18 = 1_688_400_000, 1_698_100_000  # 2023-07-03, 2023-10-23


@pytest.fixture(scope="module")
def api(sample_database):
    """The address of an API with all rounds of the sample."""
    with served(answers_of(client(sample_database))) as server:
        yield server.url


@pytest.fixture
def old_dump(tmp_path):
    """The sample without the latest round that was run."""
    return without(SAMPLE, tmp_path / "dump", 2023, 18)


@pytest.fixture
def database(tmp_path, old_dump, api):
    """A database from that dump, refreshed on the day after the latest round."""
    database = built(old_dump, tmp_path / "racedata.db")
    refreshed(database, api, now=AFTER_ROUND_18)
    return database


def season_of(year="2023", **changes):
    """What was fetched of a season, with one race."""
    race = {
        **{"season": year, "round": "18", "raceName": "United States Grand Prix", "date": "2023-10-22"},
        "Circuit": {"circuitId": "americas", "circuitName": "Circuit of the Americas"},
    }
    source, fetched_at = "http://127.0.0.1/ergast/f1", "2023-10-23T00:00:00Z"
    return Season({"season": year}, source, None, fetched_at, [race], {}, {})._replace(**changes)


RESULT = {
    **{"number": "1", "position": "1", "positionText": "1", "points": "25", "grid": "6", "laps": "56"},
    "Driver": {"driverId": "max_verstappen", "givenName": "Max", "familyName": "Verstappen"},
    "Constructor": {"constructorId": "red_bull", "name": "Red Bull"},
    "status": "Finished",
}


def results(*records, kind="results"):
    """The races of a season, with records of its one race."""
    return {"United States Grand Prix": {kind: {"fetched_at": "2023-10-23T00:00:00Z", "records": list(records)}}}


def load(tmp_path, season, source=SAMPLE):
    """The loader, run over an overlay of one season; and the path of the database."""
    overlay.write_seasons(tmp_path / "racedata.overlay", [season])
    return run_loader(source, tmp_path / "racedata.db"), tmp_path / "racedata.db"


OF_THE_RACE = "results LEFT JOIN status USING (statusId) JOIN races USING (raceId) WHERE year = 2023 AND round = 18"


# Dumps, older and newer.


def test_an_older_dump_that_is_loaded_later_gets_the_rounds_that_were_fetched(database, old_dump, sample_database, api):
    run = run_loader(old_dump, database)
    assert rows_of(database) == rows_of(sample_database)
    assert f"\noverlay: 2023: rounds 9, 18 (from {api})\n" in run.stdout
    assert "nothing new" in refreshed(database, api)[0][-1]


def test_without_the_folder_the_dump_is_loaded_as_it_is(database, old_dump, tmp_path):
    shutil.rmtree(tmp_path / "racedata.overlay")
    run = run_loader(old_dump, database)
    assert "overlay" not in run.stdout
    assert rows_of(database) == rows_of(built(old_dump, tmp_path / "other.db"))


def newer(tmp_path, **edits):
    """A dump with results of round 19, which was run after the refresh. In it, round 18 has another winner's points."""
    rounds = race_ids(SAMPLE, 2023)

    def later(row):
        if row["raceId"] == rounds[18] and row["positionOrder"] == "1":
            return {**row, "points": "24"}
        return {**row, "raceId": rounds[19]} if row["raceId"] == rounds[9] else row

    return edited(SAMPLE, tmp_path / "newer", results=later, **edits)


def test_a_newer_dump_wins(database, tmp_path):
    source = newer(tmp_path)
    run = run_loader(source, database)
    assert "overlay: 2023: older than the dump; used for what the dump lacks: round 9 " in run.stdout
    # The dump has no results of round 9.
    gone = "raceId NOT IN (SELECT raceId FROM races WHERE year = 2023 AND round = 9)"
    expected = built(source, tmp_path / "expected.db")
    for table in ("results", "sprint_results", "qualifying", "pit_stops", "lap_times", "races"):
        columns = "*" if table in ("races", "pit_stops", "lap_times") else "raceId, driverId, positionOrder, points"
        columns = columns.replace("positionOrder, points", "position") if table == "qualifying" else columns
        sql = f"SELECT {columns} FROM {table} WHERE {gone}"
        assert select(database, sql) == select(expected, sql)


def test_what_a_newer_dump_lacks_comes_from_the_overlay(database, tmp_path, sample_database):
    run_loader(newer(tmp_path, lap_times=lambda row: None), database)
    address = "/ergast/f1/2023/18/laps.json?limit=2000"
    assert bodies(database, [address]) == bodies(sample_database, [address])


def test_two_refreshes_add_up(tmp_path, api, sample_database):
    """After round 9, an API had its laps. After round 18, it has them no more, and they are loaded nevertheless."""
    source = without(SAMPLE, tmp_path / "dump", 2023, 9, 18)
    database = built(source, tmp_path / "racedata.db")
    july = built(without(SAMPLE, tmp_path / "july", 2023, 18), tmp_path / "july.db")
    with served(answers_of(client(july))) as server:
        refreshed(database, server.url, now=AFTER_ROUND_9)
    id = race_ids(SAMPLE, 2023)[9]
    no_stops = edited(SAMPLE, tmp_path / "api", pit_stops=lambda row: None if row["raceId"] == id else row)
    with served(answers_of(client(built(no_stops, tmp_path / "api.db")))) as server:
        refreshed(database, server.url, now=AFTER_ROUND_18)
    assert rows_of(database) == rows_of(sample_database)
    run_loader(source, database)
    assert rows_of(database) == rows_of(sample_database)


def test_a_wrong_clock_does_not_make_what_was_fetched_older_than_the_dump(tmp_path, old_dump, api, sample_database):
    database = built(old_dump, tmp_path / "racedata.db")
    refreshed(database, api, now=0)
    assert rows_of(database) == rows_of(sample_database)
    assert overlay.read_seasons(tmp_path / "racedata.overlay")[0].fetched_at == "2023-10-22T00:00:00Z"


# Values.


def test_new_facts_replace_old_ones_and_what_is_left_out_stays(tmp_path):
    driver = {**RESULT["Driver"], "givenName": "Max Emilian", "permanentNumber": "3"}
    _, database = load(tmp_path, season_of(races=results({**RESULT, "Driver": driver})))
    sql = "SELECT forename, surname, number, code, dob FROM drivers WHERE driverRef = 'max_verstappen'"
    assert select(database, sql)[0] == ("Max Emilian", "Verstappen", 3, "VER", "1997-09-30")


def test_what_an_api_leaves_out_of_a_record_is_unknown(tmp_path):
    least = {key: RESULT[key] for key in ("position", "Driver", "Constructor")}
    _, database = load(tmp_path, season_of(races=results(least)))
    columns = "results.number, grid, positionText, points, laps, milliseconds, fastestLap, rank, statusId"
    assert select(database, f"SELECT {columns} FROM {OF_THE_RACE}")[0] == (None,) * 9


def test_a_fastest_lap_of_rank_0_is_none(tmp_path):
    lap = {"rank": "0", "lap": "12", "Time": {"time": "1:40.000"}, "AverageSpeed": {"speed": "200.1"}}
    _, database = load(tmp_path, season_of(races=results({**RESULT, "FastestLap": lap})))
    columns = "fastestLap, rank, fastestLapTime, fastestLapSpeed"
    assert select(database, f"SELECT {columns} FROM {OF_THE_RACE}")[0] == (None,) * 4


@pytest.mark.parametrize(
    ("statuses", "text", "expected"),
    [
        ({"Lapped": "143"}, "Lapped", (143, "Lapped")),
        ({}, "Lapped", (None, "Lapped")),  # the next free id
        ({"Lapped": "1"}, "Lapped", (None, "Lapped")),  # 1 is another status
        ({"Did not start": "142"}, "Did_not_start", (142, "Did not start")),
    ],
)
def test_a_new_status_has_the_id_of_the_api_if_that_is_free(tmp_path, sample_database, statuses, text, expected):
    season = season_of(statuses=statuses, races=results({**RESULT, "status": text}))
    _, database = load(tmp_path, season)
    [(next_id,)] = select(sample_database, "SELECT max(statusId) + 1 FROM status")
    [found] = select(database, f"SELECT statusId, status FROM {OF_THE_RACE}")
    assert found == (expected[0] or next_id, expected[1])


@pytest.mark.parametrize(
    ("key", "session"),
    [("SprintShootout", "sq"), ("SprintQualifying", "sq"), ("SecondPractice", "fp2"), ("Qualifying", "quali")],
)
def test_sessions_of_a_weekend_are_stored(tmp_path, key, session):
    season = season_of()
    season.calendar[0][key] = {"date": "2023-10-21", "time": "17:30:00Z"}
    _, database = load(tmp_path, season)
    sql = "SELECT session, sessions.date, sessions.time, count(*) FROM sessions JOIN races USING (raceId)"
    assert select(database, f"{sql} WHERE year = 2023 AND round = 18")[0] == (session, "2023-10-21", "17:30:00", 1)


WRONG = {
    "no position": ({"position": None}, "record 1, position: missing; expected a whole number such as 25"),
    "a number": ({"position": 1}, "record 1, position: '1'; expected a whole number"),
    "points": ({"points": "many"}, "record 1, points: 'many'; expected points such as 25 or 12.5"),
    "an id": ({"Driver": {**RESULT["Driver"], "driverId": "a/b"}}, "Driver.driverId: 'a/b'; expected an id of letters"),
    "no driver": ({"Driver": None}, "Driver.driverId: missing; expected an id"),
    "a text": ({"Driver": "alonso"}, "Driver.driverId: missing; expected an id"),
    "no name": ({"Driver": {"driverId": "new"}}, "givenName: missing; expected text without control characters"),
    "a line": ({"status": "Fini\nshed"}, "record 1, status: 'Fini\\nshed'; expected a status such as Finished"),
    "a lap in UTC": ({"FastestLap": {"Time": {"time": "1:07.012Z"}}}, "'1:07.012Z'; expected a time such as 1:07.012"),
    "a lap": ({"FastestLap": {"Time": {"time": "90"}}}, "FastestLap.Time.time: '90'; expected a time such as 1:07.012"),
}


@pytest.mark.parametrize(("changes", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_refused_with_its_place(tmp_path, changes, said):
    run, database = load(tmp_path, season_of(races=results({**RESULT, **changes})))
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert run.stderr.startswith("racedata load: http://127.0.0.1/ergast/f1, 2023, United States Grand Prix, ")
    assert said in run.stderr
    assert not database.exists()


def test_records_of_an_unknown_driver_are_refused(tmp_path):
    stop = {"driverId": "nobody", "lap": "1", "stop": "1"}
    run, _ = load(tmp_path, season_of(races=results(stop, kind="pitstops")))
    assert "United States Grand Prix: 'nobody' is none of the drivers" in run.stderr


def test_duplicates_are_refused(tmp_path):
    timing = {"driverId": "alonso", "lap": "1", "position": "1", "time": "1:40.000"}
    run, _ = load(tmp_path, season_of(races=results(timing, timing, kind="laps")))
    assert "UNIQUE constraint failed: lap_times.raceId, lap_times.driverId, lap_times.lap" in run.stderr
    assert "expected records without duplicates" in run.stderr


# Files.

OTHER = {"fetched_at": "2023-10-23T00:00:00Z", "records": []}
NOT_SEASONS = [
    *[b"", b'{"facts": {"season"', b"[]", b"{}", b"\xff", b"[" * 100_000],
    *[{"facts": {"season": "2022"}}, {"facts": "2023"}, {"calendar": [1]}, {"calendar": {}}, {"statuses": []}],
    *[{"licence": 5}, {"fetched_at": None}, {"races": []}, {"calendar": [{"round": "1"}]}],
    *[{"source": "http://127.0.0.1/\ud800"}, {"source": "nowhere"}, {"fetched_at": "zzzz"}, {"licence": "\n"}],
    *[
        {"calendar": [season_of().calendar[0] | facts]}
        for facts in ({"season": "1066"}, {"round": "0"}, {"raceName": "\a"})
    ],
    {"races": {"United States Grand Prix": {"results": []}}},
    {"races": {"United States Grand Prix": {"results": {**OTHER, "records": [None]}}}},
    {"races": {"United States Grand Prix": {"weather": OTHER}}},
]


@pytest.mark.parametrize("content", NOT_SEASONS)
def test_a_file_that_is_no_season_is_refused_by_its_name(tmp_path, content):
    overlay.write_seasons(tmp_path, [season_of()])
    assert len(overlay.read_seasons(tmp_path)) == 1
    path = tmp_path / "2023.json"
    if isinstance(content, dict):
        content = json.dumps({**json.loads(path.read_text()), **content}).encode()
    path.write_bytes(content)
    with pytest.raises(LoadError) as caught:
        overlay.read_seasons(tmp_path)
    assert str(caught.value) == f"{path}: not a season that refresh has written; delete the file"


@pytest.mark.parametrize(
    "make",
    [
        *(os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")),
        lambda path: path.write_text("{}".ljust(overlay.FILE_BYTES + 1)),
    ],
)
def test_a_file_that_is_special_or_too_large_is_refused_by_its_name(tmp_path, make):
    make(tmp_path / "2023.json")
    with pytest.raises(LoadError, match=r"2023\.json: not a season that refresh has written; delete the file"):
        overlay.read_seasons(tmp_path)


def test_a_folder_that_is_none_is_not_taken_for_an_absent_one(tmp_path):
    (tmp_path / "racedata.overlay").write_text("")
    with pytest.raises(NotADirectoryError):
        overlay.read_seasons(tmp_path / "racedata.overlay")


@pytest.mark.parametrize(
    ("database", "folder"), [("racedata.db", "racedata.overlay"), ("a.b", "a.b.overlay"), ("a.c", "a.c.overlay")]
)
def test_each_database_of_a_folder_has_an_overlay_of_its_own(tmp_path, database, folder):
    assert overlay.folder_beside(tmp_path / database) == tmp_path / folder


@pytest.mark.parametrize(("text", "stored"), [(" 1:07.012 ", "1:07.012"), ("53.904", "0:53.904")])
def test_blanks_around_a_value_are_ignored_and_a_lap_below_a_minute_may_lack_its_zero(tmp_path, text, stored):
    lap = {"lap": "1", "Time": {"time": text}}
    _, database = load(tmp_path, season_of(races=results({**RESULT, "FastestLap": lap})))
    assert select(database, f"SELECT fastestLapTime FROM {OF_THE_RACE}")[0] == (stored,)


def test_what_is_written_is_read_again_and_other_files_are_ignored(tmp_path):
    folder = tmp_path / "racedata.overlay"
    seasons = [season_of(year, facts={"season": year, "url": "é\ud800"}) for year in ("2023", "2024")]
    overlay.write_seasons(folder, list(reversed(seasons)))
    for name in (".2025.writing", "notes.txt", "2025.json.bak"):
        (folder / name).write_text("{")
    assert overlay.read_seasons(folder) == seasons
    assert overlay.read_seasons(tmp_path / "missing") == []


def test_a_failed_write_leaves_all_old_files_and_no_others(tmp_path, monkeypatch):
    seasons = [season_of(facts={"season": year}) for year in ("2023", "2024")]
    overlay.write_seasons(tmp_path, seasons)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {*before} == {"2023.json", "2024.json"}
    calls = iter([None, OSError(28, "No space left on device")])

    def full_at_the_second_file(descriptor):
        if error := next(calls):
            raise error

    monkeypatch.setattr(os, "fsync", full_at_the_second_file)
    with pytest.raises(OSError, match="No space left"):
        overlay.write_seasons(tmp_path, [season._replace(licence="CC0 1.0") for season in seasons])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("of_dump", "fetched", "expected"),
    [
        *[(None, [], None), (None, [None], None), ("CC0 1.0", [None], "CC0 1.0"), (None, ["CC BY 4.0"], "CC BY 4.0")],
        ("CC0 1.0", ["CC BY 4.0", "CC BY 4.0"], "CC0 1.0, CC BY 4.0"),
        ("CC0 1.0, CC BY 4.0", ["CC BY 4.0"], "CC0 1.0, CC BY 4.0"),
    ],
)
def test_the_licence_names_that_of_the_dump_and_that_of_what_was_fetched(of_dump, fetched, expected):
    assert overlay.joined(of_dump, fetched) == expected


# Calendars.


def test_a_race_is_the_same_if_its_name_its_article_or_its_circuit_and_date_are():
    spa = CalendarRace(1, "Belgian Grand Prix", "http://x/spa", "spa", "2023-07-30")
    monza = CalendarRace(2, "Italian Grand Prix", None, "monza", "2023-09-03")
    imola = CalendarRace(3, "Imola Grand Prix", None, "imola", "2023-05-21")
    others = [
        CalendarRace("a", "Italian Grand Prix", None, "mugello", "2023-01-01"),
        CalendarRace("b", "Grand Prix of Belgium", "https://x/spa", "zolder", "2023-01-02"),
        CalendarRace("c", "Emilia Romagna Grand Prix", None, "Imola", "2023-05-21"),
        CalendarRace("d", "New Grand Prix", None, "imola", "2023-05-22"),
    ]
    assert overlay.match_races([spa, monza, imola], others) == {1: "b", 2: "a", 3: "c"}


def test_the_same_name_counts_before_the_same_article():
    races = [
        CalendarRace(1, "First", "http://x/1", "spa", "2023-01-01"),
        CalendarRace(2, "Second", "http://x/2", "spa", "2023-01-02"),
    ]
    others = [CalendarRace(3, "Second", "http://x/1", "", ""), CalendarRace(4, "First", "http://x/2", "", "")]
    assert overlay.match_races(races, others) == {1: 4, 2: 3}
