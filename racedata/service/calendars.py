"""Calendars: races as iCalendar (RFC 5545 and 7986), an event for each session.

The package icalendar writes every line. Phones and other programs fetch a calendar again and again,
and recognise an event by its UID. selection.py decides which races a calendar has.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import NamedTuple

from icalendar import Alarm, Calendar, Event
from icalendar.prop import vDDDTypes, vDuration, vText

from racedata import __version__
from racedata.formats import Json, counted, public_name, without_accents
from racedata.model import SESSION_GROUPS
from racedata.service.addresses import Address, Value
from racedata.service.catalogue import Catalogue
from racedata.service.serializers import sessions_of
from racedata.service.snapshot import Snapshot
from racedata.service.words import name_of, place_of

REFRESH = timedelta(hours=6)  # how often clients should fetch a calendar

# The last lines of a calendar and of an event.
CALENDAR_END = Calendar().to_ical().splitlines(keepends=True)[-1]
EVENT_END = Event().to_ical().splitlines(keepends=True)[-1]


class Written(NamedTuple):
    """An event, without its last line."""

    group: str  # of its session
    text: bytes
    has_time: bool  # whether the time of its session is known


class Calendars:
    """Writes calendars of races. Events take longest, so the events of a race are written once."""

    def __init__(self, data: Snapshot, catalogue: Catalogue, series: str) -> None:
        self.series = series
        self.built_at = datetime.fromisoformat(data.build()["builtAt"])
        served = f"{sources_in_words(data)} Served by racedata {__version__}."
        self.head = head(self.built_at, served)
        self.catalogue = catalogue
        self.events_by_round: dict[tuple[str, str], list[Written]] = {}

    def write(
        self,
        races: Iterable[Json],
        address: Address,
        parameters: Mapping[str, Value],
    ) -> bytes:
        """The calendar of races that an address selects.

        The parameter `sessions` names the groups of its sessions, separated by commas. Each session
        whose time is known has an `alarm` so many minutes before.
        """
        named, alarm = parameters.get("sessions"), parameters.get("alarm")
        groups = [each for each in SESSION_GROUPS if not named or each in str(named).split(",")]
        name = " ".join([self.series.upper(), *self.words_of(address, groups)])
        # No UID: pages and choices of sessions would share it, and clients may take them for copies
        # (RFC 7986, 5.3). X-WR-CALNAME is for clients without RFC 7986.
        named_so = Calendar({"NAME": vText(name), "X-WR-CALNAME": vText(name)})
        lines = [self.head, *named_so.to_ical().splitlines(keepends=True)[1:-1]]
        ends = EVENT_END, EVENT_END if alarm is None else alarm_before(int(alarm)) + EVENT_END
        for race in races:
            for group, text, has_time in self.events(race):
                if group in groups:
                    lines += (text, ends[has_time])
        return b"".join([*lines, CALENDAR_END])

    def words_of(self, address: Address, groups: Collection[str]) -> Iterator[str]:
        """The words of a calendar's name: for `current`, the same in every season."""
        if address.season not in (None, "current"):
            yield str(address.season)
        if address.round is not None:
            yield (
                f"round {address.round}"
                if isinstance(address.round, int)
                else f"{address.round} race"
            )
        for filter, value in address.filters.items():
            yield name_of(self.catalogue, filter, str(value)) or f"{filter} {value}"
        if len(groups) < len(SESSION_GROUPS):
            # no commas: they are written as `\,`, which some clients do not read
            yield f"({' + '.join(groups)})"

    def events(self, race: Json) -> list[Written]:
        """The events of the sessions of a race, in the order of SESSION_BY_KEY."""
        round = race["season"], race["round"]
        if round not in self.events_by_round:
            self.events_by_round[round] = list(self.write_events(race))
        return self.events_by_round[round]

    def write_events(self, race: Json) -> Iterator[Written]:
        slug = f"{race['season']}/{slug_of(race['raceName'])}"  # no season has a name twice
        location = race["Circuit"]["Location"]
        for session, at in sessions_of(race):
            event = Event()
            start, end = period(at["date"], at.get("time"), session.minutes)
            # The UID has neither round nor date, so that an event keeps it when it moves.
            event.add("UID", f"{self.series}/{slug}/{slug_of(session.label)}@racedata")
            event.add("DTSTART", vDDDTypes(start))
            event.add("DTEND", vDDDTypes(end))
            event.add("SUMMARY", f"{race['raceName']}: {session.label}")
            event.add("CATEGORIES", [self.series.upper(), session.label])
            event.add("DTSTAMP", self.built_at)
            event.add("LAST-MODIFIED", self.built_at)
            event.add("LOCATION", place_of(race["Circuit"]))
            if "lat" in location and "long" in location:
                event.add("GEO", (location["lat"], location["long"]))
            if "url" in race:
                event.add("URL", race["url"])
            text = event.to_ical(sorted=False).removesuffix(EVENT_END)
            yield Written(session.group, text, "time" in at)


def head(built_at: datetime, description: str) -> bytes:
    """The first lines of all calendars."""
    calendar = Calendar()
    for name, value, parameters in [
        ("PRODID", vText(f"-//racedata//racedata {__version__}//EN"), {}),
        ("VERSION", vText("2.0"), {}),
        ("LAST-MODIFIED", vDDDTypes(built_at), {}),
        # RFC 7986 requires the parameter
        ("REFRESH-INTERVAL", vDuration(REFRESH), {"VALUE": "DURATION"}),
        ("X-PUBLISHED-TTL", vDuration(REFRESH), {}),  # the same for Outlook
        ("DESCRIPTION", vText(description), {}),
        ("X-WR-CALDESC", vText(description), {}),
    ]:
        calendar.add(name, value, parameters=parameters)
    content: bytes = calendar.to_ical()
    return content.removesuffix(CALENDAR_END)


def alarm_before(minutes: int) -> bytes:
    alarm = Alarm()
    alarm.add("ACTION", "DISPLAY")
    alarm.add("TRIGGER", timedelta(minutes=-minutes))
    alarm.add("DESCRIPTION", f"In {counted(minutes, 'minute')}" if minutes else "Now")
    content: bytes = alarm.to_ical()
    return content


def period(day: str, time: str | None, minutes: int) -> tuple[date, date]:
    """The start and end of a session: in UTC, or a whole day if its time is unknown."""
    if time is None:
        start = date.fromisoformat(day)
        return start, start + timedelta(days=1)
    begin = datetime.fromisoformat(f"{day}T{time}")
    return begin, begin + timedelta(minutes=minutes)


def slug_of(name: str) -> str:
    """`sao-paulo-grand-prix` for `São Paulo Grand Prix`."""
    return re.sub(r"\W+", "-", without_accents(name))


def sources_in_words(data: Snapshot) -> str:
    """The sources of the data with their licences, as a sentence."""
    sources = [
        f"{public_name(row['name'])} ({row['licence'] or 'no licence stated'})"
        for row in data.sources()
    ]
    return f"Data: {', '.join(sources)}."
