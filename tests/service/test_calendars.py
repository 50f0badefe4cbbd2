"""racedata.service.calendars: what readers of calendars find, and what a subscriber sees when the
data changes.
"""

import re
import warnings
from datetime import UTC, date, datetime

import pytest
from icalendar import Calendar
from support import EXPECTED
from support.answers import client, client_after
from support.loads import changed

from racedata import __version__
from racedata.model import SESSION_GROUPS
from racedata.service.schemas import schema_of
from racedata.service.serializers import SESSION_BY_KEY

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its own dependencies
    from ical.calendar_stream import IcsCalendarStream


def events(app, address):
    """The events of a calendar by UID. The two readers must agree on what they read."""
    answer = app.get(f"/ergast/f1{address}")
    assert answer.headers["Content-Type"] == "text/calendar; charset=utf-8"
    assert all(len(line) <= 75 for line in answer.body.split(b"\r\n"))
    assert answer.body.count(b"\r\n") == answer.body.count(b"\n")
    found = {str(event["UID"]): event for event in Calendar.from_ical(answer.body).events}
    in_home_assistant = {
        event.uid: event for event in IcsCalendarStream.calendar_from_ics(answer.text).events
    }
    assert found.keys() == in_home_assistant.keys()
    assert answer.body.count(b"BEGIN:VEVENT") == len(found)
    for uid, other in in_home_assistant.items():
        event = found[uid]
        assert (event.start, event.end, event["SUMMARY"]) == (
            other.dtstart,
            other.dtend,
            other.summary,
        )
        assert (event["LOCATION"], event.categories) == (other.location, other.categories)
    return found


def test_the_calendar_of_a_weekend_is_the_expected_one_in_every_line(sample):
    """But for what depends on the build, and for long lines, which are folded."""
    built = re.sub("[-:]", "", sample.get("/healthz").json["builtAt"])
    text = sample.get("/ergast/f1/2023/18.ics?alarm=30").text.replace("\r\n ", "")
    found = text.replace(built, "BUILT").replace(__version__, "VERSION")
    assert found.splitlines() == (EXPECTED / "races-one.ics").read_text("utf-8").splitlines()
    assert len(events(sample, "/2023/18.ics?alarm=30")) == 5


def test_the_ids_of_events_have_the_name_of_the_race_in_plain_letters(sample):
    ids = events(sample, "/2023/20.ics").keys()
    assert ids and all("sao-paulo-grand-prix" in uid for uid in ids)


def test_a_calendar_names_each_of_its_sources(several_sources):
    calendar = Calendar.from_ical(client(several_sources).get("/ergast/f1/2023.ics").body)
    others = "f1db (CC BY 4.0), https://example.org/f1 (no licence stated). "
    assert others in calendar["DESCRIPTION"]


@pytest.mark.parametrize(
    ("minutes", "trigger", "description"),
    [(0, "P0D", "Now"), (1, "-PT1M", "In 1 minute"), (10080, "-P7D", "In 10,080 minutes")],
)
def test_each_session_with_a_time_has_the_alarm_that_was_asked_for(
    database, minutes, trigger, description
):
    without_time = "UPDATE sessions SET time = NULL WHERE RACE(2023/18) AND session = 'quali'"
    app = client_after(database, without_time)
    found = events(app, f"/2023/18.ics?alarm={minutes}&sessions=qualifying,sprint,race")
    qualifying, *others = [event.subcomponents for event in found.values()]
    assert (qualifying, len(others)) == ([], 2)
    for (alarm,) in others:
        assert (alarm["TRIGGER"].to_ical().decode(), alarm["DESCRIPTION"]) == (trigger, description)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("races.ics", "F1"),
        ("current.ics?sessions=race,sprint,practice,qualifying,sprintqualifying", "F1"),
        ("current/next.ics", "F1 next race"),
        ("2023.ics?sessions=race,qualifying", "F1 2023 (qualifying + race)"),
        ("2023/18.ics", "F1 2023 round 18"),
        ("2023/grid/1/races.ics", "F1 2023 grid 1"),
        (
            "current/last/drivers/Alonso/results/1/races.ics",
            "F1 last race Fernando Alonso results 1",
        ),
        (
            "circuits/monza/constructors/none/races.ics",
            "F1 Autodromo Nazionale di Monza constructors none",
        ),
    ],
)
def test_the_name_of_a_calendar_follows_from_its_address(sample, address, name):
    calendar = Calendar.from_ical(sample.get(f"/ergast/f1/{address}").body)
    assert calendar["NAME"] == calendar["X-WR-CALNAME"] == name
    assert "UID" not in calendar


def test_the_sessions_are_the_same_as_in_the_schema():
    sessions = {*schema_of("ScheduledRace")["properties"]} - {*schema_of("Race")["properties"]}
    assert {*SESSION_BY_KEY} == {*sessions, ""}
    assert {session.group for session in SESSION_BY_KEY.values()} == {*SESSION_GROUPS}


WITH_CALENDAR = "/races /2023 /1957 /current/next /circuits/monaco/races /2021/grid/1/races /2030"


@pytest.mark.parametrize("address", ["", *WITH_CALENDAR.split()])
def test_a_calendar_has_each_session_whose_date_the_json_has(sample, address):
    """Includes the base address, and a calendar without sessions."""
    starts = []
    for race in sample.get(f"/ergast/f1{address}.json").json["MRData"]["RaceTable"]["Races"]:
        for session in [race.get(name) for name in SESSION_BY_KEY] + [race]:
            if session and "date" in session:
                day, time = session["date"], session.get("time")
                starts.append(
                    datetime.fromisoformat(f"{day}T{time}") if time else date.fromisoformat(day)
                )
    found = [event.start for event in events(sample, f"{address}.ics").values()]
    assert found == starts


@pytest.mark.parametrize(
    ("sessions", "slugs"),
    [
        ("race", ["race"]),
        ("race,qualifying", ["qualifying", "race"]),
        ("Practice,SPRINTqualifying,practice", ["practice-1", "sprint-shootout"]),
        ("sprint,race", ["sprint", "race"]),
    ],
)
def test_sessions_can_be_chosen(sample, sessions, slugs):
    found = events(sample, f"/2023/18.ics?sessions={sessions}")
    assert [uid.split("grand-prix/")[1] for uid in found] == [f"{slug}@racedata" for slug in slugs]


@pytest.mark.parametrize(
    ("address", "seasons"),
    [
        ("/current.ics", {"2023", "2024"}),
        ("/CURRENT/circuits/interlagos/races.ics", {"2024"}),
        ("/current/drivers/alonso/races.ics", {"2023"}),
        ("/current/drivers/nobody/races.ics", set()),
        ("/current/last.ics", {"2023"}),
        ("/current/next.ics", {"2024"}),
        ("/2023.ics", {"2023"}),
    ],
)
def test_in_winter_the_calendar_of_current_has_both_seasons(database, address, seasons):
    app = client_after(
        database,
        "UPDATE races SET year = 2024, round = round - 18 WHERE year = 2023 AND round > 18",
    )
    assert {uid.split("/")[1] for uid in events(app, address)} == seasons
    assert app.get("/ergast/f1/current.ics").headers["X-Total-Count"] == "22"
    assert app.get("/ergast/f1/current.json").json["MRData"]["total"] == "4"
    assert app.get("/ergast/f1/current.csv").headers["X-Total-Count"] == "4"


def test_a_calendar_without_a_limit_has_all_races(database):
    copies = "SELECT raceId + 1000, year, round + 50, circuitId, name, date, time, url FROM races"
    app = client_after(database, f"INSERT INTO races {copies}")
    answer = app.get("/ergast/f1/races.ics?sessions=race")
    assert answer.body.count(b"BEGIN:VEVENT") == int(answer.headers["X-Total-Count"]) == 176
    assert app.get("/ergast/f1/races.csv").body.count(b"\n") == 101


def test_a_subscriber_sees_events_move_get_a_time_and_go_but_none_twice(database):
    def starts(*changes):
        if changes:
            changed(database, *changes)
        return {
            uid: event.start
            for uid, event in events(client(database), "/2023.ics?limit=30").items()
        }

    changes = [
        "UPDATE sessions SET time = NULL WHERE RACE(2023/18) AND session = 'quali'",
        "UPDATE races SET time = NULL WHERE RACE(2023/18)",
    ]
    before = starts(*changes)
    prefix = "f1/2023/united-states-grand-prix/"
    assert before[f"{prefix}race@racedata"] == date(2023, 10, 22)
    known = starts("UPDATE races SET time = '20:00:00' WHERE RACE(2023/18)")
    assert known == before | {f"{prefix}race@racedata": datetime(2023, 10, 22, 20, tzinfo=UTC)}
    moved = starts("UPDATE races SET date = '2023-11-30', round = 40 WHERE RACE(2023/18)")
    assert moved == known | {f"{prefix}race@racedata": datetime(2023, 11, 30, 20, tzinfo=UTC)}
    renumbered = starts("UPDATE races SET round = round + 50 WHERE year = 2023")
    assert renumbered == moved
    cancelled = starts(
        *(f"DELETE FROM {table} WHERE RACE(2023/90)" for table in ("sessions", "results", "races")),
    )
    assert cancelled == {uid: start for uid, start in moved.items() if not uid.startswith(prefix)}
    assert len(cancelled) == len(moved) - 5


ODD = {
    "names without Latin letters": "UPDATE races SET name = '日本 ' || round WHERE year = 2023",
    "names of signs": "UPDATE races SET name = ',;\\ \"' || round WHERE year = 2023",
    "long names": f"UPDATE races SET name = '{'é' * 990}' || round WHERE year = 2023",
    "the first day": "UPDATE races SET date = '0001-01-01' WHERE year = 2023",
    "no place": "UPDATE circuits SET lat = NULL, location = NULL, "
    "country = NULL WHERE lat IS NOT NULL",
    "a place far away": "UPDATE circuits SET lat = '999999999999999999', lng = '-0.000001'",
    "no link": "UPDATE races SET url = NULL WHERE url IS NOT NULL",
    "a link that is none": "UPDATE races SET url = 'é, \"; x'",
}


@pytest.mark.parametrize("statement", ODD.values(), ids=ODD)
def test_odd_data_makes_a_calendar_that_readers_accept(database, statement):
    found = events(client_after(database, statement), "/2023.ics?sessions=race")
    assert len(found) == 22
