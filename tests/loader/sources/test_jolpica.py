"""racedata.loader.sources.statuses: a dump in Jolpica's own layout, by jolpica.sql, is loaded, and
answers what Jolpica answers.
"""

import csv
import json
import re

import pytest
from support import EXPECTED
from support.answers import by_place, client, differences
from support.dumps import ChangedDump, cases_in
from support.loads import built, select

from racedata.loader.errors import LoadError

# A dump in which each kind of row occurs once or twice. Names are facts; ids, times and places are
# mostly made up.
TABLES = (EXPECTED / "jolpica-dump.txt").read_text(encoding="utf-8").split("[")[1:]


@pytest.fixture
def source(tmp_path):
    """The dump above, to change."""
    files = {table.partition("]")[0]: list(csv.reader(table.splitlines()[1:])) for table in TABLES}
    return ChangedDump(tmp_path, files, "formula_one_")


@pytest.mark.parametrize("case", cases_in(EXPECTED / "stored-jolpica.txt"))
def test_the_loader_stores_of_a_dump(source, case):
    case.check(source)


@pytest.mark.parametrize(
    ("is_classified", "status", "detail", "expected"),
    [
        ("t", "0", "", ("3", 1, "Finished")),
        ("f", "20", "", ("D", 2, "Disqualified")),
        ("f", "10", "", ("R", 3, "Accident")),
        ("f", "40", "", ("F", 81, "Did not qualify")),
        ("f", "41", "", ("F", 97, "Did not prequalify")),
        ("f", "30", "", ("W", 142, "Did not start")),
        ("f", "999", "", ("R", None, None)),
        ("t", "1", "", ("3", 143, "Lapped")),
        ("f", "11", "Oil pressure", ("R", 51, "Oil pressure")),
        ("", "", "", (None, None, None)),
    ],
)
def test_the_text_of_a_position_and_the_status_have_the_words_that_clients_know(
    source, is_classified, status, detail, expected
):
    source.change(
        "sessionentry",
        source.line("sessionentry", id="211"),
        is_classified=is_classified,
        status=status,
        detail=detail,
    )
    sql = """SELECT positionText, statusId, status FROM results LEFT JOIN status USING (statusId)
             WHERE raceId = 50 AND positionOrder = 3"""
    assert source.stored(sql) == [expected]


# A file, the id of a row, a column, the value that it gets, and what is said.
WRONG_VALUES = (EXPECTED / "wrong-values-jolpica.txt").read_text().splitlines()


@pytest.mark.parametrize("line", WRONG_VALUES)
def test_a_value_that_would_make_an_answer_wrong_is_refused_with_its_file_line_and_column(
    source, line
):
    name, id, column, value, said = re.fullmatch(
        r"(\w+) (\d+) (\w+) = (.*?): (line .*)", line
    ).groups()
    source.change(name, source.line(name, id=id), **{column: value})
    with pytest.raises(LoadError, match=re.escape(f"formula_one_{name}.csv, {said}")):
        source.load()


def test_a_driver_who_is_twice_in_a_qualifying_is_refused(source):
    source.change("roundentry", source.line("roundentry", id="102"), team_driver_id="80")
    said = r"source: two rows have the same qualifying\.raceId, qualifying\.driverId; expected diff"
    with pytest.raises(LoadError, match=said):
        source.load()


# What follows needs a dump of Jolpica's, and its own answers over it.


@pytest.fixture(scope="session")
def jolpica_database(jolpica, tmp_path_factory):
    return built(jolpica, tmp_path_factory.mktemp("jolpica") / "racedata.db")


# Every difference between Jolpica's answers and ours: the address, and the differences.
TEXT = (EXPECTED / "jolpica-answers.txt").read_text(encoding="utf-8")
DIFFERENCES = {
    address: [tuple(json.loads(line)) for line in lines.splitlines()]
    for address, lines in re.findall(r"^(\S+\.json\S*)\n((?:\[.*\n)+)", TEXT, re.MULTILINE)
}
# Lists depend on entries to a race, which the dump has for nine seasons only. Jolpica's depend on
# entries to a season, which the dump has for all: `{path: (list, id, what we have of it)}`.
BY_RACE = {
    "drivers/alonso/constructors.json": (
        "ConstructorTable",
        "Constructors",
        "constructorId",
        ["aston_martin", "mclaren", "renault"],
    ),
    "drivers/alonso/constructors/renault/seasons.json": (
        "SeasonTable",
        "Seasons",
        "season",
        ["2008", "2009"],
    ),
}
# Answered here: standings of all finished seasons, and pit stops of a season.
REFUSED_THERE = ("driverstandings.json", "2009/pitstops.json")


def test_jolpicas_own_answers_are_repeated_except_for_the_listed_differences(
    jolpica, jolpica_database
):
    app = client(jolpica_database, finish_times="gap")

    def ours(path):
        address = path if "limit=" in path else f"{path}?limit=30"
        headers, https = {"Host": "api.example.org"}, {"wsgi.url_scheme": "https"}
        return app.get(
            f"/ergast/f1/{address}", headers=headers, extra_environ=https, expect_errors=True
        )

    answers = [
        json.loads(file.read_text(encoding="utf-8"))
        for file in sorted((jolpica / "answers").iterdir())
    ]
    expected = {answer["path"]: answer for answer in answers}
    assert {*DIFFERENCES, *BY_RACE, *REFUSED_THERE} <= expected.keys()

    for path in REFUSED_THERE:
        assert (expected.pop(path)["status"], ours(path).status_int) == (400, 200)
    for path, (table, key, id, ids) in BY_RACE.items():
        theirs = expected.pop(path)["body"]["MRData"][table][key]
        assert ours(path).json["MRData"][table][key] == [
            thing for thing in theirs if thing[id] in ids
        ]
    for path, answer in expected.items():
        response = ours(path)
        assert response.status_int == answer["status"], path
        # Errors are problem+json; only their status is compared.
        found = differences(answer["body"], response.json) if answer["status"] == 200 else []
        assert by_place(found) == by_place(DIFFERENCES.get(path, [])), path


def test_statuses_of_jolpicas_dump_all_have_an_id_that_clients_know(jolpica_database):
    assert select(jolpica_database, "SELECT count(*), max(statusId) FROM status") == [(141, 143)]
