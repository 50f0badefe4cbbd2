"""racedata.service.selection, catalogue, serializers and all others: the application over the
sample and a full dump, compared with a second implementation of the interface.

The addresses are random, or visit every record, or every cell of the table of endpoints and
filters.
"""

import csv
import random
import re
import shutil
from urllib.parse import unquote

import orjson
import pytest
from support import EMPTY, EXPECTED, SAMPLE
from support.answers import client
from support.loads import built, csv_rows, edited, race_ids, without
from support.oracle import (
    ACCEPTED,
    BESIDE_STANDINGS,
    CELLS,
    FILES,
    FORMS,
    NOTES,
    OTHER_SPELLINGS,
    STANDINGS,
    WORDS,
    Oracle,
    read,
)

from racedata.service.addresses import FILTERS
from racedata.service.endpoints import ENDPOINTS as SERVED

ENDPOINTS = list(CELLS)
OF_A_SEASON = ("laps", "pitstops")
SPELLINGS = {endpoint: [endpoint] for endpoint in ENDPOINTS}
for spelling, name in OTHER_SPELLINGS.items():
    SPELLINGS[name.partition("/")[0]].append(spelling)

# The columns of a dump that no row lacks, besides ids and names.
NEEDED = {"date", "positionOrder", "round", "session", "status", "stop", "year"}

# Addresses that are easy to read in two ways, by status.
ODD_ADDRESSES = {
    200: """
/ //results .json /1000 /9999 /9999/next /2023/999999999999999999 /drivers/results /drivers/races
/drivers/last/results
/current/2023/results /results/0 /results/00000 /results/000000000000000001 /grid/00/results
/fastest/0/drivers
/fastest/00/results /status/1/status /2023/status/1 /results/D /results/n/drivers /sprint/R
/circuits/monza/circuits/spa/circuits /driverstandings/1/constructorstandings/1/seasons
/drivers/moss/constructorstandings/1/seasons /drivers/null/results /drivers/-1/results
/drivers/1e3/results
/drivers/0x31 /drivers/1--/seasons /circuits/or/races
/constructors/ferrari/driverstandings/1/seasons
/1957/constructorstandings/1/drivers/moss/seasons /2023/next/driverstandings/1/drivers
/2023/9/sprint/qualifying /sprint/qualifying/1 /2023/sprint/shootout/2 /sprintshootout
/drivers/fp1/sprint-qualifying
/fp1/practice/2 /2023/fp2 /drivers/sprint/qualifying /drivers/fp3 /drivers/alonso/fp1 /practice/4
/2023/22/driverstandings/1/drivers /2023/last/driverstandings /status/999999999999999999/results
/1957/last /1997/next /2030/next /9998/next/laps /1949/next /current/next
/2023/grid/1/drivers/alonso/results /1949 /1949/1/results /2023/99 /2023/99/laps /2021/12/sprint
/1957/5/qualifying /1957/5/laps /2023/1/results /2023/laps /2023/pitstops/1 /current/laps /1957/laps
/9999/pitstops /current/pitstops/2/laps/11/pitstops
""",
    400: """
/races/5/results /seasons/2023/drivers /races/results /seasons/seasons
/fastest/0/driverstandings/1/drivers
/sprint/r/results /2023/races/5 /seasons/2023 /1997/last/laps/1/results
/driverstandings/1/constructors/ferrari/drivers
/corrections/5/results /2023/corrections/alonso /circuits/monza/corrections /grid/1/corrections
/fp1/drivers /sprint/qualifying/1/drivers /sprintshootout/1/results /grid/1/practice /results/1/fp2
/driverstandings/1/circuits/monza/seasons /driverstandings/1/qualifying/1/drivers /laps /pitstops/1
/drivers/alonso/laps
""",
    404: """
/.json /2023//results /2023/.json /results// /results.json/ /results.json.json /9999/last
/2023/9999999999999999999 /2023/12/12/results /races/x.y /current/current /2023/last/last /last
/next /results/next
/fp1/1 /fp4 /fp0 /sprint/qualifying/x /sprintqualifying/r /sprint/practice /practice/x
/2023/sprint/fp1
/results/0000000000000000001 /results/x /grid/1 /2023/fastest/1 /last/results /2023/0/results
/1997/last
/1997/last/driverstandings /1997/last/teams /status/x/results /status/1000000000000000000/results
/drivers/rai%E2%84%AAkonen /drivers/rai%E2%84%AA%E2%84%AAonen/results
/23 /0957 /20233 /%2B202 /2023/0 /2023/01 /2023/-1 /2023/1.5 /next/results /18/2023/results
/grid/1/2023/races /results/2023/18/results /2023/grid/1 /2023/grid /fastest/1 /2023/fish
/2023/18/results.xml /2023/18/results.json/ /2023/18/results// /drivers/%C3%A9/results
/drivers//results /grid/x/results /grid/-1/results /grid/9999999999999999999/results
/grid/%D9%A3/results /%D9%A2%D9%A0%D9%A2%D9%A3 /2023/18/results/x /2023.ics/ /.csv /2023/.ics
/results.csv.json /races. /2023/18/results/rr /fp1/2 /practice/one /shootout
/drivers/a%20b/results /results.json%0A /2023/%E2%84%AAarts
/races/1/fish/2/results /pitstops/1/grid/x/results /races/1/grid
""",
}


class Pair:
    """The application over a database and the second implementation over the same dump."""

    def __init__(self, database, folder, finish_times="total", corrections=None):
        self.app = client(
            database, burst_limit="off", sustained_limit="off", finish_times=finish_times
        )
        self.oracle = Oracle(folder, finish_times=finish_times, corrections=corrections)

    def answer(self, path, limit=100, offset=0):
        """The status and MRData of an address, if both give the same answer, byte for byte."""
        address = f"{path}?limit={limit}&offset={offset}"
        answer = self.app.get(
            f"/ergast/f1{address}", headers={"Host": "localhost"}, expect_errors=True
        )
        status, expected = self.oracle.answer(unquote(path), limit, offset)
        assert answer.status_int == status, f"{address}: {answer.text}"
        if status == 200:
            assert answer.body == orjson.dumps({"MRData": expected}), address
        return status, expected

    def table(self, path, limit=100, offset=0):
        """The table in an answer, without the list of its records, and this list."""
        answer = self.answer(path, limit, offset)[1]
        table = dict(list(answer.values())[-1])
        return table, table.popitem()[1]

    def total(self, path):
        """The number of all records of an address, on whose pages both agree."""
        total = int(self.answer(path, 1000)[1]["total"])
        for offset in range(1000, total, 1000):
            self.answer(path, 1000, offset)
        return total


@pytest.fixture(scope="module")
def sample(sample_database):
    return Pair(sample_database, SAMPLE, corrections=EXPECTED / "corrections.csv")


@pytest.fixture(scope="module")
def full(dump_database, dump):
    return Pair(dump_database, dump)


class Addresses:
    """Random addresses: most filters speak of one row of the dump, so that many answers are not
    empty.
    """

    def __init__(self, oracle):
        self.rows, self.lists = oracle.rows, oracle.lists
        self.entries = {(row["raceId"], row["driverId"]): row for row in oracle.rows["results"]}

    def facts(self, endpoint):
        """What filters can say about one row of the endpoint's table, and about the same driver in
        the race.
        """
        others = random.choice([self.rows["results"], self.rows["entries"]])
        row = random.choice(self.rows.get(endpoint) or others or self.rows["results"])
        entry = self.entries.get((row["raceId"], row.get("driverId")))
        entry = entry or random.choice(self.rows["results"])
        facts = {**entry["facts"], **row["facts"], "races": "1", "seasons": "1950", "pits": "1"}
        for word in FORMS.keys() - facts.keys():
            facts[word] = random.choice("1112345") if word != "sprint" else random.choice("123rw")
        return facts

    def value(self, word, facts):
        kind = random.random()
        if kind < 0.75:
            return facts.get(word, "1")
        if kind < 0.8 and word in self.lists:
            return random.choice(self.lists[word][1])["id"]
        if kind < 0.9:
            return self.facts(random.choice(ENDPOINTS))[word]
        odd = "0 1 007 2 11 nobody r W x 1.5 -1 a-b_c"
        return random.choice([*odd.split(), "9" * 18, "9" * 19])

    def season_and_round(self, facts, required):
        year = random.choices(
            [facts["season"], "current", "1949", "2026", "0999", "20233"], [60, 9, 1, 1, 0.2, 0.2]
        )[0]
        round = random.choices(
            [facts["round"], "last", "next", "99", "0", "01"], [60, 9, 9, 2, 0.2, 0.2]
        )[0]
        return random.choices(
            [[], [year], [year, round], [round]], [2, 15, 17, 0.1] if required else [8, 4, 4, 0.1]
        )[0]

    def address(self):
        endpoint = random.choice(ENDPOINTS)
        facts = self.facts(endpoint)
        segments = self.season_and_round(facts, endpoint in OF_A_SEASON)
        beside_standings = BESIDE_STANDINGS[endpoint] or ACCEPTED[endpoint]
        [words] = random.choices(
            [ACCEPTED[endpoint], beside_standings, [*FORMS, "pits"]], [5, 2, 1]
        )
        count = random.choice([0, 0, 1, 1, 1, 2, 2, 3, 4])
        for word in random.choices(sorted(words), k=count):
            zero = word in ("fastest", "grid") and random.random() < 0.15
            segments += [word, "0" if zero else self.value(word, facts)]
        if segments and random.random() < 0.02:
            segments.pop()
        if segments or random.random() < 0.9:
            segments.append(
                random.choice(SPELLINGS[endpoint]) if random.random() < 0.2 else endpoint
            )
        if random.random() < 0.25:
            segments.append(self.value(endpoint, facts))
        path = "".join(f"/{segment}" for segment in segments)
        path = path.upper() if random.random() < 0.05 else path
        return path + random.choice(["", "/", ".json"])

    def page(self):
        """A limit and an offset."""
        some = (random.randint(1, 40), random.randint(0, 60))
        pages = [(100, 0), some, (0, 0), (5000, 3), (7, 10**3999)]
        return random.choices(pages, [10, 10, 1, 1, 1])[0]


def test_the_second_implementation_knows_every_endpoint_and_filter():
    assert sorted(ENDPOINTS) == sorted(endpoint.name for endpoint in SERVED)
    words = sorted(WORDS.split())
    assert sorted(FORMS.keys() - {"races", "seasons", *NOTES}) == words == sorted(FILTERS)


def compare_random_addresses(pair, count):
    addresses = Addresses(pair.oracle)
    filled = 0
    for _ in range(count):
        _, answer = pair.answer(addresses.address(), *addresses.page())
        filled += answer is not None and answer["total"] != "0"
    return filled


def test_random_addresses_over_the_sample_have_the_answers_of_the_second_implementation(sample):
    assert compare_random_addresses(sample, 500) > 160


@pytest.mark.long
def test_random_addresses_over_a_full_dump_have_the_answers_of_the_second_implementation(full):
    assert compare_random_addresses(full, 3500) > 1160


def compare_every_record(pair, folder):
    """Compares all pages of every table as a whole, by season and by round, and counts their
    records.
    """
    races = pair.oracle.calendar
    seasons = dict.fromkeys(race["year"] for race in races)
    for endpoint in ENDPOINTS:
        rows = len(read(folder, FILES.get(endpoint, [endpoint])[0]))
        if endpoint not in OF_A_SEASON:
            counted = endpoint not in {"status", *NOTES} | STANDINGS
            assert pair.total(f"/{endpoint}") == rows or not counted
        by_season = sum(pair.total(f"/{season}/{endpoint}") for season in seasons)
        assert by_season == rows or endpoint not in {"races"} | FILES.keys() - STANDINGS
        if endpoint in {"races"} | FILES.keys():
            assert (
                sum(pair.total(f"/{race['year']}/{race['round']}/{endpoint}") for race in races)
                == rows
            )
    for constructor in pair.oracle.constructors.values():
        pair.answer(f"/constructors/{constructor['id']}")
        pair.answer(f"/constructors/{constructor['id']}/qualifying", 2000)


def test_every_record_of_the_sample_is_served_as_the_second_implementation_has_it(sample):
    compare_every_record(sample, SAMPLE)


@pytest.mark.long
def test_every_record_of_a_full_dump_is_served_as_the_second_implementation_has_it(full, dump):
    compare_every_record(full, dump)


def part_of_the_sample(folder):
    """A random part of the sample in `folder`: tables and races are absent, rows in another order.

    Some drivers have only entered a race.
    """
    shutil.copytree(SAMPLE, folder)
    optional = "qualifying sprint_qualifying practice sprint_results pit_stops lap_times"
    for table in f"{optional} driver_standings seasons".split():
        if random.random() < 0.2:
            (folder / f"{table}.csv").unlink()
    races = sorted({row["raceId"] for row in csv_rows(folder, "results")})
    absent = set(random.sample(races, random.randint(0, len(races) - 1)))
    for file in folder.iterdir():
        header, *rows = file.read_text(encoding="utf-8").splitlines()
        if file.stem == "results":
            rows = [row for row in rows if row.split(",")[1] not in absent]
        random.shuffle(rows)
        file.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    rows = csv_rows(folder, "results")
    ids = {
        name: sorted({row[name] for row in rows})
        for name in ("raceId", "driverId", "constructorId")
    }
    of_results = {",".join(row[name] for name in ids) for row in rows}
    entries = {",".join(map(random.choice, ids.values())) for _ in range(30)} - of_results
    (folder / "entries.csv").write_text(
        "\n".join([",".join(ids), *sorted(entries), ""]), encoding="utf-8"
    )
    return folder


@pytest.mark.parametrize("finish_times", ["total", "gap"])
def test_random_addresses_over_a_random_part_of_the_sample_have_the_same_answers(
    finish_times, tmp_path
):
    folder = part_of_the_sample(tmp_path / "part")
    pair = Pair(built(folder, tmp_path / "racedata.db", None), folder, finish_times)
    compare_random_addresses(pair, 200)
    for path in ("/races", "/results", "/sprint", "/driverstandings", "/constructorstandings"):
        pair.answer(path, 1000)


def test_every_record_has_what_is_known(tmp_path):
    """Of what may be unknown, about a third is, some numbers are 0, and some times are long."""
    chance = random.Random(1)

    def changed(name, value):
        if chance.random() < 0.5:
            return value
        if name == "milliseconds" and chance.random() < 0.2:
            return "3723004"  # more than an hour
        return "0" if value.isdigit() and name != "statusId" and chance.random() < 0.3 else ""

    def edit(row):
        needed = {*NEEDED, *re.findall(r"\b\w*(?:Id|Ref|name)\b", " ".join(row))} - {"statusId"}
        needed |= set() if "stop" in row else {"lap"}
        return row | {name: changed(name, row[name]) for name in sorted(row.keys() - needed)}

    tables = [path.stem for path in SAMPLE.glob("*.csv") if path.stem != "status"]
    folder = edited(SAMPLE, tmp_path / "dump", **dict.fromkeys(tables, edit))
    database = built(folder, tmp_path / "racedata.db", None)
    for finish_times in ("total", "gap"):
        compare_every_record(Pair(database, folder, finish_times), folder)


# Season and round of the races of 2023 after round 18, the last with results; None: cancelled.
CALENDARS = {
    "winter": lambda round: (2024, round - 18),
    "a cancelled race": lambda round: None if round == 19 else (2023, round),
    "no later race": lambda round: None,
    "a race to come": lambda round: (2023, 19) if round == 19 else (2024, round - 19),
}
CURRENT = """
/current /current/races /current/circuits/interlagos/races /current/circuits /current/results
/current/next /current/last /2023/next /2023/next/drivers /2021/next /9999/next /2024 /2024/last
"""


@pytest.mark.parametrize("calendar", CALENDARS)
def test_current_and_next_have_the_same_answers_whatever_races_are_to_come(calendar, tmp_path):
    def move(row):
        if row["year"] != "2023" or int(row["round"]) <= 18:
            return row
        if not (moved := CALENDARS[calendar](int(row["round"]))):
            return None
        year, round = map(str, moved)
        dates = {
            name: value.replace("2023-", f"{year}-")
            for name, value in row.items()
            if name.endswith("date")
        }
        return row | dates | {"year": year, "round": round}

    cancelled = [round for round in range(19, 23) if not CALENDARS[calendar](round)]
    source = without(SAMPLE, tmp_path / "source", 2023, *cancelled, races=move)
    with (source / "seasons.csv").open("a", encoding="utf-8") as file:
        file.write("2024,https://example.org/2024\n")
    pair = Pair(built(source, tmp_path / "racedata.db"), source)
    for path in CURRENT.split():
        pair.answer(path)
    addresses = Addresses(pair.oracle)
    for _ in range(75):
        address = re.sub("^(/[12][0-9]{3}(?=[/.]|$))?", "/current", addresses.address())
        pair.answer(address, *addresses.page())


def test_timings_of_a_season_are_in_the_order_of_its_rounds_whatever_the_ids_of_races_are(tmp_path):
    ids = race_ids(SAMPLE, 2023)

    def move(row):
        is_moved = row["raceId"] == ids[18] and int(row["lap"]) % 2
        return row | {"raceId": ids[10]} if is_moved else row

    def renumber(row):
        return row | {"round": str(100 - int(row["round"]))} if row["year"] == "2023" else row

    folder = edited(SAMPLE, tmp_path / "dump", lap_times=move, pit_stops=move, races=renumber)
    pair = Pair(built(folder, tmp_path / "racedata.db", None), folder)
    filters = ("", "/circuits/americas", "/drivers/leclerc", "/grid/6", "/laps/11")
    for path in [f"/2023{each}/{endpoint}" for each in filters for endpoint in OF_A_SEASON]:
        total = pair.total(path)
        assert total > 0
        for _ in range(10):
            pair.answer(path, random.randint(0, 700), random.randint(0, total))


def test_filters_of_laps_pit_stops_and_qualifying_must_all_match_the_same_result(tmp_path):
    folder = shutil.copytree(SAMPLE, tmp_path / "dump")
    race = race_ids(folder, 2023)[18]
    driver = next(row["driverId"] for row in csv_rows(folder, "pit_stops") if row["raceId"] == race)
    row = next(
        row
        for row in csv_rows(folder, "results")
        if (row["raceId"], row["driverId"]) == (race, driver)
    )
    with (folder / "results.csv").open("a", encoding="utf-8") as file:
        csv.DictWriter(file, list(row)).writerow(
            row | {"resultId": "99999", "number": "99", "grid": "77", "statusId": "2"}
        )
    pair = Pair(built(folder, tmp_path / "racedata.db"), folder)
    for endpoint in ("laps", "pitstops", "qualifying"):
        assert pair.total(f"/2023/18/grid/77/status/2/{endpoint}") > 0
        assert pair.total(f"/2023/18/grid/{row['grid']}/status/{row['statusId']}/{endpoint}") > 0
        assert pair.total(f"/2023/18/grid/77/status/{row['statusId']}/{endpoint}") == 0


@pytest.mark.parametrize("status", ODD_ADDRESSES)
def test_odd_addresses_have_the_status_of_the_first_rule_that_applies(status, sample):
    assert {
        path: sample.answer(path)[0]
        for path in ODD_ADDRESSES[status].split()
        if sample.answer(path)[0] != status
    } == {}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_each_cell_of_the_table_is_accepted_or_refused_alone_and_behind_season_and_round(
    endpoint, sample
):
    # Facts about one driver in the race at Austin, so that every filter that is accepted finds a
    # record: the endpoint's own, else those of the result.
    driver = {"season": "2023", "round": "18"}
    driver |= {"drivers": "max_verstappen", "constructors": "red_bull"}
    values = {}
    for table in (*FILES, "results", *FILES.keys() & {endpoint}):
        rows = (row["facts"] for row in sample.oracle.rows[table])
        values |= next(facts for facts in rows if driver.items() <= (driver | facts).items())

    for start in ("", "/2023", "/2023/18"):
        lacks_season = endpoint in OF_A_SEASON and not start
        expected = {f"{start}/{endpoint}": 400 if lacks_season else 200}
        for word, mark in CELLS[endpoint].items():
            status = 400 if mark == "-" or lacks_season else 200
            expected[f"{start}/{word}/{values[word]}/{endpoint}"] = status
            if mark in "vV":
                expected[f"{start}/{endpoint}/{values[word]}"] = status
        for path, status in expected.items():
            agreed, answer = sample.answer(path)
            assert agreed == status, path
            assert status != 200 or (answer["total"] == "0") == (endpoint in EMPTY), path


def test_titles_in_the_full_dump_agree_with_the_history_books(full):
    seasons = full.table("/drivers/hamilton/driverstandings/1/seasons")[1]
    titles = [2008, 2014, 2015, 2017, 2018, 2019, 2020]
    assert [int(each["season"]) for each in seasons] == titles
    assert full.total("/constructors/ferrari/constructorstandings/1/seasons") == 16
    assert full.total("/driverstandings/1") == 75
