"""The application over a full dump gives recorded answers of Ergast and Jolpica, but for the
differences named.
"""

import json

import pytest
from support.answers import by_place, client, differences

RACE = "/MRData/RaceTable/Races/0"


def ergast(address):
    """Ergast named a schema in its envelope and had an address of its own."""
    return [
        ("/MRData/xmlns", "http://ergast.com/mrd/1.5", ""),
        (
            "/MRData/url",
            f"http://ergast.com/api/f1/{address}",
            f"http://testserver/ergast/f1/{address}",
        ),
    ]


def article(place, name):
    """The later service links to the circuits' articles by https, the dump by http."""
    return [
        (
            f"{place}/Circuit/url",
            f"https://en.wikipedia.org/wiki/{name}",
            f"http://en.wikipedia.org/wiki/{name}",
        )
    ]


def lapped(position, times, gaps):
    """The later service calls lapped cars so, from a position on, and gives them times of their
    own.
    """
    for number, (millis, gap) in enumerate(zip(times.split(), gaps.split()), position - 1):
        yield f"{RACE}/Results/{number}/status", "Lapped", "+1 Lap"
        yield f"{RACE}/Results/{number}/Time", {"millis": millis, "time": gap}, None


GAPS = "+24.633 +31.384 +42.140 +42.777 +46.569 +49.703 +56.653 +59.873"

# Every difference there is between what was recorded and what the dump says, with the address
# asked.
RECORDED = {
    "2023-7-races": ("2023/7/races.json?limit=30", ergast("2023/7/races.json")),
    "2023-18-laps-limit-30-offset-45": (
        "2023/18/laps.json?limit=30&offset=45",
        ergast("2023/18/laps.json"),
    ),
    "2023-99-results": ("2023/99/results.json?limit=30", ergast("2023/99/results.json")),
    "2023-13-qualifying": ("2023/13/qualifying.json?limit=30", article(RACE, "Circuit_Zandvoort")),
    "2023-9-results": (
        "2023/9/results.json?limit=30",
        [
            *article(RACE, "Red_Bull_Ring"),
            # zeros at the end of a speed
            (f"{RACE}/Results/0/FastestLap/AverageSpeed/speed", "231.970", "231.97"),
            (f"{RACE}/Results/18/FastestLap/AverageSpeed/speed", "223.280", "223.28"),
            *lapped(12, "5158240 5164991 5175747 5176384 5180176 5183310 5190260 5193480", GAPS),
            # who started from the pit lane
            (f"{RACE}/Results/16/grid", "20", "0"),
            (f"{RACE}/Results/17/grid", "19", "0"),
            # a status without its reason
            (f"{RACE}/Results/19/status", "Retired", "Power loss"),
        ],
    ),
}
SPRINTS = {
    "4": [
        *article("", "Baku_City_Circuit"),
        ("/SprintResults/19/positionText", "R", "W"),
    ],
    "9": [
        *article("", "Red_Bull_Ring"),
        # ranks that the dump has not
        *(
            (f"/SprintResults/{place}/FastestLap/rank", rank, None)
            for place, rank in enumerate(["12", "15", "14", "17", "13", "1", "16", "3", "18", "6"])
        ),
    ],
}


@pytest.fixture(scope="module")
def gaps(dump_database):
    """The application as the ancestors had it: gaps for times, and their host."""
    return client(dump_database, finish_times="gap")


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_answer_is_repeated_except_for_the_listed_differences(gaps, recorded, name):
    address, named = RECORDED[name]
    answer = gaps.get(f"/ergast/f1/{address}", headers={"Host": "testserver"}).json
    expected = json.loads((recorded / f"{name}.json").read_text(encoding="utf-8"))
    assert by_place(differences(expected, answer)) == by_place(named)


def test_recorded_sprints_are_repeated_except_for_the_listed_differences(gaps, recorded):
    recording = json.loads(
        (recorded / "2023-sprint-first-30-rows.json").read_text(encoding="utf-8")
    )
    races = recording["MRData"]["RaceTable"]["Races"]
    assert [race["round"] for race in races] == list(SPRINTS)
    for expected in races:
        limit = len(expected["SprintResults"])
        address = f"/ergast/f1/2023/{expected['round']}/sprint.json?limit={limit}"
        (race,) = gaps.get(address).json["MRData"]["RaceTable"]["Races"]
        assert by_place(differences(expected, race)) == by_place(SPRINTS[race["round"]])
