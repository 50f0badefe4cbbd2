"""Clients of the Ergast interface, unchanged but for the host: FastF1 and ergast-py get the rows of the CSV files.

Each answer is compared with the rows that a query finds in the CSV files themselves. FastF1 limits itself to four
requests per second and 500 per hour, so these tests take a minute or two and must not grow to 500 requests.
"""

import datetime
import socket
import warnings
from contextlib import closing

import pytest
from support import SAMPLE
from support.processes import OFF, service
from support.tables import Tables

with warnings.catch_warnings():
    # pytz 2022, which ergast-py requires and pandas imports, on Python 3.12 or newer
    warnings.filterwarnings("ignore", r"datetime\.datetime\.utcfromtimestamp\(\) is deprecated", DeprecationWarning)
    import ergast_py
    import ergast_py.requester
    import fastf1
    import fastf1.ergast.legacy
    import pandas
    from ergast_py.constants.status_type import StatusType
    from fastf1.ergast import Ergast
    from fastf1.exceptions import ErgastInvalidRequestError

# The rows of an answer, in order, under FastF1's names for their columns. A condition goes into the brackets.
CIRCUIT = "circuitId, circuitUrl, circuitName, lat, long, locality, country"
RACE = f"season, round, raceUrl, raceName, raceDate, raceTime, {CIRCUIT}"
DRIVER = "driverId, driverNumber, driverCode, driverUrl, givenName, familyName, dateOfBirth, driverNationality"
CONSTRUCTOR = "constructorId, constructorUrl, constructorName, constructorNationality"
CLASSIFIED = f"{RACE}, {DRIVER}, {CONSTRUCTOR}, number, position"
FINISHED = f"{CLASSIFIED}, positionText, points, grid, laps, status, totalRaceTimeMillis, fastestLapNumber"
STANDING = "season, round, position, positionText, points, wins"

SEASONS = "SELECT season, seasonUrl FROM entry WHERE {} GROUP BY season ORDER BY season"
CIRCUITS = f"SELECT {CIRCUIT} FROM entry WHERE {{}} GROUP BY circuitId ORDER BY lower(circuitId)"
SCHEDULE = (
    f"SELECT {RACE}, fp1Date, fp1Time, qualifyingDate, qualifyingTime, sprintDate "
    "FROM entry WHERE {} GROUP BY raceId ORDER BY season, round"
)
DRIVERS = f"SELECT {DRIVER} FROM entry WHERE driver AND {{}} GROUP BY driver ORDER BY plain(familyName), driverId"
CONSTRUCTORS = (
    f"SELECT {CONSTRUCTOR} FROM entry WHERE constructor AND {{}} GROUP BY constructor ORDER BY lower(constructorId)"
)
STATUSES = (
    "SELECT statusId, status, count(*) AS count FROM entry WHERE statusId AND {} GROUP BY statusId "
    "ORDER BY count DESC, status"
)
RESULTS = (
    f"SELECT {FINISHED}, fastestLapRank, fastestLapTime FROM entry WHERE driver AND {{}} "
    "ORDER BY season, round, positionOrder, resultId"
)
SPRINTS = f"SELECT {FINISHED} FROM sprint WHERE {{}} ORDER BY season, round, positionOrder, resultId"
QUALIFYING = f"SELECT {CLASSIFIED}, Q1, Q2, Q3 FROM qualified WHERE {{}} ORDER BY season, round, position, qualifyId"
LAPS = f"SELECT {RACE}, driverId, number, position, time FROM timing WHERE {{}} ORDER BY number, position"
STOPS = f"SELECT {RACE}, driverId, stop, lap, time, duration FROM stop WHERE {{}} ORDER BY time, lap, stop, driver"
DRIVER_STANDINGS = (
    f"SELECT {STANDING}, {DRIVER}, constructorIds FROM driver_standing WHERE {{}} "
    "ORDER BY season, round, position NULLS LAST, id"
)
CONSTRUCTOR_STANDINGS = (
    f"SELECT {STANDING}, {CONSTRUCTOR} FROM constructor_standing WHERE {{}} "
    "ORDER BY season, round, position NULLS LAST, id"
)

CURRENT = "season = (SELECT max(season) FROM entry WHERE driver)"
LAST = f"{CURRENT} AND round = (SELECT max(round) FROM entry WHERE driver AND {CURRENT})"
AUSTIN = "season = 2023 AND round = 18"

# FastF1's methods with selectors; then the query and the condition that find the expected rows.
FASTF1 = [
    ("get_seasons", {}, SEASONS, "1"),
    ("get_seasons", {"circuit": "monza"}, SEASONS, "circuitId = 'monza'"),
    (
        "get_seasons",
        {"driver": "hamilton", "constructor": "mercedes", "grid_position": 1, "status": "Finished"},
        SEASONS,
        "driverId = 'hamilton' AND constructorId = 'mercedes' AND grid = 1 AND status = 'Finished'",
    ),
    ("get_seasons", {"results_position": 1, "fastest_rank": 1}, SEASONS, "positionText = '1' AND rank = 1"),
    ("get_race_schedule", {"season": 2023}, SCHEDULE, "season = 2023"),
    ("get_race_schedule", {"season": 1957}, SCHEDULE, "season = 1957"),
    ("get_race_schedule", {"season": 2023, "round": 18}, SCHEDULE, AUSTIN),
    ("get_race_schedule", {"season": "current"}, SCHEDULE, CURRENT),
    ("get_race_schedule", {"season": "current", "round": "last"}, SCHEDULE, LAST),
    (
        "get_race_schedule",
        {"season": 2023, "driver": "alonso", "circuit": "americas"},
        SCHEDULE,
        "season = 2023 AND driverId = 'alonso' AND circuitId = 'americas'",
    ),
    ("get_race_schedule", {"season": None, "circuit": "monaco"}, SCHEDULE, "circuitId = 'monaco'"),
    ("get_driver_info", {"season": 2023}, DRIVERS, "season = 2023"),
    ("get_driver_info", {"driver": "hamilton"}, DRIVERS, "driverId = 'hamilton'"),
    ("get_driver_info", {"season": "current", "round": "last"}, DRIVERS, LAST),
    (
        "get_driver_info",
        {"constructor": "ferrari", "results_position": 1},
        DRIVERS,
        "constructorId = 'ferrari' AND positionText = '1'",
    ),
    ("get_constructor_info", {"season": 2005}, CONSTRUCTORS, "season = 2005"),
    ("get_constructor_info", {"constructor": "ferrari"}, CONSTRUCTORS, "constructorId = 'ferrari'"),
    ("get_constructor_info", {"driver": "alonso"}, CONSTRUCTORS, "driverId = 'alonso'"),
    (
        "get_constructor_info",
        {"season": 2023, "fastest_rank": 1, "status": "Finished"},
        CONSTRUCTORS,
        "season = 2023 AND rank = 1 AND status = 'Finished'",
    ),
    ("get_circuits", {"season": 2023}, CIRCUITS, "season = 2023"),
    (
        "get_circuits",
        {"constructor": "red_bull", "grid_position": 1, "results_position": 1},
        CIRCUITS,
        "constructorId = 'red_bull' AND grid = 1 AND positionText = '1'",
    ),
    ("get_finishing_status", {}, STATUSES, "1"),
    ("get_finishing_status", {"season": 2023}, STATUSES, "season = 2023"),
    ("get_finishing_status", {"season": 2023, "round": 18}, STATUSES, AUSTIN),
    (
        "get_finishing_status",
        {"driver": "alonso", "status": "Finished"},
        STATUSES,
        "driverId = 'alonso' AND status = 'Finished'",
    ),
    ("get_race_results", {"season": 2023, "round": 18}, RESULTS, AUSTIN),
    ("get_race_results", {"season": 1957, "round": 5}, RESULTS, "season = 1957 AND round = 5"),
    ("get_race_results", {"season": 2023}, RESULTS, "season = 2023"),
    ("get_race_results", {"season": "current", "round": "last"}, RESULTS, LAST),
    ("get_race_results", {"driver": "alonso"}, RESULTS, "driverId = 'alonso'"),
    ("get_race_results", {"results_position": 1}, RESULTS, "positionText = '1'"),
    (
        "get_race_results",
        {"circuit": "silverstone", "constructor": "mercedes", "grid_position": 1, "fastest_rank": 1},
        RESULTS,
        "circuitId = 'silverstone' AND constructorId = 'mercedes' AND grid = 1 AND rank = 1",
    ),
    ("get_race_results", {"season": 2023, "status": "+1 Lap"}, RESULTS, "season = 2023 AND status = '+1 Lap'"),
    ("get_qualifying_results", {"season": 2023, "round": 18}, QUALIFYING, AUSTIN),
    ("get_qualifying_results", {"season": 2005, "round": 1}, QUALIFYING, "season = 2005 AND round = 1"),
    ("get_qualifying_results", {"results_position": 1}, QUALIFYING, "position = 1"),
    (
        "get_qualifying_results",
        {"driver": "leclerc", "grid_position": 1},
        QUALIFYING,
        "driverId = 'leclerc' AND grid = 1",
    ),
    (
        "get_qualifying_results",
        {"season": 2023, "fastest_rank": 1, "status": "Finished"},
        QUALIFYING,
        "season = 2023 AND rank = 1 AND status = 'Finished'",
    ),
    ("get_sprint_results", {"season": 2023, "round": 18}, SPRINTS, AUSTIN),
    ("get_sprint_results", {"season": 2021}, SPRINTS, "season = 2021"),
    ("get_sprint_results", {"results_position": 1}, SPRINTS, "positionText = '1'"),
    (
        "get_sprint_results",
        {"driver": "max_verstappen", "grid_position": 1, "status": "Finished"},
        SPRINTS,
        "driverId = 'max_verstappen' AND grid = 1 AND status = 'Finished'",
    ),
    ("get_driver_standings", {"season": 2023}, DRIVER_STANDINGS, "season = 2023 AND latest"),
    ("get_driver_standings", {"season": 1957}, DRIVER_STANDINGS, "season = 1957 AND latest"),
    ("get_driver_standings", {"season": 1997}, DRIVER_STANDINGS, "season = 1997 AND latest"),
    ("get_driver_standings", {"season": 2023, "round": 9}, DRIVER_STANDINGS, "season = 2023 AND round = 9"),
    ("get_driver_standings", {"season": "current", "round": "last"}, DRIVER_STANDINGS, LAST),
    ("get_driver_standings", {"driver": "hamilton"}, DRIVER_STANDINGS, "driverId = 'hamilton' AND finished"),
    ("get_driver_standings", {"standings_position": 1}, DRIVER_STANDINGS, "positionText = '1' AND finished"),
    ("get_constructor_standings", {"season": 2023}, CONSTRUCTOR_STANDINGS, "season = 2023 AND latest"),
    ("get_constructor_standings", {"season": 2023, "round": 9}, CONSTRUCTOR_STANDINGS, "season = 2023 AND round = 9"),
    ("get_constructor_standings", {"season": "current", "round": "last"}, CONSTRUCTOR_STANDINGS, LAST),
    (
        "get_constructor_standings",
        {"constructor": "ferrari"},
        CONSTRUCTOR_STANDINGS,
        "constructorId = 'ferrari' AND finished",
    ),
    ("get_constructor_standings", {"standings_position": 1}, CONSTRUCTOR_STANDINGS, "positionText = '1' AND finished"),
    ("get_lap_times", {"season": 2023, "round": 18}, LAPS, AUSTIN),
    ("get_lap_times", {"season": 2023, "round": 18, "lap_number": 7}, LAPS, f"{AUSTIN} AND number = 7"),
    ("get_lap_times", {"season": 2023, "round": 18, "driver": "alonso"}, LAPS, f"{AUSTIN} AND driverId = 'alonso'"),
    ("get_pit_stops", {"season": 2023, "round": 18}, STOPS, AUSTIN),
    ("get_pit_stops", {"season": 2021, "round": 10}, STOPS, "season = 2021 AND round = 10"),
    ("get_pit_stops", {"season": 2023, "round": 18, "stop_number": 2}, STOPS, f"{AUSTIN} AND stop = 2"),
    (
        "get_pit_stops",
        {"season": 2023, "round": 18, "lap_number": 17, "driver": "norris"},
        STOPS,
        f"{AUSTIN} AND lap = 17 AND driverId = 'norris'",
    ),
]

# The same for ergast-py: its methods with filters.
ERGAST_PY = [
    ("get_seasons", {}, SEASONS, "1"),
    ("get_seasons", {"driver": "alonso", "result": 1}, SEASONS, "driverId = 'alonso' AND positionText = '1'"),
    ("get_circuits", {"season": 2023}, CIRCUITS, "season = 2023"),
    ("get_circuit", {"circuit": "silverstone"}, CIRCUITS, "circuitId = 'silverstone'"),
    ("get_circuits", {"driver": "max_verstappen", "grid": 1}, CIRCUITS, "driverId = 'max_verstappen' AND grid = 1"),
    ("get_races", {"season": 2023}, SCHEDULE, "season = 2023"),
    ("get_races", {"season": 1957}, SCHEDULE, "season = 1957"),
    ("get_race", {"season": "current", "round": "last"}, SCHEDULE, LAST),
    ("get_races", {"season": 2023, "circuit": "monaco"}, SCHEDULE, "season = 2023 AND circuitId = 'monaco'"),
    ("get_drivers", {"season": 2023, "round": 18}, DRIVERS, AUSTIN),
    ("get_driver", {"driver": "hamilton"}, DRIVERS, "driverId = 'hamilton'"),
    ("get_driver", {"season": 2023, "round": 18, "fastest": 1}, DRIVERS, f"{AUSTIN} AND rank = 1"),
    (
        "get_drivers",
        {"season": 2023, "qualifying": 1},
        DRIVERS,
        "(raceId, driver) IN (SELECT raceId, driver FROM qualified WHERE season = 2023 AND position = 1)",
    ),
    ("get_constructors", {"season": 2005}, CONSTRUCTORS, "season = 2005"),
    ("get_constructor", {"constructor": "mercedes"}, CONSTRUCTORS, "constructorId = 'mercedes'"),
    ("get_constructors", {"driver": "alonso"}, CONSTRUCTORS, "driverId = 'alonso'"),
    ("get_result", {"season": 2023, "round": 18}, RESULTS, AUSTIN),
    ("get_result", {"season": 1957, "round": 5}, RESULTS, "season = 1957 AND round = 5"),
    ("get_results", {"driver": "alonso"}, RESULTS, "driverId = 'alonso'"),
    (
        "get_results",
        {"season": 2023, "constructor": "red_bull", "result": 1},
        RESULTS,
        "season = 2023 AND constructorId = 'red_bull' AND positionText = '1'",
    ),
    (
        "get_results",
        {"circuit": "americas", "fastest": 1, "status": "Finished"},
        RESULTS,
        "circuitId = 'americas' AND rank = 1 AND status = 'Finished'",
    ),
    ("get_sprint", {"season": 2023, "round": 18}, SPRINTS, AUSTIN),
    ("get_sprints", {"season": 2023, "sprint": 3}, SPRINTS, "season = 2023 AND positionText = '3'"),
    ("get_qualifying", {"season": 2023, "round": 18}, QUALIFYING, AUSTIN),
    ("get_qualifyings", {"season": 2023, "qualifying": 1}, QUALIFYING, "season = 2023 AND position = 1"),
    ("get_qualifyings", {"driver": "leclerc", "grid": 1}, QUALIFYING, "driverId = 'leclerc' AND grid = 1"),
    ("get_driver_standings", {"season": 2023}, DRIVER_STANDINGS, "season = 2023 AND latest"),
    ("get_driver_standing", {"season": 2023, "round": 9}, DRIVER_STANDINGS, "season = 2023 AND round = 9"),
    ("get_driver_standings", {"standing": 1}, DRIVER_STANDINGS, "positionText = '1' AND finished"),
    ("get_driver_standings", {"driver": "hamilton"}, DRIVER_STANDINGS, "driverId = 'hamilton' AND finished"),
    ("get_constructor_standings", {"season": 2023}, CONSTRUCTOR_STANDINGS, "season = 2023 AND latest"),
    (
        "get_constructor_standing",
        {"season": 2005, "standing": 3},
        CONSTRUCTOR_STANDINGS,
        "season = 2005 AND latest AND positionText = '3'",
    ),
    (
        "get_constructor_standings",
        {"constructor": "ferrari"},
        CONSTRUCTOR_STANDINGS,
        "constructorId = 'ferrari' AND finished",
    ),
    ("get_lap", {"season": 2023, "round": 18, "lap": 1}, LAPS, f"{AUSTIN} AND number = 1"),
    ("get_laps", {"season": 2023, "round": 18, "driver": "alonso"}, LAPS, f"{AUSTIN} AND driverId = 'alonso'"),
    ("get_laps", {"season": 2023, "round": 18}, LAPS, AUSTIN),
    ("get_pit_stops", {"season": 2023, "round": 18}, STOPS, AUSTIN),
    ("get_pit_stop", {"season": 2021, "round": 10, "pit_stop": 1}, STOPS, "season = 2021 AND round = 10 AND stop = 1"),
    (
        "get_pit_stops",
        {"season": 2023, "round": 18, "lap": 17, "driver": "norris"},
        STOPS,
        f"{AUSTIN} AND lap = 17 AND driverId = 'norris'",
    ),
    ("get_statuses", {"season": 2023}, STATUSES, "season = 2023"),
    ("get_status", {"status": "Finished"}, STATUSES, "status = 'Finished'"),
]

ALL_CIRCUITS = f"SELECT {CIRCUIT} FROM circuit ORDER BY lower(circuitId)"

# Answers of several pages: FastF1's method, ergast-py's method, the filters of both, and the query for the rows.
PAGED = [
    ("get_seasons", "get_seasons", {}, SEASONS.format("1")),
    ("get_race_schedule", "get_races", {}, f"SELECT {RACE} FROM race ORDER BY season, round"),
    ("get_driver_info", "get_drivers", {}, f"SELECT {DRIVER} FROM driver ORDER BY plain(familyName), driverId"),
    (
        "get_constructor_info",
        "get_constructors",
        {},
        f"SELECT {CONSTRUCTOR} FROM constructor ORDER BY lower(constructorId)",
    ),
    ("get_circuits", "get_circuits", {}, ALL_CIRCUITS),
    ("get_finishing_status", "get_statuses", {}, STATUSES.format("1")),
    ("get_race_results", "get_results", {}, RESULTS.format("1")),
    ("get_qualifying_results", "get_qualifyings", {}, QUALIFYING.format("1")),
    ("get_sprint_results", "get_sprints", {}, SPRINTS.format("1")),
    ("get_driver_standings", "get_driver_standings", {}, DRIVER_STANDINGS.format("finished")),
    ("get_constructor_standings", "get_constructor_standings", {}, CONSTRUCTOR_STANDINGS.format("finished")),
    ("get_lap_times", "get_laps", {"season": 2023, "round": 18}, LAPS.format(AUSTIN)),
    ("get_pit_stops", "get_pit_stops", {"season": 2023, "round": 18}, STOPS.format(AUSTIN)),
]

# Keys of the lists of records in a raw answer.
LISTS = {
    "Results",
    "SprintResults",
    "QualifyingResults",
    "Laps",
    "Timings",
    "PitStops",
    "DriverStandings",
    "ConstructorStandings",
}


@pytest.fixture(scope="module", params=["sample", "dump"])
def source(request):
    """The folder of a dump, and the database built from it."""
    folder = SAMPLE if request.param == "sample" else request.getfixturevalue("dump")
    return folder, request.getfixturevalue(f"{request.param}_database")


@pytest.fixture(scope="module")
def tables(source):
    with closing(Tables(source[0])) as tables:
        yield tables


@pytest.fixture(scope="module")
def url(source, tmp_path_factory):
    """The base URL of a service over the database."""
    with service(source[1], tmp_path_factory.mktemp("log") / "log", **OFF) as running:
        yield "http://{}:{}/ergast/f1".format(*running.address)


@pytest.fixture(autouse=True)
def no_other_host(monkeypatch):
    """A request to any other machine fails before it is sent."""
    resolve = socket.getaddrinfo

    def resolve_this_machine(host, *rest, **options):
        assert host == "127.0.0.1", f"a request to {host}"
        return resolve(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_this_machine)


@pytest.fixture
def fastf1_client(url, monkeypatch, tmp_path):
    """FastF1 with the host changed as its users do, and without its cache."""
    monkeypatch.setattr(fastf1.ergast.interface, "BASE_URL", url)
    # A folder is needed all the same: without one FastF1 caches in the home directory.
    fastf1.Cache.configure(cache_dir=str(tmp_path), use_requests_cache=False)
    return Ergast(limit=2000)


@pytest.fixture
def ergast_py_client(url, monkeypatch):
    """ergast-py with the host changed: it has no setting for it, only the template of its addresses."""
    template = ergast_py.requester.URITemplate
    monkeypatch.setattr(
        ergast_py.requester,
        "URITemplate",
        lambda text: template(text.replace("https://api.jolpi.ca/ergast", url.removesuffix("/f1"))),
    )
    return ergast_py.Ergast()


def case_name(call):
    """The name of a test's case."""
    method, selectors = call[:2]
    return f"{method}({', '.join(f'{name}={value}' for name, value in selectors.items())})"


def with_status_number(selectors, tables):
    """Selectors with the number of a status instead of its text: every dump has its own."""
    if "status" not in selectors:
        return selectors
    return {**selectors, "status": tables.value(f"SELECT statusId FROM status WHERE status = '{selectors['status']}'")}


def table_value(value):
    """A value of pandas, or of FastF1's raw answers, as the tables have it."""
    if isinstance(value, list):
        return ",".join(value)
    if pandas.isna(value):
        return None
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime.datetime):
        return value.date().isoformat()
    if isinstance(value, datetime.time):
        return value.strftime("%H:%M:%S")
    return value


def values_of(row, names):
    """The values of a row under `names`; None if it has none."""
    return {name: table_value(row.get(name)) for name in names}


def frame_rows(answer):
    """The rows of an answer in pandas, each with the description of its race or standings list."""
    if not hasattr(answer, "content"):
        return answer.to_dict("records")
    descriptions = answer.description.to_dict("records")
    return [{**above, **row} for above, frame in zip(descriptions, answer.content) for row in frame.to_dict("records")]


def raw_rows(record):
    """The rows in a raw record, with the values of all the objects that they are in."""
    row, rows = {}, [{}]
    for key, value in record.items():
        if isinstance(value, dict):
            [inner] = raw_rows(value)
            row.update(inner)
        elif key in LISTS:
            rows = [inner for each in value for inner in raw_rows(each)]
        else:
            row[key] = value
    return [{**row, **inner} for inner in rows]


@pytest.mark.parametrize(("method", "selectors", "query", "condition"), FASTF1, ids=map(case_name, FASTF1))
def test_fastf1_gets_the_rows_of_the_csv_files(fastf1_client, tables, method, selectors, query, condition):
    expected = tables.rows(query.format(condition))
    answer = getattr(fastf1_client, method)(**with_status_number(selectors, tables))
    assert [values_of(row, expected[0]) for row in frame_rows(answer)] == expected
    assert answer.total_results == len(expected)
    assert answer.is_complete


FIRST_CALLS = list({call[0]: call for call in reversed(FASTF1)}.values())


@pytest.mark.parametrize(("method", "selectors", "query", "condition"), FIRST_CALLS, ids=map(case_name, FIRST_CALLS))
def test_fastf1_gets_the_same_rows_as_raw_data(fastf1_client, tables, method, selectors, query, condition):
    expected = tables.rows(query.format(condition))
    answer = getattr(fastf1_client, method)(**selectors, result_type="raw")
    rows = [row for record in answer for row in raw_rows(record)]
    same_names = [name for name in expected[0] if name in rows[0]]
    assert same_names
    assert [values_of(row, same_names) for row in rows] == [values_of(row, same_names) for row in expected]


@pytest.mark.parametrize(
    ("method", "selectors", "query"), [(call[0], *call[2:]) for call in PAGED], ids=[call[0] for call in PAGED]
)
def test_fastf1_turns_the_pages_to_the_end_and_back(fastf1_client, tables, method, selectors, query):
    expected = tables.rows(query)
    limit = min(len(expected) // 3 + 1, 2000)
    if method == "get_race_schedule":
        selectors = {"season": None}  # it has no default
    pages = [getattr(fastf1_client, method)(**selectors, limit=limit)]
    assert pages[0].total_results == len(expected)
    for _ in range(limit, len(expected), limit):
        pages.append(pages[-1].get_next_result_page())
    with pytest.raises(ValueError, match="No more data after"):
        pages[-1].get_next_result_page()
    rows = [values_of(row, expected[0]) for page in pages for row in frame_rows(page)]
    assert rows == expected
    last = limit * (len(pages) - 1)
    before = frame_rows(pages[-1].get_prev_result_page())
    assert [values_of(row, expected[0]) for row in before] == expected[last - limit : last]


@pytest.mark.parametrize("result_type", ["pandas", "raw"])
@pytest.mark.parametrize(("method", "nothing"), [
    ("get_seasons", {"driver": "nobody"}),
    ("get_race_schedule", {"season": 1949}),
    ("get_driver_info", {"driver": "nobody"}),
    ("get_constructor_info", {"constructor": "nobody"}),
    ("get_circuits", {"season": 1949}),
    ("get_finishing_status", {"status": 999}),
    ("get_race_results", {"season": 2023, "round": 99}),
    ("get_qualifying_results", {"season": 1957, "round": 5}),
    ("get_sprint_results", {"season": 2005}),
    ("get_driver_standings", {"season": 1949}),
    ("get_constructor_standings", {"season": 1957}),
    ("get_lap_times", {"season": 2023, "round": 99}),
    ("get_pit_stops", {"season": 2021, "round": 12}),
])  # fmt: skip
def test_fastf1_reads_an_empty_answer(fastf1_client, method, nothing, result_type):
    answer = getattr(fastf1_client, method)(**nothing, result_type=result_type)
    assert answer.total_results == 0
    assert len(answer.content if hasattr(answer, "content") else answer) == 0


def test_fastf1_reports_a_refused_request(fastf1_client):
    with pytest.raises(ErgastInvalidRequestError, match="Bad Request"):
        fastf1_client.get_lap_times(season=2023, round=None)


# pandas 2 with NumPy 2.5 or newer, which needs Python 3.12
@pytest.mark.filterwarnings("ignore:The 'generic' unit for NumPy timedelta is deprecated:DeprecationWarning")
def test_fastf1_makes_a_schedule_of_a_season(fastf1_client, url, tables, monkeypatch):
    monkeypatch.setattr(fastf1.ergast.legacy, "base_url", url)
    schedule = fastf1.get_event_schedule(2023, backend="ergast")
    expected = tables.rows(SCHEDULE.format("season = 2023"))
    assert list(schedule["EventName"]) == [race["raceName"] for race in expected]
    sprints = schedule[schedule["EventFormat"] == "sprint_shootout"]
    assert list(sprints["RoundNumber"]) == [race["round"] for race in expected if race["sprintDate"]]


@pytest.mark.parametrize(
    ("session", "query"),
    [("Race", RESULTS), ("Qualifying", QUALIFYING), ("Sprint", SPRINTS)],
    ids=["race", "qualifying", "sprint"],
)
def test_fastf1_fetches_the_results_of_a_session(fastf1_client, url, tables, monkeypatch, session, query):
    monkeypatch.setattr(fastf1.ergast.legacy, "base_url", url)
    results = fastf1.ergast.fetch_results(2023, 18, session)
    expected = tables.rows(query.format(AUSTIN))
    assert [result["Driver"]["driverId"] for result in results] == [row["driverId"] for row in expected]


def duration(time):
    """The milliseconds of what ergast-py makes of a duration: a time of day, or None."""
    return time and ((time.hour * 60 + time.minute) * 60 + time.second) * 1000 + time.microsecond // 1000


def circuit_row(circuit):
    return {
        "circuitId": circuit.circuit_id,
        "circuitUrl": circuit.url,
        "circuitName": circuit.circuit_name,
        "lat": circuit.location.latitude,
        "long": circuit.location.longitude,
        "locality": circuit.location.locality,
        "country": circuit.location.country,
    }


def driver_row(driver):
    return {
        "driverId": driver.driver_id,
        "driverNumber": driver.permanent_number,
        "driverCode": driver.code,
        "driverUrl": driver.url,
        "givenName": driver.given_name,
        "familyName": driver.family_name,
        "dateOfBirth": driver.date_of_birth.isoformat(),
        "driverNationality": driver.nationality,
    }


def constructor_row(constructor):
    return {
        "constructorId": constructor.constructor_id,
        "constructorUrl": constructor.url,
        "constructorName": constructor.name,
        "constructorNationality": constructor.nationality,
    }


def result_row(result):
    return {
        **driver_row(result.driver),
        **constructor_row(result.constructor),
        "number": result.number,
        "position": result.position,
        "positionText": result.position_text,
        "points": result.points,
        "grid": result.grid,
        "laps": result.laps,
        "status": StatusType().id_to_string[result.status],
        "totalRaceTimeMillis": duration(result.time.millis),
        "fastestLapNumber": result.fastest_lap.lap,
        "fastestLapRank": result.fastest_lap.rank,
        "fastestLapTime": duration(result.fastest_lap.time),
        "Q1": duration(result.qual_1),
        "Q2": duration(result.qual_2),
        "Q3": duration(result.qual_3),
    }


def race_rows(race):
    """The rows of records in a race; if it has none, its own."""
    above = {
        "season": race.season,
        "round": race.round_no,
        "raceUrl": race.url,
        "raceName": race.race_name,
        "raceDate": race.date.date().isoformat(),
        "raceTime": race.date.time().isoformat(),
        **circuit_row(race.circuit),
    }
    rows = [result_row(result) for result in race.results + race.sprint_results + race.qualifying_results]
    for lap in race.laps:
        for timing in lap.timings:
            time = duration(timing.time)
            rows.append({"driverId": timing.driver_id, "number": lap.number, "position": timing.position, "time": time})
    for stop in race.pit_stops:
        time = stop.local_time.isoformat()
        rows.append(
            {
                "driverId": stop.driver_id,
                "stop": stop.stop,
                "lap": stop.lap,
                "time": time,
                "duration": duration(stop.duration),
            }
        )
    if not rows:
        rows = [
            {
                "fp1Date": race.first_practice and race.first_practice.date().isoformat(),
                "fp1Time": race.first_practice and race.first_practice.time().isoformat(),
                "qualifyingDate": race.qualifying and race.qualifying.date().isoformat(),
                "qualifyingTime": race.qualifying and race.qualifying.time().isoformat(),
            }
        ]
    return [{**above, **row} for row in rows]


def standings_rows(standings):
    rows = [
        {
            **driver_row(standing.driver),
            "constructorIds": ",".join(constructor.constructor_id for constructor in standing.constructors),
            **standing_row(standing),
        }
        for standing in standings.driver_standings
    ]
    rows += [
        {**constructor_row(standing.constructor), **standing_row(standing)}
        for standing in standings.constructor_standings
    ]
    return [{"season": standings.season, "round": standings.round_no, **row} for row in rows]


def standing_row(standing):
    return {
        "position": standing.position,
        "positionText": standing.position_text,
        "points": standing.points,
        "wins": standing.wins,
    }


def model_rows(model):
    """The rows in one of ergast-py's objects, under the names that the tables have."""
    match model:
        case ergast_py.Season():
            return [{"season": model.season, "seasonUrl": model.url}]
        case ergast_py.Status():
            return [{"statusId": model.status_id, "status": model.status, "count": model.count}]
        case ergast_py.Circuit():
            return [circuit_row(model)]
        case ergast_py.Driver():
            return [driver_row(model)]
        case ergast_py.Constructor():
            return [constructor_row(model)]
        case ergast_py.Race():
            return race_rows(model)
        case ergast_py.StandingsList():
            return standings_rows(model)
    raise TypeError(type(model))


def ergast_py_rows(client, method, filters):
    """The rows in the answer to a method of ergast-py."""
    for name, value in filters.items():
        getattr(client, name)(value)
    answer = getattr(client, method)()
    return [row for model in (answer if isinstance(answer, list) else [answer]) for row in model_rows(model)]


def without_defaults(row, names):
    """The facts of a row under `names`. ergast-py fills in 0, midnight or no text if a fact is missing."""
    return {name: None if row.get(name) in (0, "", "00:00:00") else row.get(name) for name in names}


@pytest.mark.parametrize(("method", "filters", "query", "condition"), ERGAST_PY, ids=map(case_name, ERGAST_PY))
def test_ergast_py_gets_the_rows_of_the_csv_files(ergast_py_client, tables, method, filters, query, condition):
    filters = with_status_number(filters, tables)
    rows = ergast_py_rows(ergast_py_client, method, {**filters, "limit": 2000})
    expected = tables.rows(query.format(condition))
    names = expected[0].keys() & rows[0].keys()
    assert names >= expected[0].keys() - {"sprintDate"}
    assert [without_defaults(row, names) for row in rows] == [without_defaults(row, names) for row in expected]


@pytest.mark.parametrize(("method", "filters", "query"), [call[1:] for call in PAGED], ids=[call[0] for call in PAGED])
def test_ergast_py_gets_every_page_by_limit_and_offset(ergast_py_client, tables, method, filters, query):
    expected = tables.rows(query)
    limit = min(len(expected) // 3 + 1, 2000)
    rows = ergast_py_rows(ergast_py_client, method, {**filters, "limit": limit})
    for offset in range(limit, len(expected), limit):
        rows += ergast_py_rows(ergast_py_client, method, {**filters, "limit": limit, "offset": offset})
    names = expected[0].keys()
    assert [without_defaults(row, names) for row in rows] == [without_defaults(row, names) for row in expected]


def test_ergast_py_must_not_name_the_first_page(ergast_py_client):
    # It sends offset(0) as `offset=`, and an empty number is refused like every other one that is none.
    with pytest.raises(Exception, match=r"400|Bad Request|offset"):
        ergast_py_rows(ergast_py_client, "get_circuits", {"limit": 10, "offset": 0})


def test_ergast_py_reads_an_empty_answer(ergast_py_client):
    assert ergast_py_client.season(2023).round(99).get_results() == []
    assert ergast_py_client.season(1949).get_driver_standings() == []
    assert ergast_py_client.season(2021).round(12).get_pit_stops() == []
