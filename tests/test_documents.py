"""The documents against the code: tables are complete, example requests are answered, and commands
exist.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from functools import cache

import pytest
from support import EMPTY, PACKAGE, ROOT
from support.answers import EXAMPLE_OF_FILTER, is_part, routes_of_programs

from racedata.assistants import BOUNDS, RESOURCES, SIZE
from racedata.cli import COMMANDS
from racedata.database import SCHEMA
from racedata.loader.sources import DEFAULT_LIST, PUBLISHED, source_at
from racedata.model import KINDS
from racedata.service.endpoints import ENDPOINTS as SERVED
from racedata.service.health import report
from racedata.service.pages.differing_values import DOUBTS, NEWS
from racedata.service.request import FORMATS, OWN_PARAMETERS
from racedata.service.snapshot import Snapshot
from racedata.settings import LoaderSettings, Settings, option, settings_in, variable_of
from racedata.statements import MAX_HEAP

RACEDATA = [sys.executable, "-m", "racedata"]

PAGES = ["analysts", "assistants", "clients", "data", "interface", "run", "settings", "static"]
NAMES = [
    *("README.md", "CONTRIBUTING.md", "data/README.md", "deploy/README.md"),
    *(f"docs/{page}.md" for page in PAGES),
]
DOCUMENTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMES}
README, CONTRIBUTING = DOCUMENTS["README.md"], DOCUMENTS["CONTRIBUTING.md"]
ANALYSTS, ASSISTANTS, CLIENTS, DATA, INTERFACE, RUN, SETTINGS, _ = (
    DOCUMENTS[f"docs/{page}.md"] for page in PAGES
)
BASE = Settings().base_address


def table(heading, document=INTERFACE):
    """The rows of the first table with this text in its head, its head first, as lists of cells."""
    rows = re.search(rf"^\| *{re.escape(heading)} *\|.*\n\|[-| ]+\|\n(?:\|.*\n)+", document, re.M)
    assert rows, f"no table {heading!r}"
    head, _, *others = rows[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, *others)]


def in_code(text):
    """The texts in backticks."""
    return re.findall("`([^`]+)`", text)


HEAD, *ROWS = table("Endpoint")
ENDPOINTS = {in_code(row[0])[0]: row for row in ROWS}
OUTSIDE = {"/", "/docs", "/healthz", "/llms.txt", "/openapi.json"}
EXAMPLES = {
    BASE + text
    for text in in_code(INTERFACE.partition("## Caching")[0])
    if text[0] == "/" and text not in {BASE, "/racedata.db", *OUTSIDE}
}
REQUESTS = re.findall(
    r"""(?:curl '?|"|`|webcal:|https?:)(?://[\w.:]+)?(/ergast/f1/[^\s'"`)]+)""",
    README + INTERFACE + CLIENTS.partition("## What an answer looks like")[0],
)


def listed(endpoint):
    """The filters that the row of an endpoint has: a mark in their column, or their name in the
    last one.
    """
    row = ENDPOINTS[endpoint]
    marked = {name for head, cell in zip(HEAD[3:-1], row[3:-1]) if cell for name in in_code(head)}
    return marked | {*in_code(row[-1])}


def test_the_table_of_endpoints_has_a_row_for_every_route(sample):
    assert {f"{BASE}/{name}" for name in ENDPOINTS} | OUTSIDE == routes_of_programs(sample)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_an_endpoint_takes_what_its_row_says_and_refuses_the_rest(sample, endpoint):
    def is_taken(path):
        return sample.get(f"{BASE}/{path}", status=[200, 400]).status_int == 200

    with_value = {name: f"{name}/{value}" for name, value in EXAMPLE_OF_FILTER.items()}
    taken = {name for name, each in with_value.items() if is_taken(f"2023/18/{each}/{endpoint}")}
    filters = listed(endpoint)
    assert filters == {"season", "round", *taken}
    needs_race = ENDPOINTS[endpoint][3] == "required"
    assert needs_race != is_taken(f"2023/{endpoint}")
    for name in taken if "circuits" in filters else ():
        # a place in a championship, which is marked, refuses a circuit
        is_place = f"`{name}`¹" in ENDPOINTS[endpoint][-1]
        path = f"2023/18/{with_value[name]}/circuits/americas/{endpoint}"
        assert is_place != is_taken(path), name


def test_the_table_of_filters_has_every_filter_that_an_endpoint_takes():
    described = {name for row in table("Filter")[1:] for name in in_code(row[0])}
    used = {name for endpoint in ENDPOINTS for name in listed(endpoint)}
    assert described == used - {"season", "round"} == {*EXAMPLE_OF_FILTER}


def test_the_table_of_parameters_has_each_with_the_endpoints_that_accept_it():
    _, *rows = table("Parameter")
    of_formats = dict.fromkeys(name for format in FORMATS.values() for name in format.accepted)
    assert [in_code(row[0]) for row in rows] == [
        *([name] for name in of_formats),
        *([name] for name in ("since", "state", "provenance")),
    ]
    own = {in_code(row[0])[0]: {*in_code(row[-1])} for row in rows[len(of_formats) :]}
    assert own == {
        name: {each.name for each in SERVED if name in each.rules.parameters}
        for name in OWN_PARAMETERS
    }


def test_the_table_of_addresses_has_every_field_of_healthz(several_sources):
    (row,) = [row for row in table("Address")[1:] if row[0] == "`/healthz`"]
    data = Snapshot.read(str(several_sources))
    data.rejection = "is not a database"
    found = report(data, Settings(download=True))
    assert "refused" in found and "download" in found
    assert {*found} <= {*in_code(row[1])}


def test_the_table_of_addresses_has_every_route_outside_the_base_address(sample):
    texts = {text for row in table("Address")[1:] for cell in row for text in in_code(cell)}
    paths = {re.sub(r"^http://127\.0\.0\.1:8000|\?.*", "", text) for text in texts}
    forms = {"year": r"\d{4}", "number": r"\d+", "id": "[a-z_]+"}
    for route in sample.app.routes:
        if not route.startswith(f"{BASE}/"):
            pattern = re.sub(r"\\{\w+:(\w+)\\}", lambda field: forms[field[1]], re.escape(route))
            assert [path for path in paths if re.fullmatch(pattern, path)], route


def test_the_table_of_addresses_says_how_many_discrepancies_and_changes_their_pages_show():
    said = "".join(row[1] for row in table("Address")[1:])
    assert f"the {DOUBTS} most doubtful open ones" in said
    assert f"the {NEWS} latest changes" in said


@pytest.mark.parametrize(
    ("heading", "half"), [("Variable", Settings), ("Variable of the loader", LoaderSettings)]
)
def test_the_tables_of_settings_have_each_with_its_default_and_help(heading, half):
    documented = [[re.sub("`", "", cell) for cell in row] for row in table(heading, SETTINGS)[1:]]
    special = {
        "WEB_CONCURRENCY": "one per core, at most 8",
        "RACEDATA_DATABASE": "see [the database file](run.md#the-database-file)",
    }
    assert documented == [
        [
            variable,
            *([option(each.name)] if half is Settings else []),
            special.get(variable, each.metadata["default"] or "(empty)"),
            each.metadata["help"],
        ]
        for each in settings_in(half)
        for variable in [variable_of(each)]
    ]
    assert Settings().workers == min(os.cpu_count() or 1, 8)


@pytest.mark.parametrize("address", sorted({*EXAMPLES, *REQUESTS}))
def test_a_request_in_a_document_is_answered_with_data(sample, address):
    answer = sample.get(address, status=200)
    if re.search("|".join(EMPTY), address):
        assert answer.body
    elif answer.content_type == "text/calendar":
        assert "BEGIN:VEVENT" in answer.text
    elif answer.content_type == "text/csv":
        assert len(answer.text.splitlines()) > 1
    else:
        assert answer.json["MRData"]["total"] != "0"


@pytest.mark.parametrize("document", ["README.md", "docs/clients.md"])
def test_a_shortened_answer_is_part_of_the_real_one(sample, document):
    before, shown = re.findall(
        r"(.*?)^```json\n(.*?)^```", DOCUMENTS[document], re.DOTALL | re.MULTILINE
    )[0]
    address = re.findall(rf"{BASE}/[^\s'`)]+", before)[-1]
    answer = sample.get(address, headers={"Host": "127.0.0.1:8000"}).json
    assert is_part(json.loads(shown), answer)


def test_the_comparison_says_what_the_service_answers_and_the_recommended_sources_have():
    cells = {row[0]: row[1] for row in table("| racedata", README)[1:]}
    assert cells["Records per request"] == f"up to {Settings().max_limit:,}"
    assert in_code(cells["Calendars and tables"]) == [".ics", ".csv"]
    heads = {"results": "results, standings", "lap times": "lap timings"}
    for label in ("results", "qualifying", "lap times", "pit stops", "practice"):
        column = HEADS_OF_SOURCES.index(heads.get(label, label))
        years = [SOURCE_ROWS[name][column] for name in ("tracinginsights", "f1db")]
        assert cells[f"First season with {label}"] == min(filter(str.isdigit, years))


COMMAND = re.compile(r"^ +(?:sudo (?:--\S+ )?)?(?:\.venv/bin/)?racedata (\w+)([^#\n]*)", re.M)


@cache
def help_of(command):
    return subprocess.run([*RACEDATA, command, "--help"], capture_output=True, text=True).stdout


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_that_a_document_shows_exists_with_its_options(document):
    lines = "\n".join(f"  {text}" for text in in_code(DOCUMENTS[document])) + DOCUMENTS[document]
    shown = COMMAND.findall(lines)
    assert shown or document not in ("README.md", "docs/run.md", "docs/data.md")
    for command, arguments in shown:
        assert command in COMMANDS
        for name in re.findall(r"(?<= )--[a-z-]+", arguments.partition(" -- ")[0]):
            assert name in help_of(command)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_target_of_make_that_a_document_shows_exists_with_its_variables(document):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for text in re.findall(
        r"(?:`|^ +(?:\w+=\S+ )?(?:sudo )?(?:--\S+ )?)make ([a-z][^`#\n]*)",
        DOCUMENTS[document],
        re.M,
    ):
        for word in shlex.split(text):
            if word in ("&&", "|"):
                break
            name, has_value, _ = word.partition("=")
            assert re.search(rf"\b{name}\b" if has_value else rf"^{name}:", makefile, re.M), word


def test_the_tables_for_contributors_have_every_folder_with_code_and_module_of_the_loader():
    documented = {name for row in table("Folder", CONTRIBUTING)[1:] for name in in_code(row[0])}
    folders = {path.parent.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*.py")}
    assert documented == {f"{folder}/" for folder in folders} | {"scripts/", "tests/"}
    rows = table("Step of the loader", CONTRIBUTING)[1:]
    documented = [name for row in rows for name in in_code(row[1]) if name.endswith(".py")]
    modules = {path.name for path in (PACKAGE / "loader").glob("*.py")} - {"__init__.py"}
    assert sorted(documented) == sorted(modules)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_a_document_names_exists(document):
    text = DOCUMENTS[document]
    named = re.findall(r"`((?:racedata|scripts|data|docs|tests|deploy)/[\w./-]+)`", text)
    linked = re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text)
    paths = {(ROOT / document).parent / name for name in linked} | {
        (PACKAGE.parent if name.startswith("racedata/") else ROOT) / name for name in named
    }
    made = {ROOT / "data/racedata.db", PACKAGE / "racedata.db", ROOT / "deploy/.env"}
    assert [path for path in paths - made if not path.exists()] == []


def test_what_contributors_read_about_a_module_is_in_it():
    for module, name in re.findall(r"`([a-z]\w+)\.(\w+)`", CONTRIBUTING):
        modules = [*PACKAGE.rglob(f"{module}.py")]
        if modules and not [*PACKAGE.rglob(f"{module}.{name}")]:  # or it is the name of a file
            defined = re.compile(rf"^(?:(?:def|class) {name}\b|{name}\b.* = )", re.M)
            assert any(defined.search(path.read_text()) for path in modules), f"{module}.{name}"


PUBLISHED_ROWS = {in_code(row[0])[0]: row for row in table("Name", DATA)[1:]}
HEADS_OF_SOURCES, *ROWS_OF_SOURCES = table("Source", DATA)
SOURCE_ROWS = {in_code(row[0])[0]: row for row in ROWS_OF_SOURCES}


def test_the_tables_of_sources_have_the_published_ones_with_their_addresses_and_licences():
    assert [*PUBLISHED_ROWS] == [*PUBLISHED] == [*SOURCE_ROWS][: len(PUBLISHED)]
    for name, address in PUBLISHED.items():
        _, what, _ = PUBLISHED_ROWS[name]
        assert source_at(address).name == name
        assert address.startswith(tuple(re.findall(r"\]\((http.+?)\)", what)) or name)
    licences = {name: source_at(PUBLISHED[name]).licence for name in ("f1db", "jolpica")}
    assert {name: PUBLISHED_ROWS[name][-1] for name in licences} == licences


def test_the_table_of_sources_says_which_kinds_of_records_a_refresh_gets_from_each():
    labels = {kind.label.lower(): kind.name for kind in KINDS.values() if kind.endpoint}
    for source in map(source_at, set(DEFAULT_LIST) - {PUBLISHED["tracinginsights"]}):
        row = SOURCE_ROWS.get(source.name, SOURCE_ROWS["jolpica"])  # `jolpica`, and its API
        described = {
            labels.get(head, "results")
            for head, cell in zip(HEADS_OF_SOURCES, row)
            if cell[:4].isdigit() and "dump only" not in cell and head != "fastest laps"
        }
        assert described == {kind for kind in source.kinds if "standings" not in kind}


def test_the_page_for_analysts_says_what_a_row_of_every_table_is_and_names_every_view_once():
    _, *rows = table("Table", ANALYSTS)
    described = {name for row in rows for name in in_code(row[0])}
    assert described == {*re.findall(r"^CREATE TABLE (\w+)", SCHEMA, re.M)}
    views = re.findall(r"^CREATE VIEW (\w+)", SCHEMA, re.M)
    assert [name for row in rows for name in in_code(row[1])] == views


def anchors(text):
    """The anchors of the headings of a document, in their order."""
    headings = re.findall(r"^#+ (.*)", text, re.M)
    return [re.sub(r"[^\w -]", "", line).lower().replace(" ", "-") for line in headings]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_heading_that_a_document_links_to_exists(document):
    for name, anchor in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", DOCUMENTS[document]):
        path = (ROOT / document).parent / name if name else ROOT / document
        assert anchor in anchors(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "document", ["CONTRIBUTING.md", *(f"docs/{page}.md" for page in PAGES if page != "settings")]
)
def test_the_contents_of_a_document_name_every_heading_of_the_second_level(document):
    before, *sections = re.split("^(?=## )", DOCUMENTS[document], flags=re.M)
    contents = re.findall(r"\]\(#([\w-]+)\)", before)
    assert {anchors(section)[0] for section in sections} - {*contents} <= {"where-to-go-next"}


def test_the_page_for_assistants_has_every_tool_and_resource_and_lines_that_start_it():
    assert [in_code(row[0])[0] for row in table("Tool", ASSISTANTS)[1:]] == [
        "ask(address)",
        "sql(select)",
        "coverage()",
        "changes(since)",
    ]
    assert {*re.findall(r"`(racedata://\w+)`", ASSISTANTS)} == {*RESOURCES}
    configurations = re.findall(r"^```json\n(.*?)^```", ASSISTANTS, re.DOTALL | re.M)
    of_desktop, of_code = map(json.loads, configurations)
    for servers in (of_desktop["mcpServers"], of_code["servers"]):
        command = [servers["racedata"]["command"], *servers["racedata"]["args"]]
        assert f" -- {shlex.join(command)}\n" in ASSISTANTS
    numbers = (f"{BOUNDS.rows} rows", f"{BOUNDS.size:,} characters", f"{SIZE:,} characters")
    for text in (*numbers, f"{BOUNDS.seconds} seconds", f"{MAX_HEAP >> 20} MB"):
        assert text in ASSISTANTS


def test_the_line_for_https_gives_the_only_server_of_nginx_its_name():
    (command,) = re.findall(r"sed -i '(s/server_name.*?)'", RUN)
    site = subprocess.run(
        ["sed", command, ROOT / "deploy" / "nginx.conf"], capture_output=True, text=True
    ).stdout
    assert re.findall(r"server_name (.*);", site) == ["f1.example.org"]


def test_the_code_names_each_difference_of_the_interface_where_it_makes_it():
    numbers = [row[0] for row in table("No.", INTERFACE)[1:]]
    assert numbers == [f"D{number}" for number in range(1, len(numbers) + 1)]
    cited = {
        number
        for path in PACKAGE.rglob("*.py")
        for number in re.findall(r"\bD[1-9][0-9]?\b", path.read_text())
    }
    assert cited == {*numbers}
