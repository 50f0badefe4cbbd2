"""Clients of the Ergast interface, unchanged but for the host: FastF1 and ergast-py read the same
from the service, and from its static copy, as from the oracle.

The addresses are those that the clients request.
"""

import json
import re
import warnings
from textwrap import dedent
from urllib.parse import parse_qsl

import pytest
from support import ROOT, SAMPLE
from support.answers import settings_of
from support.apis import served
from support.oracle import Oracle
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
    from fastf1.ergast import Ergast
    from fastf1.exceptions import ErgastInvalidRequestError

pytestmark = [
    pytest.mark.long(15),  # all together
    pytest.mark.usefixtures("only_this_machine"),
    # pandas 2 with NumPy 2.5 or newer, which needs Python 3.12
    pytest.mark.filterwarnings(
        "ignore:The 'generic' unit for NumPy timedelta is deprecated:DeprecationWarning"
    ),
]

README, CLIENTS = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/clients.md")
)
HOST = "http://127.0.0.1:8000"

# FastF1's methods with selectors; `-` is none. A static copy has files for those with `copied`. In
# the sample, the status 15 is Finished, 1 is +1 Lap.
FASTF1 = """
get_seasons: - copied; driver=hamilton constructor=mercedes grid_position=1 status=15; driver=nobody
get_race_schedule: season=2023 copied; season=current round=last copied; season= circuit=monaco
get_race_schedule: season=1949
get_driver_info: season=2023 copied; constructor=ferrari results_position=1; driver=nobody
get_constructor_info: -; driver=alonso; season=2023 fastest_rank=1 status=15; constructor=nobody
get_circuits: -; constructor=red_bull grid_position=1 results_position=1; season=1949
get_finishing_status: -; driver=alonso status=15; status=999
get_race_results: season=2023 round=18 copied; season=1957 round=5; season=2023 round=99
get_race_results: circuit=silverstone constructor=mercedes grid_position=1 fastest_rank=1
get_qualifying_results: season=2005 round=1; driver=leclerc grid_position=1; season=1957 round=5
get_sprint_results: -; driver=max_verstappen grid_position=1 status=15; season=2005
get_driver_standings: -; season=2023 round=9 copied; standings_position=1; season=1949
get_constructor_standings: -; season=2023 round=9; constructor=ferrari; season=1957
get_lap_times: season=2023 round=18 copied; season=2023 round=18 lap_number=7
get_lap_times: season=2023 round=18 driver=alonso; season=2023 round=99
get_pit_stops: season=2023 round=18; season=2023 round=18 stop_number=2; season=2021 round=12
get_pit_stops: season=2023 round=18 lap_number=17 driver=norris
"""

# The same for ergast-py: its methods with filters.
ERGAST_PY = """
get_seasons: - copied; driver=alonso result=1
get_circuits: season=2023
get_circuit: circuit=silverstone
get_races: season=2023 copied; season=1957; season=2023 circuit=monaco
get_race: season=current round=last copied
get_driver: season=2023 round=18 fastest=1
get_drivers: season=2023 copied; season=2023 qualifying=1
get_constructor: constructor=mercedes
get_constructors: driver=alonso
get_result: season=1957 round=5 copied
get_results: circuit=americas fastest=1 status=15; season=2023 round=99
get_sprint: season=2023 round=18 copied
get_sprints: season=2023 sprint=3
get_qualifying: season=2023 round=18
get_qualifyings: season=2023 qualifying=1; driver=leclerc grid=1
get_driver_standings: season=2023; standing=1; season=1949
get_driver_standing: season=2023 round=9 copied
get_constructor_standing: season=2005 standing=3
get_constructor_standings: constructor=ferrari
get_lap: season=2023 round=18 lap=1
get_laps: season=2023 round=18 copied; season=2023 round=18 driver=alonso
get_pit_stops: season=2023 round=18; season=2023 round=18 lap=17 driver=norris
get_pit_stop: season=2021 round=10 pit_stop=1
get_statuses: season=2023
get_status: status=15
"""


def calls(text):
    """Each method with each of its selectors: numbers, texts, and None if nothing is behind the
    `=`; and whether a static copy has it.
    """
    for method, selectors in re.findall(r"^(\w+): (.*)$", text, re.MULTILINE):
        for each in selectors.split("; "):
            given = dict(re.findall(r"(\w+)=(\S*)", each))
            given = {
                name: int(value) if value.isdigit() else value or None
                for name, value in given.items()
            }
            yield pytest.param(method, given, each.endswith(" copied"), id=f"{method}: {each}")


@pytest.fixture(scope="module")
def oracle():
    """A server that answers as the oracle does."""
    oracle = Oracle(SAMPLE, base_url="")

    def answer(address):
        path, _, query = address.removeprefix("/ergast/f1").partition("?")
        values = {name: int(value) for name, value in parse_qsl(query)}
        status, found = oracle.answer(path, **values)
        return status, {}, json.dumps({"MRData": found}).encode()

    with served(answer) as server:
        yield server


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


@pytest.fixture
def fastf1_at(monkeypatch, tmp_path):
    """Gives FastF1 a base URL as README.md says. It runs without its cache."""
    (line,) = re.findall(r"^\| FastF1 \| `(.*?)`", README, re.MULTILINE)
    # It would wait before each request, and send no more than 500.
    monkeypatch.setattr(fastf1.req._SessionWithRateLimiting, "_RATE_LIMITS", {})
    # A folder is needed all the same: without one FastF1 caches in the home directory.
    fastf1.Cache.configure(cache_dir=str(tmp_path), use_requests_cache=False)
    return lambda url: exec(line.replace(HOST, url.removesuffix("/ergast/f1")))


@pytest.fixture
def ergast_py_at(monkeypatch):
    """Gives ergast-py a base URL as the document says."""
    template = ergast_py.requester.URITemplate
    (block,) = re.findall("    from ergast_py import requester\n(?:    .*\n)+", CLIENTS)

    def ergast_py_at(url):
        monkeypatch.setattr(ergast_py.requester, "URITemplate", template)
        exec(dedent(block).replace(HOST, url.removesuffix("/ergast/f1")), {})

    return ergast_py_at


def texts(answer):
    """An answer of FastF1 as text: each race or list of standings with its rows."""
    frames = [answer.description, *answer.content] if hasattr(answer, "content") else [answer]
    return answer.total_results, answer.is_complete, [frame.to_csv() for frame in frames]


def read_with_fastf1(method, selectors):
    """All that FastF1 makes of a call: in pandas, raw, and in pages, to the end and one back."""
    ask, client = getattr(Ergast(), method), Ergast(limit=2000)
    whole = getattr(client, method)(**selectors)
    raw = getattr(client, method)(**selectors, result_type="raw")
    total = whole.total_results
    assert (total, whole.is_complete) == (raw.total_results, True)
    rows = whole.content if hasattr(whole, "content") else [whole]
    assert sum(map(len, rows)) == total
    pages = [ask(**selectors, limit=total // 3 + 1)]
    while not pages[-1].is_complete and len(pages) * (total // 3 + 1) < total:
        pages.append(pages[-1].get_next_result_page())
    with pytest.raises(ValueError, match="No more data after"):
        pages[-1].get_next_result_page()
    if len(pages) > 1:
        pages.append(pages[-1].get_prev_result_page())
    return list(raw), texts(whole), [texts(page) for page in pages]


def read_with_ergast_py(method, filters):
    """The same of ergast-py, whose pages are asked for by limit and offset."""

    def ask(**more):
        client = ergast_py.Ergast()
        for name, value in {**filters, **more}.items():
            getattr(client, name)(value)
        return getattr(client, method)()

    whole = ask(limit=2000)
    pages = [ask(limit=2), ask(limit=2, offset=2)] if isinstance(whole, list) else []
    return whole, pages


@pytest.mark.parametrize(("method", "selectors", "is_copied"), [*calls(FASTF1)])
def test_fastf1_reads_the_same_as_from_the_oracle(
    fastf1_at, oracle, live_and_copy, method, selectors, is_copied
):
    fastf1_at(oracle.url)
    raw, whole, pages = read_with_fastf1(method, selectors)
    live, copy = live_and_copy
    fastf1_at(live)
    assert read_with_fastf1(method, selectors) == (raw, whole, pages)
    if is_copied:
        fastf1_at(copy)
        assert texts(getattr(Ergast(), method)(**selectors)) == whole


@pytest.mark.parametrize(("method", "filters", "is_copied"), [*calls(ERGAST_PY)])
def test_ergast_py_reads_the_same_as_from_the_oracle(
    ergast_py_at, oracle, live_and_copy, method, filters, is_copied
):
    ergast_py_at(oracle.url)
    whole, pages = read_with_ergast_py(method, filters)
    assert bool(whole) == (99 not in filters.values() and 1949 not in filters.values())
    live, copy = live_and_copy
    ergast_py_at(live)
    assert read_with_ergast_py(method, filters) == (whole, pages)
    if is_copied:
        ergast_py_at(copy)
        assert read_with_ergast_py(method, filters)[0] == whole


def test_a_refused_request_is_reported(fastf1_at, ergast_py_at, live_and_copy):
    fastf1_at(live_and_copy[0])
    with pytest.raises(ErgastInvalidRequestError, match="Bad Request"):
        Ergast().get_lap_times(season=None, round=None)
    ergast_py_at(live_and_copy[0])
    # ergast-py sends offset(0) as `offset=`; an empty text is refused like any that is no number
    with pytest.raises(Exception, match=r"400|Bad Request|offset"):
        ergast_py.Ergast().limit(10).offset(0).get_circuits()
