"""Reads a dump in Jolpica's own layout into a Stage: a `formula_one_….csv` per table of its
database, linked by ids.

The files become temporary tables, and SQL statements turn those into the tables of the Stage.
Columns are found by name; other columns and files are ignored. jolpica_download.py downloads the
dump that Jolpica publishes.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import compress

from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import Dump, files_of, not_read
from racedata.loader.files.csvfile import AnyPath, CsvFile, Field
from racedata.loader.sources.statuses import insert_statuses
from racedata.loader.sql import insertion
from racedata.loader.stage import SourceFacts, Stage, ids_of
from racedata.values import (
    Parser,
    Value,
    clock_duration,
    clock_lap_time,
    day,
    degrees,
    flag,
    id_in,
    moment,
    number,
    plain_text,
    points,
    reference,
    round_number,
    row_id,
    speed,
    time_with_fraction,
    whole_number,
    year,
)

RECOGNISED_BY = "formula_one_round.csv"
LICENCE = "CC BY-NC-SA 4.0"

# The files, in the order of loading: each comes after those that it refers to. An empty field is
# NULL.
CREATE_TABLES = """
CREATE TEMP TABLE season (
    id INTEGER PRIMARY KEY, year INTEGER NOT NULL UNIQUE, wikipedia TEXT
);
CREATE TEMP TABLE circuit (
    id INTEGER PRIMARY KEY, reference TEXT NOT NULL UNIQUE COLLATE NOCASE, name TEXT NOT NULL,
    locality TEXT, country TEXT, latitude TEXT, longitude TEXT, altitude TEXT, wikipedia TEXT,
    api_id TEXT
);
CREATE TEMP TABLE team (
    id INTEGER PRIMARY KEY, reference TEXT UNIQUE COLLATE NOCASE, name TEXT NOT NULL,
    nationality TEXT, wikipedia TEXT, api_id TEXT
);
CREATE TEMP TABLE driver (
    id INTEGER PRIMARY KEY, reference TEXT UNIQUE COLLATE NOCASE,
    forename TEXT NOT NULL, surname TEXT NOT NULL, permanent_car_number INTEGER,
    abbreviation TEXT, date_of_birth TEXT, nationality TEXT, wikipedia TEXT,
    api_id TEXT
);
CREATE TEMP TABLE round (
    id INTEGER PRIMARY KEY, season_id INTEGER NOT NULL REFERENCES season, number INTEGER,
    circuit_id INTEGER NOT NULL REFERENCES circuit, name TEXT NOT NULL,
    is_cancelled INTEGER, wikipedia TEXT
);
CREATE UNIQUE INDEX temp.round_number ON round (season_id, number) WHERE is_cancelled IS NOT 1;
CREATE TEMP TABLE session (
    id INTEGER PRIMARY KEY, round_id INTEGER NOT NULL REFERENCES round, type TEXT NOT NULL,
    number INTEGER, timestamp TEXT, has_time_data INTEGER
);
CREATE UNIQUE INDEX temp.session_type ON session (round_id, type)
WHERE type NOT IN ('QA', 'QB', 'QO');
CREATE TEMP TABLE teamdriver (
    id INTEGER PRIMARY KEY, driver_id INTEGER NOT NULL REFERENCES driver,
    team_id INTEGER NOT NULL REFERENCES team
);
CREATE TEMP TABLE roundentry (
    id INTEGER PRIMARY KEY, round_id INTEGER NOT NULL REFERENCES round,
    team_driver_id INTEGER NOT NULL REFERENCES teamdriver, car_number INTEGER
);
CREATE TEMP TABLE sessionentry (
    id INTEGER PRIMARY KEY, round_entry_id INTEGER NOT NULL REFERENCES roundentry,
    session_id INTEGER NOT NULL REFERENCES session, position INTEGER, is_classified INTEGER,
    status INTEGER, detail TEXT, points TEXT, grid INTEGER, laps_completed INTEGER,
    time INTEGER, fastest_lap_rank INTEGER,
    UNIQUE (session_id, round_entry_id)
);
CREATE TEMP TABLE lap (  -- only fastest laps, and those with a pit stop
    id INTEGER PRIMARY KEY, session_entry_id INTEGER NOT NULL REFERENCES sessionentry,
    number INTEGER, position INTEGER, time TEXT, average_speed TEXT,
    is_entry_fastest_lap INTEGER, is_deleted INTEGER
);
CREATE TEMP TABLE pitstop (
    id INTEGER PRIMARY KEY, session_entry_id INTEGER NOT NULL REFERENCES sessionentry,
    number INTEGER, lap_id INTEGER REFERENCES lap, local_timestamp TEXT, duration INTEGER,
    UNIQUE (session_entry_id, number)
);
CREATE TEMP TABLE driverchampionship (
    id INTEGER PRIMARY KEY, round_id INTEGER REFERENCES round,
    driver_id INTEGER NOT NULL REFERENCES driver, points TEXT, position INTEGER,
    win_count INTEGER, is_eligible INTEGER, adjustment_type INTEGER,
    UNIQUE (round_id, driver_id)
);
CREATE TEMP TABLE teamchampionship (
    id INTEGER PRIMARY KEY, round_id INTEGER REFERENCES round,
    team_id INTEGER NOT NULL REFERENCES team, points TEXT, position INTEGER,
    win_count INTEGER, is_eligible INTEGER, adjustment_type INTEGER,
    UNIQUE (round_id, team_id)
);
"""
REQUIRED_FILES = (
    "season",
    "circuit",
    "team",
    "driver",
    "round",
    "session",
    "teamdriver",
    "roundentry",
    "sessionentry",
)
OPTIONAL_FILES = ("lap", "pitstop", "driverchampionship", "teamchampionship")
LAP_TIMES = ("raceId", "driverId", "lap", "position", "time")

# Parsers for columns other than whole numbers and plain text.
PARSERS: dict[str, dict[str, Parser]] = {
    "season": {"year": year},
    "circuit": {
        "reference": reference,
        "latitude": degrees,
        "longitude": degrees,
        "altitude": number,
    },
    "team": {"reference": reference},
    "driver": {"reference": reference, "date_of_birth": day},
    "round": {"number": round_number, "is_cancelled": flag},
    "session": {"timestamp": moment, "has_time_data": flag},
    "sessionentry": {"is_classified": flag, "points": points, "time": clock_duration},
    "lap": {
        "id": row_id,
        "time": clock_lap_time,
        "average_speed": speed,
        "is_entry_fastest_lap": flag,
        "is_deleted": flag,
    },
    "pitstop": {"local_timestamp": time_with_fraction, "duration": clock_duration},
    "driverchampionship": {"points": points, "is_eligible": flag},
    "teamchampionship": {"points": points, "is_eligible": flag},
}


# Statements that fill the tables of the Stage, by table.

FILL_LISTS = {
    "seasons": "INSERT INTO stage.seasons (year, url) SELECT year, wikipedia FROM season",
    "circuits": """
        INSERT INTO stage.circuits (
            circuitId, circuitRef, name, location, country, lat, lng, alt, url)
        SELECT id, reference, name, locality, country, latitude, longitude, altitude, wikipedia
        FROM circuit""",
    # No address can name a constructor or driver without a reference.
    "constructors": """
        INSERT INTO stage.constructors (constructorId, constructorRef, name, nationality, url)
        SELECT id, reference, name, nationality, wikipedia FROM team WHERE reference NOT NULL""",
    "drivers": """
        INSERT INTO stage.drivers (
            driverId, driverRef, number, code, forename, surname, dob, nationality, url)
        SELECT id, reference, permanent_car_number, abbreviation, forename, surname,
            date_of_birth, nationality, wikipedia
        FROM driver WHERE reference NOT NULL""",
}

# A cancelled round, or one without a number, is no race. The date is that of session R, in UTC;
# `round.date` is local.
DATE_AND_TIME = "substr(timestamp, 1, 10), CASE WHEN has_time_data THEN substr(timestamp, 12) END"
FILL_LISTS["races"] = f"""
    INSERT INTO stage.races (raceId, year, round, circuitId, name, url, date, time)
    SELECT round.id, year, round.number, circuit_id, name, round.wikipedia, {DATE_AND_TIME}
    FROM round JOIN season ON season.id = season_id JOIN session ON round_id = round.id
    WHERE is_cancelled IS NOT 1 AND round.number NOT NULL AND type = 'R' AND timestamp NOT NULL"""
FILL_LISTS["sessions"] = f"""
    INSERT INTO stage.sessions (raceId, session, date, time)
    WITH names (type, session) AS (
        VALUES ('FP1', 'fp1'), ('FP2', 'fp2'), ('FP3', 'fp3'),
            ('Q1', 'quali'), ('SR', 'sprint'), ('SQ1', 'sq'))
    SELECT raceId, names.session, {DATE_AND_TIME}
    FROM session JOIN names USING (type) JOIN stage.races ON raceId = round_id
    WHERE timestamp NOT NULL"""

# The status of an entry without a detail.
STATUS_NAMES = {
    0: "Finished",
    1: "Lapped",
    10: "Accident",
    11: "Retired",
    20: "Disqualified",
    30: "Did not start",
    40: "Did not qualify",
    41: "Did not prequalify",
}

CREATE_VIEWS = (
    "CREATE TEMP TABLE status_name (status INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    # A driver in a session of a race, if both are in the Stage.
    """CREATE TEMP VIEW entry AS
        SELECT sessionentry.*, type, session.number AS part, raceId, driverId, constructorId,
            car_number, ifnull(detail, status_name.name) AS status_text
        FROM sessionentry JOIN session ON session.id = session_id
        JOIN stage.races ON raceId = session.round_id
        JOIN roundentry ON roundentry.id = round_entry_id
        JOIN teamdriver ON teamdriver.id = team_driver_id
        JOIN stage.drivers ON driverId = driver_id
        JOIN stage.constructors ON constructorId = team_id
        LEFT JOIN status_name ON status_name.status = sessionentry.status""",
    # An entry should have only one fastest lap. If it has several, SQLite reads all columns from
    # the one with the minimum.
    """CREATE TEMP VIEW fastest AS
        SELECT session_entry_id, number AS fastest_lap, time AS fastest_time,
            average_speed, is_deleted, min((is_deleted IS 1) || printf('%12s', time))
        FROM lap WHERE is_entry_fastest_lap GROUP BY session_entry_id""",
)

STATUS_TEXTS = (
    "SELECT status_text, id FROM entry WHERE type IN ('R', 'SR') AND status_text NOT NULL"
)
RESULTS_SQL = """
    INSERT INTO stage.{table} (
        resultId, raceId, driverId, constructorId, number, grid, positionText, positionOrder,
        points, laps, milliseconds, fastestLap, rank, fastestLapTime, {speed} statusId)
    SELECT id, raceId, driverId, constructorId, car_number, grid,
        CASE WHEN is_classified THEN position
            WHEN entry.status = 20 THEN 'D'
            WHEN entry.status = 30 THEN 'W'
            WHEN entry.status IN (40, 41) THEN 'F'
            WHEN coalesce(is_classified, entry.status) NOT NULL THEN 'R' END,
        position, points, laps_completed, CASE WHEN is_classified THEN time END,
        fastest_lap, fastest_lap_rank,
        fastest_time, {average_speed} statusId
    FROM entry LEFT JOIN fastest ON session_entry_id = id
        LEFT JOIN stage.status ON stage.status.status = status_text COLLATE NOCASE
    WHERE type = '{type}' AND position NOT NULL"""
# Entries without a result, in races that have results.
ENTRIES = """
    INSERT INTO stage.entries (raceId, driverId, constructorId)
    SELECT raceId, driverId, constructorId
    FROM roundentry JOIN teamdriver ON teamdriver.id = team_driver_id
        JOIN stage.drivers ON driverId = driver_id
        JOIN stage.constructors ON constructorId = team_id
        JOIN (SELECT DISTINCT raceId FROM stage.results) ON raceId = round_id
    EXCEPT SELECT raceId, driverId, constructorId FROM stage.results"""
# Q1 to Q3 since 2006. Of the older kinds QA, QB, QO there are one or two, which fill q1, then q2.
# The position is from the last one.
QUALIFYING_SQL = """
    INSERT INTO stage.{table} ({id}, raceId, driverId, constructorId, number, position, q1, q2, q3)
    SELECT round_entry_id, raceId, driverId, constructorId, car_number, max(last_position),
        max(best) FILTER (WHERE type = '{type}1' OR older AND nth = 1),
        max(best) FILTER (WHERE type = '{type}2' OR older AND nth = 2),
        max(best) FILTER (WHERE type = '{type}3')
    FROM (
        SELECT *, type IN ({older}) AS older,
            CASE WHEN is_deleted IS NOT 1 THEN fastest_time END AS best,
            row_number() OVER parts AS nth,
            first_value(position)
                OVER (PARTITION BY round_entry_id ORDER BY part DESC NULLS FIRST, session_id DESC)
                AS last_position
        FROM entry LEFT JOIN fastest ON session_entry_id = id
        WHERE type IN ('{type}1', '{type}2', '{type}3', {older}) AND position NOT NULL
        WINDOW parts AS (PARTITION BY round_entry_id ORDER BY part NULLS LAST, session_id)
    )
    GROUP BY round_entry_id"""
# Rows without a round, which are standings after a sprint, are left out.
STANDINGS = """
    INSERT INTO stage.{of}_standings (
        {of}StandingsId, raceId, {of}Id, points, position, positionText, wins)
    SELECT id, raceId, {of}Id, points, position,
        CASE WHEN adjustment_type = 101 THEN 'D' WHEN adjustment_type = 102 THEN 'E'
            WHEN is_eligible = 0 THEN '-' ELSE position END,
        win_count
    FROM {file}championship JOIN stage.races ON raceId = round_id
    JOIN stage.{of}s ON {of}Id = {file}_id"""
FILL_RECORDS = {
    "results": RESULTS_SQL.format(
        table="results", type="R", speed="fastestLapSpeed,", average_speed="average_speed,"
    ),
    "entries": ENTRIES,
    "sprint_results": RESULTS_SQL.format(
        table="sprint_results", type="SR", speed="", average_speed=""
    ),
    "qualifying": QUALIFYING_SQL.format(
        table="qualifying", id="qualifyId", type="Q", older="'QA', 'QB', 'QO'"
    ),
    "sprint_qualifying": QUALIFYING_SQL.format(
        table="sprint_qualifying", id="sprintQualifyId", type="SQ", older="NULL"
    ),
    "pit_stops": """
        INSERT INTO stage.pit_stops (raceId, driverId, stop, lap, time, milliseconds)
        SELECT raceId, driverId, pitstop.number, lap.number, local_timestamp, duration
        FROM pitstop JOIN entry ON entry.id = pitstop.session_entry_id
        LEFT JOIN lap ON lap.id = lap_id
        WHERE type = 'R' AND pitstop.number NOT NULL""",
    "driver_standings": STANDINGS.format(of="driver", file="driver"),
    "constructor_standings": STANDINGS.format(of="constructor", file="team"),
}
# The file without which the Stage lacks a table.
FILE_OF = {
    "pit_stops": "pitstop",
    "driver_standings": "driverchampionship",
    "constructor_standings": "teamchampionship",
}

# Omitted rows: the report's words for them, and the query that counts them.
LEFT_OUT = {
    "drivers without a reference, with all their records": """
        SELECT count(*) FROM driver WHERE reference IS NULL""",
    "teams without a reference, with all their records": """
        SELECT count(*) FROM team WHERE reference IS NULL""",
    "rounds that are cancelled, have no number, or have no race date": """
        SELECT count(*) FROM round WHERE id NOT IN (SELECT raceId FROM stage.races)""",
    "race and sprint results that have no position, or belong to skipped rows": """
        SELECT count(*) FROM sessionentry JOIN session ON session.id = session_id
        WHERE type = 'R' AND sessionentry.id NOT IN (SELECT resultId FROM stage.results)
            OR type = 'SR' AND
                sessionentry.id NOT IN (SELECT resultId FROM stage.sprint_results)""",
}

# The laps of races with only one lap per driver, unless it is lap 1: these are not all laps.
SINGLE_LAPS = """
    DELETE FROM stage.lap_times WHERE raceId IN (
        SELECT raceId FROM stage.lap_times GROUP BY raceId
        HAVING count(*) = count(DISTINCT driverId) AND max(lap) > 1)"""

SESSION_TYPES = (
    "'R', 'SR', 'FP1', 'FP2', 'FP3', 'Q1', 'Q2', 'Q3', 'QA', 'QB', 'QO', 'SQ1', 'SQ2', 'SQ3'"
)
UNKNOWN_SESSIONS = f"""
    SELECT type, count(*) FROM session WHERE type NOT IN ({SESSION_TYPES}) GROUP BY type
    ORDER BY type"""
# Without its race, a round would be left out with all its records.
WITHOUT_RACE = """
    SELECT year, round.number FROM round JOIN season ON season.id = season_id
    WHERE is_cancelled IS NOT 1 AND round.number NOT NULL
        AND round.id IN (SELECT round_id FROM session JOIN sessionentry ON session_id = session.id)
        AND round.id NOT IN (SELECT round_id FROM session WHERE type = 'R')
    ORDER BY year, round.number LIMIT 1"""


def read(dump: Dump, stage: Stage) -> SourceFacts:
    """Fills the stage from the files of a dump. Raises LoadError."""
    db = stage.db
    paths = {
        name: dump.folder / f"formula_one_{name}.csv" for name in REQUIRED_FILES + OPTIONAL_FILES
    }
    files = files_of(dump, paths, REQUIRED_FILES)
    for statement in CREATE_TABLES.split(";"):  # executescript() would commit
        db.execute(statement)
    remarks = not_read(dump, paths)
    remarks += [remark for name in REQUIRED_FILES for remark in load(stage, name, files)]
    if without_race := db.execute(WITHOUT_RACE).fetchone():
        year, round = without_race
        what = f"{year}/{round} has sessions with entries, but none of type R; expected a race"
        raise LoadError(f"{files['session'].name}: {what}")
    for table, statement in FILL_LISTS.items():
        stage.rows[table] = db.execute(statement).rowcount
    for statement in CREATE_VIEWS:
        db.execute(statement)
    db.executemany("INSERT INTO status_name VALUES (?, ?)", STATUS_NAMES.items())
    for kind, table in (("circuit", "circuit"), ("constructor", "team"), ("driver", "driver")):
        sql = f"SELECT reference, api_id FROM {table} WHERE reference NOT NULL AND api_id NOT NULL"
        stage.put_ids(kind, db.execute(sql).fetchall())
    insert_statuses(stage, STATUS_TEXTS)
    if "lap" in files:
        remarks += load_laps(stage, files)
    remarks += [
        remark
        for name in OPTIONAL_FILES[1:]
        if name in files
        for remark in load(stage, name, files)
    ]
    for table, statement in FILL_RECORDS.items():
        if FILE_OF.get(table, "round") in files:
            stage.rows[table] = db.execute(statement).rowcount
    return SourceFacts(
        name="jolpica",
        address=dump.address,
        licence=LICENCE,
        checksum=dump.checksum(files.values()),
        remarks=[*remarks, *left_out(db)],
    )


def left_out(db: sqlite3.Connection) -> Iterator[str]:
    """Lines for the report about omitted rows."""
    for what, statement in LEFT_OUT.items():
        (rows,) = db.execute(statement).fetchone()
        if rows:
            yield f"left out: {what}: {rows:,}"
    if unknown := db.execute(UNKNOWN_SESSIONS).fetchall():
        types = ", ".join(f"{type} ({sessions:,})" for type, sessions in unknown)
        yield f"left out: sessions of unknown types: {types[:200]}"


def fields_of(db: sqlite3.Connection, name: str, files: dict[str, AnyPath]) -> Iterator[Field]:
    """How the columns of a file are read."""
    parents = {
        child: parent
        for _, _, parent, child, *_ in db.execute(f"PRAGMA temp.foreign_key_list({name})")
    }
    for _, column, type, not_null, _, key in db.execute(
        f"PRAGMA temp.table_info({name})"
    ).fetchall():
        if column in parents and parents[column] in files:
            ids = ids_of(db, f"temp.{parents[column]}", "id")
            parse = id_in(ids, f"an id of {files[parents[column]].name}")
        else:
            parse = PARSERS.get(name, {}).get(
                column, whole_number if type == "INTEGER" else plain_text
            )
        yield Field(column, parse, required=bool(not_null or key))


def load(stage: Stage, name: str, files: dict[str, AnyPath]) -> list[str]:
    """Loads a file into its temporary table. Returns remarks."""
    file = CsvFile(files[name], list(fields_of(stage.db, name, files)), stage.progress)
    file.insert_into(stage.db, f"temp.{name}", needs_rows=name in REQUIRED_FILES)
    return file.remarks()


def load_laps(stage: Stage, files: dict[str, AnyPath]) -> list[str]:
    """Loads the laps of races into the Stage, and into `lap` those that another table needs.
    Returns remarks.

    A temporary table of all laps would take longer than the rest of the dump.
    """
    db = stage.db
    with_stop = laps_with_stop(files, stage.progress)
    entries = "SELECT id, raceId, driverId FROM entry WHERE type = 'R'"
    in_race: dict[Value, tuple[int, int]] = {
        id: (race, driver) for id, race, driver in db.execute(entries)
    }
    file = CsvFile(files["lap"], list(fields_of(db, "lap", files)), stage.progress)
    statement = insertion("temp.lap", len(file.fields))
    needed_before = 0
    stage.insert("lap_times", LAP_TIMES, [])
    for batch in file.batches():
        ids, entry_ids, numbers, positions, times, _, fastest, _ = batch
        first = file.rows_read - len(ids) + 1
        needed = [bool(fast) or id in with_stop for id, fast in zip(ids, fastest)]
        # A fastest lap without a position is not from a list of all laps.
        listed = [
            number is not None and entry in in_race and (position is not None or not fast)
            for entry, number, position, fast in zip(entry_ids, numbers, positions, fastest)
        ]
        races_and_drivers = zip(*(in_race[entry] for entry in compress(entry_ids, listed)))
        timings = [
            *races_and_drivers,
            *(list(compress(column, listed)) for column in (numbers, positions, times)),
        ]
        listed_before = stage.rows["lap_times"]
        try:
            db.executemany(statement, compress(zip(*batch), needed))
            if any(listed):
                stage.insert("lap_times", LAP_TIMES, timings)
        except sqlite3.IntegrityError as error:
            if "lap.id" in str(error):
                row = nth_true(needed, count(db, "temp.lap") - needed_before)
                raise file.duplicate(first + row, ["id"]) from None
            row = nth_true(listed, count(db, "stage.lap_times") - listed_before)
            raise file.duplicate(first + row, ["session_entry_id", "number"]) from None
        needed_before += sum(needed)
    return [*file.remarks(), *leave_out_single_laps(stage)]


def laps_with_stop(files: dict[str, AnyPath], progress: Progress) -> set[Value]:
    """The ids of the laps that have a pit stop."""
    if "pitstop" not in files:
        return set()
    file = CsvFile(files["pitstop"], [Field("lap_id", row_id, False)], progress)
    return {id for (ids,) in file.batches() for id in ids}


def leave_out_single_laps(stage: Stage) -> list[str]:
    """Deletes the laps of races for which only each driver's fastest lap is known. Returns
    remarks.
    """
    rows = stage.db.execute(SINGLE_LAPS).rowcount
    stage.rows["lap_times"] -= rows
    return [f"left out: laps from races with only one lap per driver: {rows:,}"] if rows else []


def count(db: sqlite3.Connection, table: str) -> int:
    rows: int = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return rows


def nth_true(flags: Sequence[bool], n: int) -> int:
    """The index of the n-th True, counted from 0."""
    return [index for index, flag in enumerate(flags) if flag][n]
