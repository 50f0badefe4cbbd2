"""The application over the sample and a full dump, compared with a second implementation of the interface.

The addresses are random, or visit every cell of the table of endpoints and filters.
"""

import json
import random
import shutil

import pytest
from support import SAMPLE
from support.answers import client
from support.loads import built
from support.oracle import ACCEPTED, BESIDE_STANDINGS, FORMS, Oracle

# ● accepted, v the endpoint's own value, S only beside few others, - refused. All accept season and round.
MATRIX = """
endpoint             circuits constructors drivers grid fastest results status laps pitstops qualifying sprint driverstandings constructorstandings
seasons              ●        ●            ●       ●    ●       ●       ●      -    -        -          -      S               S
circuits             v        ●            ●       ●    ●       ●       ●      -    -        -          -      -               -
races                ●        ●            ●       ●    ●       ●       ●      -    -        -          -      -               -
constructors         ●        v            ●       ●    ●       ●       ●      -    -        -          -      -               S
drivers              ●        ●            v       ●    ●       ●       ●      -    -        S          -      S               -
results              ●        ●            ●       ●    ●       v       ●      -    -        -          -      -               -
sprint               ●        ●            ●       ●    -       -       ●      -    -        -          v      -               -
qualifying           ●        ●            ●       ●    ●       ●       ●      -    -        v          -      -               -
pitstops             ●        ●            ●       ●    ●       ●       ●      ●    v        -          -      -               -
laps                 ●        ●            ●       ●    ●       ●       ●      v    -        -          -      -               -
driverstandings      -        -            ●       -    -       -       -      -    -        -          -      v               -
constructorstandings -        ●            -       -    -       -       -      -    -        -          -      -               v
status               ●        ●            ●       ●    ●       ●       v      -    -        -          -      -               -
"""  # noqa: E501
WORDS, *LINES = [line.split() for line in MATRIX.strip().splitlines()]
CELLS = {line[0]: dict(zip(WORDS[1:], line[1:])) for line in LINES}
ENDPOINTS = list(CELLS)


# Addresses that are easy to read in two ways.
ODD_ADDRESSES = """
/ .json /.json /2023//results /2023/.json //results /results// /results.json/ /results.json.json
/1000 /9999 /9999/next /9999/last /2023/999999999999999999 /2023/9999999999999999999 /2023/12/12/results
/races/5/results /seasons/2023/drivers /races/x.y /races/results /seasons/seasons /drivers/results /drivers/races
/drivers/last/results /current/current /current/2023/results /2023/last/last /last /next /results/next
/results/0 /results/00000 /results/000000000000000001 /results/0000000000000000001 /grid/00/results
/fastest/0/drivers /fastest/00/results /fastest/0/driverstandings/1/drivers /status/1/status /2023/status/1
/results/D /results/n/drivers /results/x /sprint/R /sprint/r/results /circuits/monza/circuits/spa/circuits
/driverstandings/1/constructorstandings/1/seasons /drivers/moss/constructorstandings/1/seasons
/constructors/ferrari/driverstandings/1/seasons /1957/constructorstandings/1/drivers/moss/seasons
/2023/next/driverstandings/1/drivers /2023/22/driverstandings/1/drivers /2023/last/driverstandings
"""


def unlimited(path, **settings):
    return client(path, burst_limit="off", sustained_limit="off", **settings)


@pytest.fixture(scope="module")
def app(sample_database):
    return unlimited(sample_database)


@pytest.fixture(scope="module")
def oracle():
    return Oracle(SAMPLE)


@pytest.fixture(scope="module")
def dump_app(dump_database):
    return unlimited(dump_database)


@pytest.fixture(scope="module")
def dump_oracle(dump):
    return Oracle(dump)


def agreed(app, oracle, path, limit=100, offset=0):
    """The status and MRData of an address, if both give the same answer, byte for byte."""
    query = f"?limit={limit}&offset={offset}"
    answer = app.get(f"/ergast/f1{path}{query}", headers={"Host": "localhost"}, expect_errors=True)
    status, expected = oracle.answer(path, limit, offset)
    assert answer.status_int == status, f"{path}{query}: {answer.text}"
    if status == 200:
        text = json.dumps({"MRData": expected}, ensure_ascii=False, separators=(",", ":"))
        assert answer.text == text, f"{path}{query}"
    return status, expected


class Addresses:
    """Random addresses: most filters speak of one row of the dump, so that many answers are not empty."""

    def __init__(self, oracle):
        self.rows = oracle.rows
        self.lists = oracle.lists
        self.entries = oracle.entries

    def facts(self, endpoint):
        """What filters can say about one row of the endpoint's table, and about the same driver in the race."""
        row = random.choice(self.rows.get(endpoint) or self.rows["results"])
        entries = self.entries[row["raceId"], row.get("driverId")] or random.choices(self.rows["results"])
        facts = {**entries[0]["facts"], **row["facts"], "races": "1", "seasons": "1950", "pits": "1"}
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
        return random.choice(
            ["0", "1", "007", "2", "11", "9" * 18, "9" * 19, "nobody", "r", "W", "x", "1.5", "-1", "a-b_c"]
        )

    def season_and_round(self, facts, required):
        year = random.choices([facts["season"], "current", "1949", "2026", "0999", "20233"], [60, 9, 1, 1, 0.2, 0.2])[0]
        round = random.choices([facts["round"], "last", "next", "99", "0", "01"], [60, 9, 9, 2, 0.2, 0.2])[0]
        return random.choices([[], [year], [year, round], [round]], [2, 2, 30, 0.1] if required else [8, 4, 4, 0.1])[0]

    def address(self):
        endpoint = random.choice(ENDPOINTS)
        facts = self.facts(endpoint)
        segments = self.season_and_round(facts, endpoint in ("laps", "pitstops"))
        beside_standings = BESIDE_STANDINGS.get(endpoint, ACCEPTED[endpoint])
        [words] = random.choices([ACCEPTED[endpoint], beside_standings, [*FORMS, "pits"]], [5, 2, 1])
        count = random.choice([0, 0, 1, 1, 1, 2, 2, 3, 4])
        for word in random.choices(sorted(words), k=count):
            zero = word in ("fastest", "grid") and random.random() < 0.15
            segments += [word, "0" if zero else self.value(word, facts)]
        if segments and random.random() < 0.02:
            segments.pop()
        if segments or random.random() < 0.9:
            segments.append(endpoint)
        if random.random() < 0.25:
            segments.append(self.value(endpoint, facts))
        path = "".join(f"/{segment}" for segment in segments)
        path = path.upper() if random.random() < 0.05 else path
        return path + random.choice(["", "/", ".json"])

    def page(self):
        """A limit and an offset."""
        return random.choices(
            [(100, 0), (random.randint(1, 40), random.randint(0, 60)), (0, 0), (5000, 3), (7, 10**6)], [10, 10, 1, 1, 1]
        )[0]


def compare_random_addresses(app, oracle, count):
    addresses = Addresses(oracle)
    filled = 0
    for _ in range(count):
        _, answer = agreed(app, oracle, addresses.address(), *addresses.page())
        filled += answer is not None and answer["total"] != "0"
    assert filled > count / 3, "most addresses should have records"


def test_random_addresses_over_the_sample_have_the_answers_of_the_second_implementation(app, oracle):
    compare_random_addresses(app, oracle, 500)


def test_random_addresses_over_a_full_dump_have_the_answers_of_the_second_implementation(dump_app, dump_oracle):
    compare_random_addresses(dump_app, dump_oracle, 3500)


def compare_every_record(app, oracle):
    for endpoint in set(ENDPOINTS) - {"laps", "pitstops"}:
        total = int(agreed(app, oracle, f"/{endpoint}", 0)[1]["total"])
        for offset in range(0, total, 2000):
            agreed(app, oracle, f"/{endpoint}", 2000, offset)
    for race in oracle.calendar:
        for endpoint in ("laps", "pitstops", "driverstandings", "constructorstandings"):
            agreed(app, oracle, f"/{race['year']}/{race['round']}/{endpoint}", 2000)
    for constructor in oracle.constructors.values():
        agreed(app, oracle, f"/constructors/{constructor['id']}")
        agreed(app, oracle, f"/constructors/{constructor['id']}/qualifying", 2000)


def test_every_record_of_the_sample_is_served_as_the_second_implementation_has_it(app, oracle):
    compare_every_record(app, oracle)


def test_every_record_of_a_full_dump_is_served_as_the_second_implementation_has_it(dump_app, dump_oracle):
    compare_every_record(dump_app, dump_oracle)


def part_of_the_sample(folder):
    """A random part of the sample in `folder`: tables and races are absent, and rows are in another order."""
    shutil.copytree(SAMPLE, folder)
    for table in ("qualifying", "sprint_results", "pit_stops", "lap_times", "driver_standings", "seasons"):
        if random.random() < 0.2:
            (folder / f"{table}.csv").unlink()
    results = (folder / "results.csv").read_text(encoding="utf-8").splitlines()[1:]
    races = {row.split(",")[1] for row in results}
    absent = set(random.sample(sorted(races), random.randint(0, len(races) - 1)))
    for file in folder.iterdir():
        header, *rows = file.read_text(encoding="utf-8").splitlines()
        if file.stem == "results":
            rows = [row for row in rows if row.split(",")[1] not in absent]
        random.shuffle(rows)
        file.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return folder


@pytest.mark.parametrize("finish_times", ["total", "gap"])
def test_random_addresses_over_a_random_part_of_the_sample_have_the_same_answers(finish_times, tmp_path):
    folder = part_of_the_sample(tmp_path / "part")
    app = unlimited(built(folder, tmp_path / "racedata.db"), finish_times=finish_times)
    oracle = Oracle(folder, finish_times=finish_times)
    addresses = Addresses(oracle)
    for _ in range(200):
        agreed(app, oracle, addresses.address(), *addresses.page())
    for path in ("/races", "/results", "/sprint", "/driverstandings", "/constructorstandings"):
        agreed(app, oracle, path, 1000)


def test_odd_addresses_have_the_answers_of_the_second_implementation(app, oracle):
    statuses = {agreed(app, oracle, path)[0] for path in ODD_ADDRESSES.split()}
    assert statuses == {200, 400, 404}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_each_cell_of_the_table_is_accepted_or_refused_alone_and_behind_season_and_round(endpoint, app, oracle):
    [driver] = [row for row in oracle.rows["sprint"] if row["facts"]["race"] == race_of(oracle, "2023", "18")][:1]
    [result] = oracle.entries[driver["raceId"], driver["driverId"]]
    [qualified] = [row for row in oracle.rows["qualifying"] if is_of(row, driver)]
    [stop, *_] = [row for row in oracle.rows["pitstops"] if is_of(row, driver)]
    values = {"driverstandings": "1", "constructorstandings": "1", "sprint": "1"}
    values |= stop["facts"] | result["facts"] | {"qualifying": qualified["position"]}
    if endpoint == "sprint":
        values |= driver["facts"]
    for start in ("", "/2023", "/2023/18"):
        required = endpoint in ("laps", "pitstops") and start != "/2023/18"
        check_cell(app, oracle, f"{start}/{endpoint}", 400 if required else 200)
        for word, mark in CELLS[endpoint].items():
            status = 400 if mark == "-" or required else 200
            detail = check_cell(app, oracle, f"{start}/{word}/{values[word]}/{endpoint}", status)
            assert mark != "-" or (f"{word}" in detail and f"{endpoint}" in detail), detail
            if mark == "v":
                check_cell(app, oracle, f"{start}/{endpoint}/{values[word]}", status)


def check_cell(app, oracle, path, status):
    """The `detail` of an address that has this status; if it is accepted it has records, and both agree on them."""
    agreed_status, answer = agreed(app, oracle, path)
    assert agreed_status == status, path
    if status == 200:
        assert answer["total"] != "0", path
        return ""
    return app.get(f"/ergast/f1{path}", status=status).json["detail"]


def race_of(oracle, season, round):
    return next(race["raceId"] for race in oracle.calendar if (race["year"], race["round"]) == (season, round))


def is_of(row, other):
    return (row["raceId"], row["driverId"]) == (other["raceId"], other["driverId"])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/2023/races/5", 400),
        ("/seasons/2023", 400),
        ("/grid/1", 404),
        ("/2023/fastest/1", 404),
        ("/last/results", 404),
        ("/2023/0/results", 404),
        ("/1997/last", 404),
        ("/1997/last/driverstandings", 404),
        ("/1997/last/laps/1/results", 400),
        ("/1997/last/teams", 404),
        ("/driverstandings/1/constructors/ferrari/drivers", 400),
        ("/driverstandings/1/circuits/monza/seasons", 400),
        ("/driverstandings/1/qualifying/1/drivers", 400),
        ("/status/x/results", 404),
        ("/status/999999999999999999/results", 200),
        ("/status/1000000000000000000/results", 404),
    ],
)
def test_refusals_have_the_status_of_the_first_rule_that_applies(path, status, app, oracle):
    assert agreed(app, oracle, path)[0] == status


def test_the_champions_are_those_who_lead_the_list_of_each_finished_season(app, oracle):
    lists = agreed(app, oracle, "/driverstandings/1")[1]["StandingsTable"]["StandingsLists"]
    champions = {each["season"]: each["DriverStandings"][0]["Driver"]["driverId"] for each in lists}
    verstappen = "max_verstappen"
    assert champions == {
        "1957": "fangio",
        "1997": "villeneuve",
        "2005": "alonso",
        "2021": verstappen,
        "2023": verstappen,
    }
    drivers = agreed(app, oracle, "/driverstandings/1/drivers")[1]["DriverTable"]["Drivers"]
    assert [driver["driverId"] for driver in drivers] == ["alonso", "fangio", verstappen, "villeneuve"]


def test_the_titles_of_a_driver_are_seasons_and_the_career_has_a_list_per_season(app, oracle):
    titles = agreed(app, oracle, "/drivers/max_verstappen/driverstandings/1/seasons")[1]["SeasonTable"]
    assert [season["season"] for season in titles["Seasons"]] == ["2021", "2023"]
    assert {"driverId": "max_verstappen", "driverStandings": "1"}.items() <= titles.items()
    career = agreed(app, oracle, "/drivers/alonso/driverstandings")[1]["StandingsTable"]
    places = {each["season"]: each["DriverStandings"][0]["position"] for each in career["StandingsLists"]}
    assert places == {"2005": "1", "2021": "10", "2023": "4"}
    assert "round" not in career


def test_a_driver_beside_a_place_of_constructors_only_needs_a_row_in_the_list_of_the_season(app, oracle):
    table = agreed(app, oracle, "/drivers/alonso/constructorstandings/1/constructors/red_bull/seasons")[1][
        "SeasonTable"
    ]
    assert [season["season"] for season in table["Seasons"]] == ["2023"]


def test_the_standings_of_a_season_echo_the_round_of_their_list_even_if_a_filter_leaves_no_row(app, oracle):
    table = agreed(app, oracle, "/2023/drivers/nobody/driverstandings")[1]["StandingsTable"]
    assert list(table.items()) == [("season", "2023"), ("driverId", "nobody"), ("round", "22"), ("StandingsLists", [])]


def test_an_id_alone_is_looked_up_in_the_whole_table_and_beside_a_season_among_those_with_a_result(app, oracle):
    assert agreed(app, oracle, "/drivers/frentzen")[1]["DriverTable"]["Drivers"][0]["familyName"] == "Frentzen"
    assert agreed(app, oracle, "/1997/drivers/frentzen")[1]["total"] == "0"
    assert agreed(app, oracle, "/drivers/frentzen/seasons")[1]["total"] == "0"


def test_standings_of_a_season_without_any_have_no_round(app, oracle):
    assert agreed(app, oracle, "/1957/constructorstandings")[1]["StandingsTable"] == {
        "season": "1957",
        "StandingsLists": [],
    }


def test_the_words_stand_for_numbers_and_the_table_echoes_these(app, oracle):
    def echoed(path):
        status, answer = agreed(app, oracle, path)
        table = answer["RaceTable"]
        return status, table["season"], table.get("round"), len(table["Races"])

    assert echoed("/current/results/1") == (200, "2023", None, 2)
    assert echoed("/current/last/results") == (200, "2023", "18", 1)
    assert echoed("/current/next") == (200, "2023", "19", 1)
    assert echoed("/current/next/results") == (200, "2023", "19", 0)
    assert echoed("/1997/next") == (200, "1997", "1", 1)


def test_next_past_the_end_is_round_1_of_the_following_season_in_the_data_or_not(app, oracle):
    assert agreed(app, oracle, "/2004/next")[1]["RaceTable"]["Races"][0]["raceName"] == "Australian Grand Prix"
    assert agreed(app, oracle, "/2023/22/results")[1]["total"] == "0"
    table = agreed(app, oracle, "/1997/next/drivers")[1]["DriverTable"]
    assert table == {"season": "1997", "round": "1", "Drivers": []}
    assert agreed(app, oracle, "/1998/next")[1]["RaceTable"] == {"season": "1999", "round": "1", "Races": []}


def test_next_behind_a_season_that_is_over_is_the_first_round_of_the_one_after(dump_app, dump_oracle):
    table = agreed(dump_app, dump_oracle, "/2023/next/circuits")[1]["CircuitTable"]
    assert (table["season"], table["round"], table["Circuits"][0]["circuitId"]) == ("2024", "1", "bahrain")


def test_a_page_that_ends_inside_a_race_has_its_head_again_on_the_next_page(app, oracle):
    pages = [agreed(app, oracle, "/2023/results", 15, offset)[1]["RaceTable"]["Races"] for offset in (0, 15, 30)]
    assert [[(race["round"], len(race["Results"])) for race in page] for page in pages] == [
        [("9", 15)],
        [("9", 5), ("18", 10)],
        [("18", 10)],
    ]


def test_titles_of_the_full_dump_are_those_of_the_history_books(dump_app, dump_oracle):
    seasons = agreed(dump_app, dump_oracle, "/drivers/hamilton/driverstandings/1/seasons")[1]["SeasonTable"]["Seasons"]
    assert [int(season["season"]) for season in seasons] == [2008, 2014, 2015, 2017, 2018, 2019, 2020]
    assert agreed(dump_app, dump_oracle, "/constructors/ferrari/constructorstandings/1/seasons")[1]["total"] == "16"
    assert agreed(dump_app, dump_oracle, "/driverstandings/1")[1]["total"] == "75"
