"""Fills a Stage with what was chosen from the store: gives rows ids instead of references.

It knows what was chosen, and not why. Besides the ids, its rules are which article a season has,
and which constructor a car has. It opens no file, reads no clock, asks no source, and compares
nothing.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, compress, count, islice, repeat
from typing import Any

from racedata.loader.choose import Choice, ChosenRace, base_of
from racedata.loader.corrections import Corrections
from racedata.loader.fastest_laps import fastest_laps_of_results
from racedata.loader.lists import Lists
from racedata.loader.parts import LIST_OF, PARTS
from racedata.loader.stage import Stage
from racedata.loader.store import Store, StoredPart
from racedata.model import KINDS, TABLE_BY_NAME

# The values of a part, by column: much faster than row by row.
Columns = dict[str, Sequence[Any]]
# By driver and constructor, another constructor.
Constructors = dict[tuple[int, int], int]


class Filling:
    """What fills a Stage from the store. `build.fill_and_correct` calls its functions.

    `base` is the source whose ids are kept, and whose lists come first. `kept` has all sources that
    share its ids: an export and perhaps its rest, or all sources of a database that was taken
    apart. If no dump has ids, `kept` has all sources; then only the races have ids of the base.
    """

    def __init__(
        self, stage: Stage, store: Store, choice: Choice, corrections: Corrections
    ) -> None:
        self.stage, self.db, self.store, self.choice = stage, stage.db, store, choice
        self.corrections = corrections
        # by source and season
        self.calendars = {
            (calendar.source, calendar.season): calendar for calendar in store.calendars()
        }
        used = {part.source for race in choice.races for part in race.parts.values()}
        used |= {race.calendar.source for race in choice.races}
        used |= {race.sessions_from.source for race in choice.races if race.sessions_from}
        self.sources = [
            source
            for source in sorted(store.sources(), key=lambda source: source.is_api)
            if source.is_loaded or source.name in used
        ]
        # the APIs have the last numbers
        self.numbers = {source.name: n for n, source in enumerate(self.sources, 1)}
        self.base = base_of(self.sources)
        self.kept = [source.name for source in self.sources if source.ids == self.base.ids]
        self.lists = Lists(store, choice, self.sources, self.base, corrections)
        self.race_ids = self.ids_of_races()
        # What was looked up by `constructors_that_count`, by race and source.
        self.constructors: dict[tuple[ChosenRace, str], Constructors] = {}

    def ids_of_races(self) -> dict[ChosenRace, int]:
        """The ids of the races. The first source in `kept` that has a race gives its id. Other
        races get free ids.
        """
        kept = self.kept if self.base.ids else [self.base.name]
        own = {
            (*place, race["key"]): int(race["raceId"])
            for place, calendar in self.calendars.items()
            if calendar.source in kept
            for race in (*(calendar.counting or ()), *calendar.races)
        }
        free = count(max(own.values(), default=0) + 1)
        ids: dict[ChosenRace, int] = {}
        for race in self.choice.races:
            found = (own.get((name, race.season, race.keys.get(name, ""))) for name in kept)
            ids[race] = next(filter(None, found), 0) or next(free)
        return ids

    def fill_sources(self) -> None:
        for source in self.sources:
            self.stage.add_source(self.numbers[source.name], source)

    def fill_lists(self) -> None:
        """Inserts the lists of drivers and the like."""
        for name, merged in self.lists.merged.items():
            names = TABLE_BY_NAME[name].names
            values = ([row.get(column) for column in names] for row in merged.rows.values())
            self.stage.insert_rows(name, names, values)

    # Races.

    def fill_races(self) -> None:
        """Inserts the seasons, the races and their sessions."""
        for race, id in self.race_ids.items():
            circuits = self.lists.ids[race.calendar.source, "circuits"]
            circuit = circuits.of(race.facts["circuitId"])
            self.stage.insert_row("races", {**race.facts, "raceId": id, "circuitId": circuit})
            for session in race.sessions:
                self.stage.insert_row("sessions", {"raceId": id, **session})
        self.fill_seasons()

    def fill_seasons(self) -> None:
        """Inserts the seasons that the base has or that have races.

        The article is the one that the calendar's source has, or the first source that has one.
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
            articles = (urls[source].get(season) for source in order)
            self.stage.insert_row(
                "seasons", {"year": season, "url": next(filter(None, articles), None)}
            )

    # Records.

    def fill_others(self) -> None:
        """Inserts the other records. A car has its driver and constructor from stage.results."""
        for kind in PARTS:
            if kind not in ("results", "fastest_laps"):
                self.fill_kind(kind)

    def fill_kind(self, kind: str) -> None:
        """Inserts the chosen parts of a kind; with the results, also the fastest laps."""
        has_ids = bool(TABLE_BY_NAME[kind].id)
        need_ids = []
        for race in self.choice.races:
            if part := race.parts.get(kind):
                if has_ids and part.source not in self.kept:
                    need_ids.append((race, part))
                else:
                    self.insert_part(race, part, self.values_of(race, part))
        if need_ids:
            self.insert_with_ids(kind, need_ids)

    def insert_with_ids(self, kind: str, parts: Sequence[tuple[ChosenRace, StoredPart]]) -> None:
        """Inserts parts whose rows have no ids that can be kept: they get the ids of those of the
        base that they replace, then free ones.
        """
        name = TABLE_BY_NAME[kind].id
        replaced = [self.ids_of_base(race, kind) for race, _ in parts]
        sql = f"SELECT ifnull(max({name}), 0) FROM stage.{kind}"
        free = count(max([*self.db.execute(sql).fetchone(), *chain(*replaced)]) + 1)
        for (race, part), ids in zip(parts, replaced):
            values = self.values_of(race, part)
            rows = len(next(iter(values.values())))
            values[name] = [*islice(chain(ids, free), rows)]
            self.insert_part(race, part, values)

    def values_of(self, race: ChosenRace, part: StoredPart) -> Columns:
        """The values of a part, with ids instead of references."""
        values = self.stored_values(part)
        if part.kind == "results":
            self.add_fastest_laps(race, values)
        elif part.source != race.parts.get("results", part).source:
            self.follow_results(race, part, values)
        if part.kind == "entries" and part.source != race.parts["results"].source:
            # only the drivers who have no result
            sql = "SELECT driverId FROM stage.results WHERE raceId = ?"
            with_result = {driver for (driver,) in self.db.execute(sql, (self.race_ids[race],))}
            kept = [driver not in with_result for driver in values["driverId"]]
            values = {name: [*compress(column, kept)] for name, column in values.items()}
        return values

    def stored_values(self, part: StoredPart) -> Columns:
        """The values of a stored part, with ids instead of references."""
        columns, rows = self.store.rows(part)
        values: Columns = dict(zip(columns, zip(*rows)))
        for name in values.keys() & LIST_OF.keys():
            values[name] = [*map(self.lists.ids[part.source, LIST_OF[name]].of, values[name])]
        return values

    def insert_part(self, race: ChosenRace, part: StoredPart, values: Columns) -> None:
        self.stage.progress(f"{part.season}: {part.kind}")
        rows = zip(repeat(self.race_ids[race]), *values.values())
        self.stage.insert_rows(part.kind, ("raceId", *values), rows)

    def ids_of_base(self, race: ChosenRace, kind: str) -> list[int]:
        """The ids of the rows of the base, if another source's part was chosen."""
        for part in race.others[kind]:
            if part.source in self.kept:
                columns, rows = self.store.rows(part)
                id = TABLE_BY_NAME[kind].id
                return [row[columns.index(id)] for row in rows] if id in columns else []
        return []

    def follow_results(self, race: ChosenRace, part: StoredPart, values: Columns) -> None:
        """Gives a car the constructor that it has in the chosen results.

        Sources may give the same car different names, or disagree about it.
        """
        if not {"driverId", "constructorId"} <= {*values}:
            return
        counting = self.constructors_that_count(race, part.source)
        cars = zip(values["driverId"], values["constructorId"])
        values["constructorId"] = [counting.get(car, car[1]) for car in cars]

    def constructors_that_count(self, race: ChosenRace, source: str) -> Constructors:
        """By driver and constructor in the results of a source that do not count, the constructor
        in those that do. Without drivers who have several.
        """
        if (race, source) not in self.constructors:
            sql = "SELECT driverId, constructorId FROM stage.results WHERE raceId = ?"
            ours = only(self.db.execute(sql, (self.race_ids[race],)))
            theirs: dict[int, int] = {}
            for part in race.others["results"]:
                if part.source == source:
                    values = self.stored_values(part)
                    theirs = only(zip(values["driverId"], values["constructorId"]))
            self.constructors[race, source] = {
                car: ours[car[0]] for car in theirs.items() if car[0] in ours
            }
        return self.constructors[race, source]

    def add_fastest_laps(self, race: ChosenRace, results: Columns) -> None:
        """Adds the fastest laps to results."""
        part = race.parts.get("fastest_laps")
        if not part:
            return
        laps = zip(*self.stored_values(part).values())
        is_same_source = race.parts["results"].source == part.source
        results |= fastest_laps_of_results(results, laps, is_same_source)

    # Where it is from.

    def fill_origins(self) -> None:
        """Notes the source of each part. Sessions that came with their race need none."""
        origins: list[tuple[object, ...]] = []
        for race, id in self.race_ids.items():
            calendar = race.calendar
            number = self.numbers[calendar.source]
            origins.append((id, "races", number, calendar.fetched_at))
            sessions = race.sessions_from
            if sessions and sessions.source != calendar.source:
                number = self.numbers[sessions.source]
                origins.append((id, "sessions", number, sessions.fetched_at))
            origins += [
                (id, kind, self.numbers[part.source], part.fetched_at)
                for kind, part in race.parts.items()
                if kind in KINDS
            ]
        self.stage.insert_rows("origins", ("raceId", "kind", "sourceId", "fetchedAt"), origins)


def only(cars: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The constructors of drivers who have only one."""
    constructors: dict[int, set[int]] = {}
    for driver, constructor in cars:
        constructors.setdefault(driver, set()).add(constructor)
    return {driver: min(found) for driver, found in constructors.items() if len(found) == 1}
