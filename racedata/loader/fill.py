"""Fills a Stage with what was chosen from the store: gives rows ids instead of references."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, compress, repeat
from typing import Any, Generic, NamedTuple, TypeVar

from racedata.hints import COMMAND
from racedata.loader.choose import Choice, ChosenRace, why
from racedata.loader.corrections import CorrectedRows
from racedata.loader.errors import LoadError
from racedata.loader.parts import LIST_OF, LISTS, OF_CAR, PARTS, REFERENCE, Row
from racedata.loader.same_bytes import build_time
from racedata.loader.sql import insertion
from racedata.loader.stage import Stage
from racedata.loader.store import Store, StoredCalendar, StoredPart, StoredSource
from racedata.model import BY_NAME, FASTEST_LAP, KINDS
from racedata.values import Value

T = TypeVar("T")


class MergedList:
    """A list such as drivers: the rows of the base, then those that other sources add."""

    def __init__(self, name: str, rows: Iterable[Row], corrected: CorrectedRows) -> None:
        self.name, self.corrected = name, corrected
        self.id = BY_NAME[name].names[0]
        self.reference = REFERENCE[self.id]
        self.rows: dict[int, Row] = {}
        self.ids: dict[object, int] = {}  # by what identifies a row
        for row in rows:
            self.add(int(str(row[self.id])), row)

    def marks(self, row: Mapping[str, Value]) -> list[object]:
        """What identifies a row: its reference; for drivers, also birth date and surname."""
        reference = str(row[self.reference])
        row = self.corrected.row(self.name, reference, row)
        marks: list[object] = [reference.lower()]
        if self.name == "drivers" and row.get("dob"):
            marks.append((row["dob"], str(row["surname"]).lower()))
        return marks

    def add(self, id: int, row: Row) -> None:
        self.rows[id] = {**row, self.id: id}
        for mark in self.marks(row):
            self.ids.setdefault(mark, id)

    def find(self, row: Mapping[str, Value]) -> int | None:
        return next((self.ids[mark] for mark in self.marks(row) if mark in self.ids), None)

    def free_id(self) -> int:
        return max(self.rows, default=0) + 1


class IdsOf(dict[Value, int | T], Generic[T]):
    """The ids in the database of what a source refers to, by its references. Of what the database
    lacks, it has what `otherwise` makes of the reference.
    """

    def __init__(
        self,
        ids: Mapping[Value, int],
        others: Mapping[object, int],
        otherwise: Callable[[Value], T],
    ) -> None:
        super().__init__(ids)
        self.others, self.otherwise = others, otherwise

    def __missing__(self, reference: Value) -> int | T:
        # A source has facts only about some of those it names.
        id = None if reference is None else self.others.get(str(reference).lower())
        self[reference] = self.otherwise(reference) if id is None else id
        return self[reference]


# The values of a part, by column: much faster than row by row.
Columns = dict[str, Sequence[Any]]
# By driver and constructor, another constructor.
Names = dict[tuple[int, int], int]


class FastestLap(NamedTuple):
    """A row of a part of fastest laps, with ids: OF_CAR and FASTEST_LAP."""

    driver: int
    number: int
    text: str  # the car's positionText
    place: int  # its positionOrder
    lap: int | None = None
    rank: int | None = None
    time: str | None = None
    speed: str | None = None


class Misfit(NamedTuple):
    """How badly a car's result fits the fastest lap of its driver: the lowest gets it."""

    has_another_place: bool  # in the same source
    is_too_short: int  # 1 if it drove fewer laps; -1 if that is unknown
    has_another_number: bool  # a source may have another number for the car, or mix them up
    has_another_text: bool
    place: int


class Filling:
    """What fills a Stage from the store, step by step: `build.fill_and_correct` has their order.

    `base` is the source whose lists come first, and with `kept`, the sources whose ids are kept: an
    export, and perhaps its rest.
    """

    def __init__(
        self, stage: Stage, store: Store, choice: Choice, corrected: CorrectedRows
    ) -> None:
        self.stage, self.db, self.store, self.choice = stage, stage.db, store, choice
        self.corrected = corrected
        # by source and season
        self.calendars = {(each.source, each.season): each for each in store.calendars()}
        used = {part.source for race in choice.races for part in race.parts.values()}
        used |= {race.calendar.source for race in choice.races}
        used |= {race.sessions_from.source for race in choice.races if race.sessions_from}
        self.sources = [
            source
            for source in in_order(store.sources())
            if source.is_loaded or source.name in used
        ]
        self.now = build_time()
        # Which source has what in a list: by its name, the reference, and a column with its value.
        self.facts_said: dict[str, dict[tuple[str, tuple[str, Value] | None], str]] = {}
        self.numbers = {source.name: n for n, source in enumerate(self.sources, 1)}
        self.base = base_of(self.sources)
        self.kept = {source.name for source in self.sources if source.has_ids} or {self.base.name}
        statuses = store.statuses()
        self.kept_statuses = {text.lower(): id for text, id in statuses.items()}
        self.lists = {
            name: MergedList(name, store.list_rows(self.base.name, name), corrected)
            for name in LISTS
        }
        # The ids in the database, by source, list and reference; None if nothing that was chosen
        # refers to it.
        self.ids: dict[str, dict[str, IdsOf[None]]] = {}
        self.names: dict[tuple[int, str], Names] = {}  # by race and source: see `other_names`
        self.race_ids: dict[int, int] = {}  # by the place of a race in `choice.races`

    def fill_sources(self) -> None:
        for source in self.sources:
            read_at = min(source.read_at, self.now)
            number = self.numbers[source.name]
            self.stage.add_source(number, source._replace(read_at=read_at))

    # Lists.

    def fill_lists(self) -> None:
        """Inserts the rows of the base, and those that the chosen parts of other sources refer to.
        From then on, `ids` has their ids.
        """
        needed = self.needed()
        for source in sorted(self.sources, key=lambda source: source is not self.base):
            self.ids[source.name] = of_source = {}
            for name in LISTS:
                rows = self.store.list_rows(source.name, name)
                id = BY_NAME[name].names[0]
                reference = REFERENCE[id]
                if source is self.base:
                    ids = {row[reference]: int(str(row[id])) for row in rows}
                    of_source[name] = IdsOf(ids, self.lists[name].ids, nothing)
                    continue
                used = needed.get((source.name, name), set())
                if name == "status":  # an API lists only those that the database lacked
                    missing = used - {None, *(row[reference] for row in rows)}
                    rows += [{"status": text} for text in sorted(map(str, missing))]
                ids = self.add_to_list(
                    source, name, [row for row in rows if row[reference] in used]
                )
                of_source[name] = IdsOf(ids, self.lists[name].ids, nothing)
        self.number_drivers()
        for name, found in self.lists.items():
            names = BY_NAME[name].names
            values = [[row.get(column) for column in names] for row in found.rows.values()]
            self.stage.insert(name, names, list(zip(*values)))

    def number_drivers(self) -> None:
        """Gives drivers the permanent number of the source with the newest result.

        A driver may change it from one season to the next, so older sources may be out of date.
        """
        numbers = self.lists["drivers"].rows
        final = [source for source in self.sources if not source.is_provisional]
        final.sort(key=lambda each: (self.choice.newest.get(each.name, ""), -(each.place or 0)))
        for source in final:  # the newest comes last
            ids = self.ids[source.name]["drivers"]
            for row in self.store.list_rows(source.name, "drivers"):
                id = ids.get(row["driverRef"])
                if id and row.get("number") is not None:
                    numbers[id]["number"] = row["number"]

    def keep_statuses(self) -> None:
        """Writes the ids of statuses into the store, which keeps also those of statuses that no
        record has any more: addresses have them.
        """
        ids = {str(row["status"]): id for id, row in self.lists["status"].rows.items()}
        texts, used = {text.lower() for text in ids}, {*self.lists["status"].rows}
        kept = {
            text: id
            for text, id in self.store.statuses().items()
            if text.lower() not in texts and id not in used
        }
        self.store.put_statuses({**kept, **ids})

    def needed(self) -> dict[tuple[str, str], set[Value]]:
        """The references in the chosen parts and calendars, by source and list."""
        needed: dict[tuple[str, str], set[Value]] = {}
        for race in self.choice.races:
            circuits = needed.setdefault((race.calendar.source, "circuits"), set())
            circuits.add(race.facts["circuitId"])
            for part in race.parts.values():
                if part.source == self.base.name:
                    continue
                columns, rows = self.store.rows(part)
                for at, column in enumerate(columns):
                    if column in LIST_OF:
                        references = needed.setdefault((part.source, LIST_OF[column]), set())
                        references |= {row[at] for row in rows}
        return needed

    def add_to_list(self, source: StoredSource, name: str, rows: Iterable[Row]) -> dict[Value, int]:
        """Finds or adds the rows of a source. Returns their ids, by reference."""
        found = self.lists[name]
        ids: dict[Value, int] = {}
        for row in rows:
            id = found.find(row)
            if id is None:
                id = self.new_id(found, row)
                found.add(id, row)
            elif source.is_api and name != "status":
                known = {
                    column: value
                    for column, value in row.items()
                    if value is not None and column not in (found.id, found.reference)
                }
                found.rows[id] |= known
            if name == "drivers" and id in ids.values():
                raise self.two_in_one(source, row, id, ids)
            ids[row[found.reference]] = id
        return ids

    def new_id(self, found: MergedList, row: Row) -> int:
        """The id of a new row. A status keeps its id if that is free, because addresses have it."""
        if found.name != "status":
            return found.free_id()
        status = str(row["status"]).lower()
        others = (id for text, id in self.kept_statuses.items() if text != status)
        taken = {*found.rows, *others}
        for id in (self.kept_statuses.get(status), row.get("statusId")):
            if id is not None and int(id) not in taken:
                return int(id)
        return max(taken, default=0) + 1

    def two_in_one(
        self, source: StoredSource, row: Row, id: int, ids: Mapping[Value, int]
    ) -> LoadError:
        """The error for two drivers of a source that are one driver here."""
        other = next(reference for reference, each in ids.items() if each == id)
        return LoadError(
            f"{source.name}: drivers {row['driverRef']!r} and {other!r} both match "
            f"{self.lists['drivers'].rows[id]['driverRef']!r}, by reference or by birth date and "
            "surname; expected only one: correct that source, or leave it out"
        )

    # Races.

    def fill_races(self) -> None:
        """Inserts the seasons, the races and their sessions, which refer to circuits. Races that
        the base has keep its ids. From then on, `race_ids` has all.
        """
        own = {
            (calendar.season, race["key"]): race["raceId"]
            for calendar in self.calendars.values()
            if calendar.source in self.kept
            for race in (*(calendar.counting or ()), *calendar.races)
        }
        last = max(own.values(), default=0)
        for at, race in enumerate(self.choice.races):
            ids = (own.get((race.season, race.keys.get(name))) for name in self.kept)
            id = next(filter(None, ids), None)
            if id is None:
                last += 1
                id = last
            self.race_ids[at] = id
            facts = {**race.facts, "raceId": id}
            facts["circuitId"] = self.ids[race.calendar.source]["circuits"][facts["circuitId"]]
            self.insert("races", facts)
            for session in race.sessions:
                self.insert("sessions", {"raceId": id, **session})
        self.fill_seasons()

    def fill_seasons(self) -> None:
        """Inserts the seasons: those of the base, and those that have races.

        The article is that of the calendar's source, or of the first source that has one.
        """
        urls = {
            source.name: {
                int(str(row["year"])): row["url"]
                for row in self.store.list_rows(source.name, "seasons")
            }
            for source in self.sources
        }
        calendars = {race.season: race.calendar.source for race in self.choice.races}
        for season in sorted({*calendars, *urls[self.base.name]}):
            order = [calendars.get(season, self.base.name), *urls]
            found = (urls[source].get(season) for source in order)
            self.insert("seasons", {"year": season, "url": next(filter(None, found), None)})

    def insert(self, table: str, row: Mapping[str, Any]) -> None:
        self.db.execute(insertion(f"stage.{table}", tuple(row)), list(row.values()))

    # Records.

    def fill_results(self) -> None:
        """Inserts the results of all races, with the fastest laps."""
        self.fill_kind("results")

    def fill_others(self) -> None:
        """Inserts the other records, after the results have been corrected."""
        for kind in PARTS:
            if kind not in ("results", "fastest_laps"):
                self.fill_kind(kind)

    def fill_kind(self, kind: str) -> None:
        """Inserts the chosen parts of a kind."""
        has_ids = bool(BY_NAME[kind].id)
        need_ids = []
        for at, race in enumerate(self.choice.races):
            if part := race.parts.get(kind):
                id = self.race_ids[at]
                if has_ids and not (self.base.has_ids and part.source in self.kept):
                    need_ids.append((id, race, part))
                else:
                    self.insert_part(id, part, self.values_of(id, race, part))
        if need_ids:
            self.insert_with_ids(kind, need_ids)

    def insert_with_ids(
        self, kind: str, parts: Sequence[tuple[int, ChosenRace, StoredPart]]
    ) -> None:
        """Inserts parts whose rows have no ids that can be kept: they get the ids of those of the
        base that they replace, then free ones.
        """
        name = BY_NAME[kind].id
        replaced = [self.ids_of_base(race, kind) for _, race, _ in parts]
        sql = f"SELECT ifnull(max({name}), 0) FROM stage.{kind}"
        last = max([*self.db.execute(sql).fetchone(), *chain(*replaced)])
        for (id, race, part), ids in zip(parts, replaced):
            values = self.values_of(id, race, part)
            count = len(next(iter(values.values())))
            free = max(0, count - len(ids))
            values[name] = [*ids[:count], *range(last + 1, last + free + 1)]
            last += free
            self.insert_part(id, part, values)

    def values_of(self, id: int, race: ChosenRace, part: StoredPart) -> Columns:
        """The values of a part, with ids instead of references."""
        values = self.stored_values(part)
        if part.kind == "results":
            self.add_fastest_laps(race, values)
        else:
            self.name_cars(id, race, part, values)
        if part.kind == "entries" and part.source != race.parts["results"].source:
            # only the drivers who have no result
            found = self.db.execute("SELECT driverId FROM stage.results WHERE raceId = ?", (id,))
            drivers = {driver for (driver,) in found}
            kept = [driver not in drivers for driver in values["driverId"]]
            values = {name: [*compress(each, kept)] for name, each in values.items()}
        return values

    def stored_values(self, part: StoredPart) -> Columns:
        """The values of a stored part, with ids instead of references."""
        columns, rows = self.store.rows(part)
        values = dict(zip(columns, zip(*rows)))
        ids = self.ids[part.source]
        return {
            name: [*map(ids[LIST_OF[name]].__getitem__, each)] if name in LIST_OF else each
            for name, each in values.items()
        }

    def insert_part(self, id: int, part: StoredPart, values: Columns) -> None:
        self.stage.progress(f"{part.season}: {part.kind}")
        sql = insertion(f"stage.{part.kind}", ("raceId", *values))
        self.db.executemany(sql, zip(repeat(id), *values.values()))

    def ids_of_base(self, race: ChosenRace, kind: str) -> list[int]:
        """The ids of the rows of the base, if another source's part was chosen."""
        for part in race.others[kind]:
            if part.source in self.kept:
                columns, rows = self.store.rows(part)
                id = BY_NAME[kind].id
                return [row[columns.index(id)] for row in rows] if id in columns else []
        return []

    def name_cars(self, id: int, race: ChosenRace, part: StoredPart, values: Columns) -> None:
        """Gives a car the constructor that it has in the chosen results.

        Sources may give the same car different names, or disagree about it.
        """
        results = race.parts.get("results")
        if not results or results.source == part.source or part.kind == "entries":
            return
        if not {"driverId", "constructorId"} <= {*values}:
            return
        names = self.other_names(id, race, part.source)
        cars = zip(values["driverId"], values["constructorId"])
        values["constructorId"] = [names.get(car, car[1]) for car in cars]

    def other_names(self, id: int, race: ChosenRace, source: str) -> Names:
        """By driver and constructor in the results of a source that do not count, the constructor
        in those that do. Without drivers who have several.
        """
        if (id, source) not in self.names:
            names: Names = {}
            for part in (each for each in race.others["results"] if each.source == source):
                found = self.stored_values(part)
                theirs = only(zip(found["driverId"], found["constructorId"]))
                sql = "SELECT driverId, constructorId FROM stage.results WHERE raceId = ?"
                ours = only(self.db.execute(sql, (id,)))
                names = {(each, theirs[each]): ours[each] for each in theirs if each in ours}
            self.names[id, source] = names
        return self.names[id, source]

    def add_fastest_laps(self, race: ChosenRace, values: Columns) -> None:
        """Adds the fastest laps to results. A driver has one, but may have two results."""
        part = race.parts.get("fastest_laps")
        if not part:
            return
        right = self.right_drivers(race)

        def driver_of(driver: int, number: int) -> int:
            """The driver of a row, after corrections."""
            return right.get((driver, number)) or right.get((driver, None), driver)

        # The lap of a driver counts before one that is only his after a correction.
        of_laps = [FastestLap(*row) for row in zip(*self.stored_values(part).values())]
        laps: dict[int, FastestLap] = {}
        for each in sorted(of_laps, key=lambda it: driver_of(it.driver, it.number) != it.driver):
            laps.setdefault(driver_of(each.driver, each.number), each)
        is_same = race.parts["results"].source == part.source
        # by driver, the row that gets his lap, and how badly it fits
        rows: dict[int, tuple[Misfit, int]] = {}
        cars = zip(*(values[name] for name in ("driverId", "laps", *OF_CAR[1:])))
        for at, (named, driven, number, text, place) in enumerate(cars):
            driver = driver_of(named, number)
            if lap := laps.get(driver):
                misfit = Misfit(
                    is_same and place != lap.place,
                    -1 if driven is None or lap.lap is None else driven < lap.lap,
                    number != lap.number,
                    text != lap.text,
                    place,
                )
                rows[driver] = min((misfit, at), rows.get(driver, (misfit, at)))
        found: list[Sequence[Any]] = [(None,) * len(FASTEST_LAP)] * len(values["driverId"])
        for driver, (_, at) in rows.items():
            found[at] = laps[driver][len(OF_CAR) :]
        values |= zip(FASTEST_LAP, zip(*found))

    def right_drivers(self, race: ChosenRace) -> dict[tuple[int | None, int | None], int]:
        """The right drivers of results that have a wrong one, by that and the number of the car.

        The number is None if the correction does not name it.
        """
        ids, found = self.lists["drivers"].ids, {}
        for wrong, number, right in self.corrected.drivers.get(
            f"{race.season}/{race.facts['round']}", ()
        ):
            if id := ids.get(right.lower()):
                found[ids.get(wrong.lower()), int(number) if number else None] = id
        return found

    # Where it is from.

    def why(self, race: int, kind: str, source: str, other: str) -> str:
        """Why the records of a source count for a race, by its id, and not those of another."""
        at = next(at for at, id in self.race_ids.items() if id == race)
        return why(self.choice.races[at], kind, source, other)

    def source_of_fact(self, name: str, key: str, fact: tuple[str, Value] | None) -> str | None:
        """The source that has a row in a list, or in `seasons`, with a value in a column: an API
        before the base, and that before other dumps. None if no source has it, as after a
        correction.
        """
        if name not in self.facts_said:
            said = self.facts_said.setdefault(name, {})
            final = [source for source in self.sources if not source.is_provisional]
            for source in sorted(final, key=lambda each: (not each.is_api, each is not self.base)):
                for row in self.store.list_rows(source.name, name):
                    named = str(self.name_in_list(name, row))
                    for each in (None, *row.items()):
                        said.setdefault((named, each), source.name)
        return self.facts_said[name].get((key, fact))

    def name_in_list(self, name: str, row: Row) -> Value:
        """Our reference for a row of a source's list; the year for a season."""
        if name not in self.lists:
            return row["year"]
        id = self.lists[name].find(row)
        return None if id is None else self.lists[name].rows[id][self.lists[name].reference]

    def fill_origins(self) -> None:
        """Notes the source of each part. Sessions that came with their race need none."""
        origins: list[tuple[object, ...]] = []
        for at, race in enumerate(self.choice.races):
            id, given = self.race_ids[at], race.calendar
            origins.append((id, "races", self.numbers[given.source], self.believed(race, given)))
            sessions = race.sessions_from
            if sessions and sessions.source != given.source:
                number = self.numbers[sessions.source]
                origins.append((id, "sessions", number, self.believed(race, sessions)))
            origins += [
                (id, kind, self.numbers[part.source], self.believed(race, part))
                for kind, part in race.parts.items()
                if kind in KINDS
            ]
        self.db.executemany(insertion("stage.origins", 4), origins)

    def believed(self, race: ChosenRace, given: StoredPart | StoredCalendar) -> str | None:
        """When a refresh fetched something. If the clock was ahead: on the day of the race."""
        if given.fetched_at and given.fetched_at > self.now:
            return f"{min(race.facts['date'], self.now[:10])}T00:00:00Z"
        return given.fetched_at


def nothing(reference: Value) -> None:
    """The id of what nothing that was chosen refers to."""


def only(cars: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The constructors of drivers who have only one."""
    found: dict[int, set[int]] = {}
    for driver, constructor in cars:
        found.setdefault(driver, set()).add(constructor)
    return {driver: min(each) for driver, each in found.items() if len(each) == 1}


def base_of(sources: Sequence[StoredSource]) -> StoredSource:
    """The first source whose ids are kept; or else, the first dump."""
    dumps = [each for each in sources if not each.is_api and not each.is_provisional]
    if not dumps:  # only they have lists of all drivers, constructors and circuits
        raise LoadError(f"no dump of the list was read; to read one, run: {COMMAND} load SOURCE")
    return next((each for each in dumps if each.has_ids), dumps[0])


def in_order(sources: Sequence[StoredSource]) -> list[StoredSource]:
    """The sources in the order of their numbers: first those that were loaded.

    The facts of the most trusted API come last: they replace others.
    """
    apis = [each for each in sources if each.is_api]
    return [*(each for each in sources if not each.is_api), *reversed(apis)]
