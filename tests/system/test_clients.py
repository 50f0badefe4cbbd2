"""Clients of the Ergast interface, unchanged but for the host: FastF1 and ergast-py read what the
oracle answers.

The addresses are those that the clients request. The data is that of a full dump, if there is one.
"""

import datetime
import os
import re
import warnings
from collections import Counter
from textwrap import dedent
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
from support import ROOT, SAMPLE
from support.answers import settings_of
from support.oracle import TABLES, Oracle, parse
from support.processes import OFF, nginx_with_copy, service

from racedata.service import site

with warnings.catch_warnings():
    # pytz 2022, which ergast-py requires and pandas imports, on Python 3.12 or newer
    warnings.filterwarnings(
        "ignore", r"datetime\.datetime\.utcfromtimestamp\(\) is deprecated", DeprecationWarning
    )
    import ergast_py
    import ergast_py.requester
    import fastf1
    import fastf1.ergast.legacy
    import fastf1.req
    import pandas
    from ergast_py.constants.status_type import StatusType
    from fastf1.ergast import Ergast
    from fastf1.exceptions import ErgastInvalidRequestError

# 25 seconds all together
pytestmark = [pytest.mark.long(25), pytest.mark.usefixtures("only_this_machine")]

README, CLIENTS = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/clients.md")
)
HOST = "http://127.0.0.1:8000"

# FastF1's methods with selectors. A status is a text, because each dump has its own numbers; `_` in
# it is a space.
FASTF1 = """
get_seasons: -; circuit=monza; driver=hamilton constructor=mercedes grid_position=1 status=Finished
get_seasons: results_position=1 fastest_rank=1
get_race_schedule: season=2023; season=1957; season=current round=last
get_race_schedule: season=2023 driver=alonso circuit=americas
get_race_schedule: season= circuit=monaco
get_driver_info: season=2023; driver=hamilton; constructor=ferrari results_position=1
get_constructor_info: constructor=ferrari; driver=alonso; season=2023 fastest_rank=1 status=Finished
get_circuits: season=2023; constructor=red_bull grid_position=1 results_position=1
get_finishing_status: -; season=2023; driver=alonso status=Finished
get_race_results: season=2023 round=18; season=1957 round=5; season=current round=last
get_race_results: driver=alonso; season=2023 status=+1_Lap
get_race_results: circuit=silverstone constructor=mercedes grid_position=1 fastest_rank=1
get_qualifying_results: season=2005 round=1; results_position=1; driver=leclerc grid_position=1
get_qualifying_results: season=2023 fastest_rank=1 status=Finished
get_sprint_results: season=2023 round=18; results_position=1
get_sprint_results: driver=max_verstappen grid_position=1 status=Finished
get_driver_standings: season=1957; season=1997; season=2023 round=9; driver=hamilton
get_driver_standings: standings_position=1
get_constructor_standings: season=2023 round=9; constructor=ferrari; standings_position=1
get_lap_times: season=2023 round=18; season=2023 round=18 lap_number=7
get_lap_times: season=2023 round=18 driver=alonso
get_pit_stops: season=2021 round=10; season=2023 round=18 stop_number=2
get_pit_stops: season=2023 round=18 lap_number=17 driver=norris
"""

# The same for ergast-py: its methods with filters.
ERGAST_PY = """
get_seasons: -; driver=alonso result=1
get_circuits: season=2023
get_circuit: circuit=silverstone
get_races: season=2023; season=1957; season=2023 circuit=monaco
get_race: season=current round=last
get_driver: driver=hamilton; season=2023 round=18 fastest=1
get_drivers: season=2023 qualifying=1
get_constructor: constructor=mercedes
get_constructors: driver=alonso
get_result: season=2023 round=18; season=1957 round=5
get_results: driver=alonso; circuit=americas fastest=1 status=Finished
get_sprint: season=2023 round=18
get_sprints: season=2023 sprint=3
get_qualifying: season=2023 round=18
get_qualifyings: season=2023 qualifying=1; driver=leclerc grid=1
get_driver_standings: season=2023; standing=1; driver=hamilton
get_driver_standing: season=2023 round=9
get_constructor_standing: season=2005 standing=3
get_constructor_standings: constructor=ferrari
get_lap: season=2023 round=18 lap=1
get_laps: season=2023 round=18 driver=alonso
get_pit_stops: season=2023 round=18; season=2023 round=18 lap=17 driver=norris
get_pit_stop: season=2021 round=10 pit_stop=1
get_statuses: season=2023
get_status: status=Finished
"""

# Answers of several pages: of FastF1, and of ergast-py.
PAGED = """
get_seasons; get_seasons
get_race_schedule season=; get_races
get_driver_info; get_drivers
get_constructor_info; get_constructors
get_circuits; get_circuits
get_finishing_status; get_statuses
get_race_results driver=alonso; get_results driver=alonso
get_qualifying_results driver=alonso; get_qualifyings driver=alonso
get_sprint_results; get_sprints
get_driver_standings; get_driver_standings
get_constructor_standings; get_constructor_standings
get_lap_times season=2023 round=18; get_laps season=2023 round=18
get_pit_stops season=2023 round=18; get_pit_stops season=2023 round=18
"""

# Lists that have files in a static copy: of FastF1, and of ergast-py.
COPIED = """
get_seasons; get_seasons
get_race_schedule season=2023; get_races season=2023
get_race_schedule season=current round=last; get_race season=current round=last
get_driver_info season=2023; get_drivers season=2023
get_race_results season=2023 round=18; get_result season=2023 round=18
get_race_results driver=alonso; get_sprint season=2023 round=18
get_driver_standings season=2023 round=9; get_driver_standing season=2023 round=9
get_lap_times season=2023 round=18; get_laps season=2023 round=18
"""

# What FastF1 finds nothing for, and how it asks.
NOTHING = """
get_seasons: driver=nobody
get_race_schedule: season=1949
get_driver_info: driver=nobody
get_constructor_info: constructor=nobody
get_circuits: season=1949
get_finishing_status: status=999
get_race_results: season=2023 round=99
get_qualifying_results: season=1957 round=5
get_sprint_results: season=2005
get_driver_standings: season=1949
get_constructor_standings: season=1957
get_lap_times: season=2023 round=99
get_pit_stops: season=2021 round=12
"""


def calls(text):
    """Each method with each of its selectors; `-` is none."""
    lines = [line.split(":") for line in text.strip().splitlines()]
    return [
        f"{method} {selectors.strip(' -')}"
        for method, each in lines
        for selectors in each.split(";")
    ]


@pytest.fixture(scope="module")
def source(request):
    """The folder of a dump, and the database built from it."""
    if "ERGAST_DUMP" in os.environ:
        return request.getfixturevalue("dump"), request.getfixturevalue("dump_database")
    return SAMPLE, request.getfixturevalue("sample_database")


@pytest.fixture(scope="module")
def url(source, attempts, tmp_path_factory):
    """The base URL of a service over the database, in the same network as the tests."""
    with service(source[1], tmp_path_factory.mktemp("log") / "log", **OFF) as running:
        yield "http://{}:{}/ergast/f1".format(*running.address)


@pytest.fixture(scope="module")
def oracle(source, url):
    return Oracle(source[0], base_url=url)


@pytest.fixture(autouse=True)
def requested(monkeypatch):
    """The URLs that a client has requested."""
    urls, send = [], requests.Session.send

    def note_and_send(session, prepared, **options):
        urls.append(prepared.url)
        return send(session, prepared, **options)

    monkeypatch.setattr(requests.Session, "send", note_and_send)
    return urls


@pytest.fixture
def selectors_of(oracle):
    """Returns the method of a call and its selectors: numbers, texts, and None if nothing is behind
    the `=`.
    """

    def selectors_of(call):
        method, *words = call.split()
        selectors = dict(word.split("=") for word in words)
        if not selectors.get("status", "0").isdigit():
            text = selectors["status"].replace("_", " ")
            [selectors["status"]] = [
                number for number, status in oracle.status.items() if status == text
            ]
        return method, {
            name: int(value) if value.isdigit() else value or None
            for name, value in selectors.items()
        }

    return selectors_of


@pytest.fixture
def fastf1_asks(url, selectors_of, monkeypatch, tmp_path):
    """Returns FastF1's answer to a call: with the address changed as in README.md, and without its
    cache.
    """
    (line,) = re.findall(r"^\| FastF1 \| `(.*?)`", README, re.MULTILINE)
    exec(line.replace(HOST, url.removesuffix("/ergast/f1")))
    # It would wait before each request, and send no more than 500.
    monkeypatch.setattr(fastf1.req._SessionWithRateLimiting, "_RATE_LIMITS", {})
    # A folder is needed all the same: without one FastF1 caches in the home directory.
    fastf1.Cache.configure(cache_dir=str(tmp_path), use_requests_cache=False)

    def ask(call, **options):
        method, selectors = selectors_of(call)
        return getattr(Ergast(limit=2000), method)(**selectors, **options)

    return ask


@pytest.fixture
def ergast_py_asks(url, selectors_of, monkeypatch):
    """Returns the list that ergast-py makes of a call, with the host changed as in the document."""
    # restored after the test
    monkeypatch.setattr(ergast_py.requester, "URITemplate", ergast_py.requester.URITemplate)
    (block,) = re.findall("    from ergast_py import requester\n(?:    .*\n)+", CLIENTS)
    exec(dedent(block).replace(HOST, url.removesuffix("/ergast/f1")), {})

    def ask(call, **options):
        client = ergast_py.Ergast()
        method, selectors = selectors_of(call)
        for name, value in {**selectors, **options}.items():
            getattr(client, name)(value)
        answer = getattr(client, method)()
        return answer if isinstance(answer, list) else [answer]

    return ask


@pytest.fixture
def expected(oracle, source, requested):
    """Returns the total and the records that the oracle answers at the last URL that a client has
    requested.
    """

    def expected(number=-1):
        parts = urlsplit(requested[number])
        path = parts.path.removeprefix("/ergast/f1")
        status, answer = oracle.answer(
            path, **{name: int(value) for name, value in parse_qsl(parts.query)}
        )
        assert status == 200
        assert answer["total"] != "0" or source[0] == SAMPLE
        table, name, _ = TABLES[parse(path)[-1]]
        return int(answer["total"]), answer[table][name]

    return expected


def plain(value):
    """A value of a client or of the oracle, in one form: numbers, durations and times of a day in
    seconds, texts.
    """
    if isinstance(value, datetime.time):
        value = (
            datetime.datetime.combine(datetime.date.min, value.replace(tzinfo=None))
            - datetime.datetime.min
        )
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds(), 3)
    if isinstance(value, datetime.date):
        return value.strftime("%Y-%m-%d")
    if re.fullmatch(r"-?\d+(\.\d+)?", text := str(value)):
        return float(text)
    if re.fullmatch(r"(\d+:){1,2}\d\d(\.\d+)?Z?", text):
        *most, seconds = map(float, text.rstrip("Z").split(":"))
        minutes = sum(60**place * part for place, part in enumerate(reversed(most)))
        return round(minutes * 60 + seconds, 3)
    return text


def whole(item):
    """The same objects with plain values."""
    if isinstance(item, dict):
        return {name: whole(value) for name, value in item.items()}
    return [whole(each) for each in item] if isinstance(item, list) else plain(item)


def rows_in(item):
    """The rows in an object: each has its plain values and those of the objects around it."""
    own, inner = [], []
    for name, value in (item if isinstance(item, dict) else vars(item)).items():
        nested = [
            each for each in (value if isinstance(value, list) else [value]) if has_fields(each)
        ]
        if nested and isinstance(value, list) and name.lower() != "constructors":
            inner += [row for each in nested for row in rows_in(each)]
        elif nested:
            own += [found for each in nested for [row] in [rows_in(each)] for found in row]
        elif isinstance(value, list):
            own += map(plain, value)
        elif name == "millis" and value is not None:  # ergast-py makes a time of it
            own.append(
                round(plain(value) * 1000) if isinstance(value, datetime.time) else plain(value)
            )
        elif name == "status" and isinstance(value, int):  # ergast-py has numbers of its own
            own.append(StatusType().id_to_string[value])
        elif isinstance(value, datetime.datetime) and value.tzinfo:
            own += [plain(value), plain(value.time())]
        elif not pandas.isna(value):
            own.append(plain(value))
    return [own + row for row in inner or [[]]]


def has_fields(value):
    return isinstance(value, dict) or type(value).__module__.startswith("ergast_py.")


def counted(records, without=()):
    """The values of each row, in any order, without those that mean nothing to a client."""
    return [
        Counter(value for value in row if value not in without)
        for each in records
        for row in rows_in(each)
    ]


def frames(answer):
    """An answer in pandas as records: each race or list of standings with its rows."""
    if not hasattr(answer, "content"):
        return answer.to_dict("records")
    heads = answer.description.to_dict("records")
    return [
        {**head, "rows": frame.to_dict("records")} for head, frame in zip(heads, answer.content)
    ]


def known(records, dateless=True):
    """Records without the sessions that no client knows; and without those that have a date and no
    time.
    """

    def is_known(name, value):
        has_no_time = isinstance(value, dict) and {"date", "time"} & value.keys() == {"date"}
        return not name.startswith(("SprintShootout", "SprintQualifying")) and (
            dateless or not has_no_time
        )

    return [{name: each[name] for name in each if is_known(name, each[name])} for each in records]


@pytest.mark.parametrize("call", calls(FASTF1))
def test_fastf1_reads_all_that_the_oracle_answers(fastf1_asks, expected, call):
    answer = fastf1_asks(call)
    total, records = expected()
    assert counted(frames(answer)) == counted(known(records))
    assert (answer.total_results, answer.is_complete) == (total, True)
    assert whole(list(fastf1_asks(call, result_type="raw"))) == whole(records)


@pytest.mark.parametrize("call", PAGED.strip().splitlines())
def test_fastf1_turns_the_pages_to_the_end_and_back(fastf1_asks, expected, requested, call):
    call = call.partition(";")[0]
    total = fastf1_asks(call, limit=1).total_results
    limit = min(total // 3 + 1, 2000)
    requested.clear()
    pages = [fastf1_asks(call, limit=limit)]
    for _ in range(limit, total, limit):
        pages.append(pages[-1].get_next_result_page())
    with pytest.raises(ValueError, match="No more data after"):
        pages[-1].get_next_result_page()
    pages.append(pages[-1].get_prev_result_page())
    offsets = [int(dict(parse_qsl(urlsplit(url).query)).get("offset", 0)) for url in requested]
    assert offsets == [*range(0, total, limit), limit * (len(pages) - 3)]
    for number, page in enumerate(pages):
        assert counted(frames(page)) == counted(known(expected(number)[1]))


@pytest.mark.parametrize("call", calls(NOTHING))
def test_fastf1_reads_an_empty_answer(fastf1_asks, call):
    for result_type in ("pandas", "raw"):
        answer = fastf1_asks(call, result_type=result_type)
        assert answer.total_results == 0
        assert len(getattr(answer, "content", answer)) == 0


# pandas 2 with NumPy 2.5 or newer, which needs Python 3.12
@pytest.mark.filterwarnings(
    "ignore:The 'generic' unit for NumPy timedelta is deprecated:DeprecationWarning"
)
@pytest.mark.usefixtures("fastf1_asks")
def test_fastf1_makes_the_schedule_of_a_season_and_fetches_results(oracle, expected):
    for season, options in [(1957, {}), (2023, {"backend": "ergast"})]:
        schedule = fastf1.get_event_schedule(season, **options)
        races = oracle.answer(f"/{season}/races")[1]["RaceTable"]["Races"]
        assert list(schedule["EventName"]) == [race["raceName"] for race in races]
        sprints = [int(race["round"]) for race in races if "Sprint" in race]
        found = schedule[schedule["EventFormat"] == "sprint_shootout"]["RoundNumber"]
        assert list(found) == sprints and bool(sprints) == (season == 2023)
    for session in ("Race", "Qualifying", "Sprint"):
        results = fastf1.ergast.fetch_results(2023, 18, session)
        [race] = expected()[1]
        [name] = [name for name in race if name.endswith("Results")]
        assert whole(results) == whole(race[name])


def assert_read(answer, records):
    """ergast-py fills in 0, midnight or no text if a fact is missing, and ignores sessions that
    have no time.
    """
    assert counted(answer, without=(0, "")) == counted(
        known(records, dateless=False), without=(0, "")
    )


@pytest.mark.parametrize("call", calls(ERGAST_PY))
def test_ergast_py_reads_all_that_the_oracle_answers(ergast_py_asks, expected, call):
    assert_read(ergast_py_asks(call, limit=2000), expected()[1])


@pytest.mark.parametrize("call", PAGED.strip().splitlines())
def test_ergast_py_gets_every_page_by_limit_and_offset(ergast_py_asks, expected, call):
    call = call.partition(";")[2]
    ergast_py_asks(call, limit=1)
    total, _ = expected()
    limit = min(total // 3 + 1, 2000)
    assert_read(ergast_py_asks(call, limit=limit), expected()[1])
    for offset in range(limit, total, limit):
        assert_read(ergast_py_asks(call, limit=limit, offset=offset), expected()[1])


@pytest.fixture(scope="module")
def live_and_copy(sample_database, attempts, tmp_path_factory):
    """The base URLs of a service over the sample, and of its static copy behind nginx."""
    folder = tmp_path_factory.mktemp("copy")
    site.export(settings_of(database=sample_database), str(folder / "copy"))
    with (
        service(sample_database, folder / "log", **OFF) as running,
        nginx_with_copy(folder, folder / "copy") as copy,
    ):
        yield ["http://{}:{}/ergast/f1".format(*address) for address in (running.address, copy)]


@pytest.mark.parametrize("call", COPIED.strip().splitlines())
def test_fastf1_reads_the_same_from_a_static_copy(fastf1_asks, live_and_copy, call, monkeypatch):
    answers = []
    for url in live_and_copy:
        monkeypatch.setattr(fastf1.ergast.interface, "BASE_URL", url)
        answers.append(fastf1_asks(call.partition(";")[0]))
    live, copied = answers
    assert counted(frames(copied)) == counted(frames(live))
    assert (copied.total_results, copied.is_complete) == (live.total_results, True)


@pytest.mark.parametrize("call", COPIED.strip().splitlines())
def test_ergast_py_reads_the_same_from_a_static_copy(
    ergast_py_asks, live_and_copy, call, monkeypatch
):
    template, answers = ergast_py.requester.URITemplate, []
    for url in live_and_copy:
        monkeypatch.setattr(
            ergast_py.requester,
            "URITemplate",
            lambda address, url=url: template(
                address.replace("https://api.jolpi.ca/ergast", url.removesuffix("/f1"))
            ),
        )
        answers.append(ergast_py_asks(call.partition(";")[2], limit=2000))
    live, copied = map(counted, answers)
    assert copied == live


def test_a_refused_request_is_reported(fastf1_asks, ergast_py_asks):
    with pytest.raises(ErgastInvalidRequestError, match="Bad Request"):
        fastf1_asks("get_lap_times season= round=")
    # ergast-py sends offset(0) as `offset=`; an empty text is refused like any that is no number
    with pytest.raises(Exception, match=r"400|Bad Request|offset"):
        ergast_py_asks("get_circuits", limit=10, offset=0)


@pytest.mark.parametrize(
    "call", calls("get_results: season=2023 round=99\nget_driver_standings: season=1949")
)
def test_ergast_py_reads_an_empty_answer(ergast_py_asks, call):
    assert ergast_py_asks(call) == []
