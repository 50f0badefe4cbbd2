"""Reads the CSV release of f1db into a Stage: one file per table, linked by ids such as
`max-verstappen`.

As in jolpica.py, the files become temporary tables, and statements of SQL turn those into the
tables of the Stage. Columns are found by name; other columns and files are ignored. What the
project knows of ids is in f1db_ids.csv: each row is an id that does not follow the rules below. If
several rows fit a result, the first one counts. Errors of other sources do not belong there:
fill.py gives a car the constructor of the results that count.
"""

import csv
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from racedata.loader.errors import LoadError
from racedata.loader.files.archives import Dump, files_of
from racedata.loader.files.csvfile import AnyPath, CsvFile, Field
from racedata.loader.sources.statuses import insert_statuses
from racedata.loader.sql import insertion
from racedata.loader.stage import SourceFacts, Stage
from racedata.values import (
    Parser,
    day,
    from_one,
    hour_and_minute,
    hyphenated_id,
    key_in,
    number,
    one_of,
    plain_text,
    points,
    position_or_reason,
    round_number,
    row_id,
    short_lap_time,
    whole_number,
    year,
)

RECOGNISED_BY = "f1db-races.csv"
LICENCE = "CC BY 4.0"
IDS = Path(__file__).with_name("f1db_ids.csv")
KNOWN_UNTIL = 2025  # the last season whose ids were compared with Ergast's
MAX_IDS = 50_000  # in a file; a limit of memory, far above what any release needs

RACE_COLUMNS = """
    raceId INTEGER NOT NULL REFERENCES f1db_races, positionDisplayOrder INTEGER NOT NULL,
    positionNumber INTEGER,
    positionText TEXT NOT NULL"""
DRIVER_COLUMN = "driverId INTEGER NOT NULL REFERENCES f1db_drivers"
CONSTRUCTOR_COLUMN = (
    "constructorId INTEGER NOT NULL REFERENCES f1db_constructors, engineManufacturerId TEXT"
)
ENTRY_COLUMNS = f"{RACE_COLUMNS}, driverNumber INTEGER, {DRIVER_COLUMN}, {CONSTRUCTOR_COLUMN}"
RESULT_COLUMNS = f"""
    {ENTRY_COLUMNS}, sharedCar TEXT, laps INTEGER, timeMillis INTEGER, gapLaps INTEGER,
    reasonRetired TEXT, points TEXT, gridPositionNumber INTEGER,
    UNIQUE (raceId, driverId, driverNumber)"""
QUALIFYING_COLUMNS = f"{ENTRY_COLUMNS}, time TEXT, q1 TEXT, q2 TEXT, q3 TEXT"
PRACTICE_COLUMNS = f"{ENTRY_COLUMNS}, laps INTEGER, timeMillis INTEGER, UNIQUE (raceId, driverId)"
# The sessions of a race, and the names of their dates and times.
SESSION_PREFIXES = {
    "fp1": "freePractice1",
    "fp2": "freePractice2",
    "fp3": "freePractice3",
    "quali": "qualifying",
    "sprint": "sprintRace",
    "sq": "sprintQualifying",
}
# The files, with the columns of their temporary tables, in the order of loading: each comes after
# those that it refers to. An id that is a text becomes the number of its row. An empty field is
# NULL.
FILES = {
    "countries": "id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, demonym TEXT",
    "grands_prix": "id TEXT NOT NULL UNIQUE, fullName TEXT NOT NULL",
    "circuits": """id TEXT NOT NULL UNIQUE, fullName TEXT NOT NULL, placeName TEXT,
        countryId INTEGER REFERENCES f1db_countries, latitude TEXT, longitude TEXT""",
    "constructors": """id TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
        countryId INTEGER REFERENCES f1db_countries""",
    "drivers": """id TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
        firstName TEXT NOT NULL, lastName TEXT NOT NULL, abbreviation TEXT,
        permanentNumber INTEGER, dateOfBirth TEXT,
        nationalityCountryId INTEGER REFERENCES f1db_countries""",
    "races": f"""id INTEGER PRIMARY KEY, year INTEGER NOT NULL, round INTEGER NOT NULL,
        date TEXT NOT NULL, time TEXT,
        grandPrixId INTEGER NOT NULL REFERENCES f1db_grands_prix,
        circuitId INTEGER NOT NULL REFERENCES f1db_circuits,
        {"".join(f"{name}Date TEXT, {name}Time TEXT, " for name in SESSION_PREFIXES.values())}
        UNIQUE (year, round)""",
    "races_race_results": RESULT_COLUMNS,
    "races_starting_grid_positions": f"""raceId INTEGER NOT NULL REFERENCES f1db_races,
        positionNumber INTEGER, driverNumber INTEGER, {DRIVER_COLUMN},
        UNIQUE (raceId, driverId, driverNumber)""",
    "races_sprint_race_results": RESULT_COLUMNS,
    "races_qualifying_results": QUALIFYING_COLUMNS,
    "races_sprint_qualifying_results": QUALIFYING_COLUMNS,
    **{f"races_free_practice_{n}_results": PRACTICE_COLUMNS for n in (1, 2, 3, 4)},
    "races_fastest_laps": f"""{RACE_COLUMNS}, driverNumber INTEGER, {DRIVER_COLUMN}, lap INTEGER,
        time TEXT,
        UNIQUE (raceId, driverId)""",
    "races_pit_stops": f"""{RACE_COLUMNS}, {DRIVER_COLUMN}, stop INTEGER NOT NULL, lap INTEGER,
        timeMillis INTEGER,
        UNIQUE (raceId, driverId, stop)""",
    "races_driver_standings": f"""{RACE_COLUMNS}, {DRIVER_COLUMN}, points TEXT,
        UNIQUE (raceId, driverId)""",
    "races_constructor_standings": f"""{RACE_COLUMNS}, {CONSTRUCTOR_COLUMN}, points TEXT,
        UNIQUE (raceId, constructorId, engineManufacturerId)""",
}
# Files that need at least one row: without it, a release would be of no use.
REQUIRED_FILES = (
    "countries",
    "grands_prix",
    "circuits",
    "constructors",
    "drivers",
    "races",
    "races_race_results",
)

# Parsers for columns other than whole numbers and plain text.
PARSERS: dict[str, Parser] = {
    "id": hyphenated_id,
    "engineManufacturerId": hyphenated_id,
    "positionText": position_or_reason,
    "sharedCar": one_of(("true", "false")),
    "points": points,
    "timeMillis": row_id,  # like ids, the values seldom repeat
    "stop": from_one,
    "dateOfBirth": day,
    "latitude": number,
    "longitude": number,
    **dict.fromkeys(("time", "q1", "q2", "q3"), short_lap_time),
}
RACE_PARSERS: dict[str, Parser] = {
    "year": year,
    "round": round_number,
    "date": day,
    "time": hour_and_minute,
    **{f"{name}Date": day for name in SESSION_PREFIXES.values()},
    **{f"{name}Time": hour_and_minute for name in SESSION_PREFIXES.values()},
}

# In a qualifying, a driver who was disqualified may have a second row that says only that, as in
# 2023/10.
UNIQUE_IN_QUALIFYING = (
    "CREATE UNIQUE INDEX temp.{0}_driver ON {0} (raceId, driverId) WHERE positionText <> 'DSQ'"
)
SECOND_ROWS = """
    DELETE FROM temp.{0} AS f1db WHERE positionText = 'DSQ' AND EXISTS (
        SELECT 1 FROM {0} AS other
        WHERE other.raceId = f1db.raceId AND other.driverId = f1db.driverId
            AND other.positionText <> 'DSQ')"""

# Ergast's names of countries and nationalities.
ERGASTS_NAMES = {
    "name": {
        "South Korea": "Korea",
        "United Arab Emirates": "UAE",
        "United Kingdom": "UK",
        "United States of America": "USA",
    },
    "demonym": {"Monégasque": "Monegasque"},
}

IdRule = Mapping[str, str]  # a row of f1db_ids.csv
# Its columns that a row of a result must fit, if they are not empty.
CONDITIONS = ("engine", "first_year", "last_year", "first_round", "last_round", "driver")

# Rows of f1db_ids.csv, and after them one for each constructor. Unknown years, rounds, engines and
# drivers fit all.
CREATE_RULES = """
    CREATE TEMP TABLE f1db_rules (
        id INTEGER NOT NULL, priority INTEGER NOT NULL, engine TEXT,
        first_year INTEGER, last_year INTEGER, first_round INTEGER, last_round INTEGER,
        driver INTEGER, constructorId INTEGER NOT NULL,
        PRIMARY KEY (id, priority)) WITHOUT ROWID"""

# For a shared car, only the first driver's row has its laps and time.
SHARED_CARS = """
    UPDATE temp.f1db_races_race_results AS f1db
    SET laps = car.laps, timeMillis = car.timeMillis, gapLaps = car.gapLaps,
        reasonRetired = car.reasonRetired
    FROM (SELECT * FROM f1db_races_race_results WHERE sharedCar = 'false') AS car
    WHERE unlikely(f1db.sharedCar = 'true') AND f1db.laps IS NULL AND f1db.raceId = car.raceId
        AND f1db.driverNumber = car.driverNumber AND f1db.positionText = car.positionText"""

# The places on the grid that the results have are sometimes those before a penalty, or the last
# place for a start from the pit lane.
STARTING_GRID = """
    UPDATE temp.f1db_races_race_results AS f1db SET gridPositionNumber = grid.positionNumber
    FROM f1db_races_starting_grid_positions AS grid
    WHERE f1db.gridPositionNumber NOT NULL AND grid.raceId = f1db.raceId
        AND grid.driverId = f1db.driverId AND grid.driverNumber = f1db.driverNumber"""

# Drivers whose codes are those of the timing, which has shown codes since about 2005. f1db has
# abbreviations of all drivers, many of them alike.
CODED = "CREATE TEMP VIEW f1db_coded AS " + " UNION ".join(
    f"SELECT driverId FROM f1db_{file} AS f1db JOIN f1db_races ON f1db_races.id = f1db.raceId "
    "WHERE year >= 2005"
    for file in ("races_race_results", *(f"races_free_practice_{n}_results" for n in (1, 2, 3, 4)))
)

# Statements that fill the tables of the Stage, by table. `f1db` is a row of a file.

FILL_LISTS = {
    "seasons": "INSERT INTO stage.seasons (year) SELECT DISTINCT year FROM f1db_races",
    "circuits": """
        INSERT INTO stage.circuits (circuitId, circuitRef, name, location, country, lat, lng)
        SELECT f1db.rowid, circuit_reference(f1db.id), fullName, placeName, country.name,
            latitude, longitude
        FROM f1db_circuits AS f1db
        LEFT JOIN f1db_countries AS country ON country.rowid = countryId""",
    "drivers": """
        INSERT INTO stage.drivers (
            driverId, driverRef, number, code, forename, surname, dob, nationality)
        SELECT f1db.rowid, driver_reference(f1db.id), permanentNumber,
            iif(f1db.rowid IN (SELECT driverId FROM f1db_coded), abbreviation, NULL),
            iif(is_usual, rtrim(substr(f1db.name, 1, length(f1db.name) - length(lastName))),
                firstName),
            iif(is_usual, substr(f1db.name, -length(lastName)), lastName), dateOfBirth, demonym
        -- The name is the usual one: Jak Crawford, whose first name is Carlton; Andrea de Cesaris.
        FROM (SELECT rowid, *, name LIKE '_% ' || lastName AS is_usual FROM f1db_drivers) AS f1db
        LEFT JOIN f1db_countries AS country ON country.rowid = nationalityCountryId""",
    "races": """
        INSERT INTO stage.races (raceId, year, round, circuitId, name, date, time)
        SELECT f1db.id, year, round, circuitId, fullName, date, time
        FROM f1db_races AS f1db
        JOIN f1db_grands_prix AS grand_prix ON grand_prix.rowid = grandPrixId""",
    "sessions": "INSERT INTO stage.sessions (raceId, session, date, time)"
    + " UNION ALL ".join(
        f"""
        SELECT id, '{session}', {name}Date, {name}Time FROM f1db_races
        WHERE coalesce({name}Date, {name}Time) NOT NULL"""
        for session, name in SESSION_PREFIXES.items()
    ),
}

CONSTRUCTOR = """
    (SELECT rule.constructorId FROM f1db_rules AS rule
     WHERE rule.id = f1db.constructorId
         AND ifnull(engine, engineManufacturerId) IS engineManufacturerId
         AND year BETWEEN ifnull(first_year, year) AND ifnull(last_year, year)
         AND round BETWEEN ifnull(first_round, round) AND ifnull(last_round, round)
         AND (driver IS NULL OR driver = {driver})
     ORDER BY priority LIMIT 1)"""
CONSTRUCTOR_OF_DRIVER = CONSTRUCTOR.format(driver="f1db.driverId")

POSITION_TEXT = """
    CASE WHEN positionNumber NOT NULL THEN positionNumber
        ELSE CASE positionText
            WHEN 'DNF' THEN 'R' WHEN 'NC' THEN 'N' WHEN 'DSQ' THEN 'D' WHEN 'EX' THEN 'E'
            WHEN 'DNS' THEN 'W'
            WHEN 'DNQ' THEN 'F' WHEN 'DNPQ' THEN 'F' WHEN 'DNP' THEN 'F' END END"""
STATUS = """
    CASE positionText
        WHEN 'DSQ' THEN 'Disqualified' WHEN 'EX' THEN 'Excluded' WHEN 'NC' THEN 'Not classified'
        WHEN 'DNQ' THEN 'Did not qualify' WHEN 'DNPQ' THEN 'Did not prequalify'
        ELSE coalesce(
            CASE gapLaps WHEN 0 THEN NULL WHEN 1 THEN '+1 Lap' ELSE '+' || gapLaps || ' Laps' END,
            reasonRetired,
            CASE positionText
                WHEN 'DNF' THEN 'Retired' WHEN 'DNS' THEN 'Did not start' WHEN 'DNP' THEN 'Withdrew'
                ELSE 'Finished' END) END"""
# New ones are numbered in the order of races, then of sprints.
STATUS_TEXTS = f"""
    SELECT {STATUS}, rowid FROM f1db_races_race_results UNION ALL
    SELECT {STATUS}, 1000000 + rowid FROM f1db_races_sprint_race_results"""

# A driver who did not take part drove no laps. For others without laps, the number is unknown.
RESULTS_SQL = f"""
    INSERT INTO stage.{{table}} (
        resultId, raceId, driverId, constructorId, number, grid, positionText, positionOrder,
        points, laps, milliseconds, statusId)
    SELECT f1db.rowid, raceId, driverId, {CONSTRUCTOR_OF_DRIVER}, driverNumber,
        ifnull(gridPositionNumber, 0),
        {POSITION_TEXT}, positionDisplayOrder, ifnull(points, '0'),
        CASE WHEN positionText IN ('DNS', 'DNQ', 'DNPQ', 'DNP', 'EX') THEN ifnull(laps, 0)
            ELSE laps END,
        timeMillis, statusId
    FROM f1db_{{file}} AS f1db JOIN stage.races USING (raceId)
        LEFT JOIN stage.status ON status = {STATUS} COLLATE NOCASE"""
# A driver may have two rows, of shared cars: the number says which of them has the fastest lap. A
# row without a time may still have a place: in 2025/21, the first.
FASTEST_LAPS = """
    UPDATE stage.results SET (rank, fastestLap, fastestLapTime) = (
        SELECT ifnull(positionNumber, positionDisplayOrder), lap, time
        FROM f1db_races_fastest_laps AS f1db
        WHERE f1db.raceId = results.raceId AND f1db.driverId = results.driverId AND time NOT NULL)
    WHERE resultId IN (SELECT resultId FROM (
        SELECT resultId, row_number() OVER (
            PARTITION BY raceId, driverId ORDER BY number IS driverNumber DESC, positionOrder) AS n
        FROM stage.results JOIN f1db_races_fastest_laps USING (raceId, driverId)) WHERE n = 1)"""
QUALIFYING_SQL = f"""
    INSERT INTO stage.{{table}} (
        {{id}}, raceId, driverId, constructorId, number, position, q1, q2, q3)
    SELECT f1db.rowid, raceId, driverId, {CONSTRUCTOR_OF_DRIVER}, driverNumber,
        {{position}}, {{q1}}, q2, q3
    FROM f1db_{{file}} AS f1db JOIN stage.races USING (raceId)"""
PRACTICE = """
    INSERT INTO stage.practice (
        raceId, session, driverId, constructorId, number, position, laps, milliseconds)""" + (
    " UNION ALL ".join(
        f"""
        SELECT raceId, {n}, driverId, {CONSTRUCTOR_OF_DRIVER}, driverNumber, positionNumber,
            laps, timeMillis
        FROM f1db_races_free_practice_{n}_results AS f1db JOIN stage.races USING (raceId)"""
        for n in (1, 2, 3, 4)
    )
)
FILL_STANDINGS = (
    # The first race of each driver or constructor in a season, and the first classified finish.
    """CREATE TEMP TABLE f1db_{of}_seasons AS
           SELECT year, {of}Id, min(round) AS first,
               min(round) FILTER (WHERE positionText GLOB '[0-9]*') AS classified
           FROM stage.results JOIN stage.races USING (raceId) WHERE {counts}
           GROUP BY year, {of}Id""",
    "CREATE INDEX temp.f1db_{of}_seasons_year ON f1db_{of}_seasons (year)",
    """CREATE TEMP TABLE f1db_{of}_wins (
           year, id, round, PRIMARY KEY (year, id, round)) WITHOUT ROWID""",
    """INSERT INTO f1db_{of}_wins
           SELECT DISTINCT year, {of}Id, round FROM stage.results JOIN stage.races USING (raceId)
           WHERE positionText = '1' AND {counts}""",
    """CREATE TEMP TABLE f1db_{of}_listed (
           raceId, id, year, round, points, place, position, text,
           PRIMARY KEY (raceId, id)) WITHOUT ROWID""",
    # Constructors with several engines are one in Ergast's lists. The sum of their points then
    # decides all places.
    f"""INSERT INTO f1db_{{of}}_listed
            SELECT raceId, id, year, round, printf('%.10g', points), iif(is_summed, nth, place),
                iif(is_summed, rank, position), iif(is_summed AND text = position, rank, text)
            FROM (
                SELECT *, max(rows) OVER (PARTITION BY raceId) > 1 AS is_summed,
                    row_number() OVER (PARTITION BY raceId ORDER BY points DESC, place) AS nth,
                    rank() OVER (PARTITION BY raceId ORDER BY points DESC, position) AS rank
                FROM (
                    SELECT raceId, {{id}} AS id, year, round, sum(points) AS points,
                        min(positionDisplayOrder) AS place,
                        ifnull(positionNumber, positionDisplayOrder) AS position,
                        {POSITION_TEXT} AS text,
                        count(*) AS rows
                    FROM f1db_races_{{of}}_standings AS f1db JOIN stage.races USING (raceId)
                    GROUP BY raceId, 2))""",
    # f1db lists the drivers with points, and since 2000 also those who were classified. Ergast
    # lists all with a result in the season so far. Drivers missing from f1db share a place if they
    # were classified; otherwise they have none.
    """INSERT OR IGNORE INTO f1db_{of}_listed
           SELECT raceId, {of}Id, year, round, '0', next,
               CASE WHEN classified <= round THEN next END,
               CASE WHEN classified <= round THEN next ELSE '-' END
           FROM (SELECT raceId, year, round, max(place) + 1 AS next
                 FROM f1db_{of}_listed GROUP BY raceId)
               JOIN f1db_{of}_seasons USING (year)
           WHERE first <= round""",
    """INSERT INTO stage.{of}_standings (
               {of}StandingsId, raceId, {of}Id, points, position, positionText, wins)
           SELECT row_number() OVER (ORDER BY year, round, place), raceId, id, points, position,
               text, (SELECT count(*) FROM f1db_{of}_wins AS won
               WHERE won.year = listed.year AND won.id = listed.id AND won.round <= listed.round)
           FROM f1db_{of}_listed AS listed""",
)

FILL_RECORDS = {
    "results": RESULTS_SQL.format(table="results", file="races_race_results"),
    "sprint_results": RESULTS_SQL.format(table="sprint_results", file="races_sprint_race_results"),
    # Before 2006, the only time is in the column `time`.
    "qualifying": QUALIFYING_SQL.format(
        table="qualifying",
        id="qualifyId",
        file="races_qualifying_results",
        position="positionDisplayOrder",
        q1="ifnull(q1, f1db.time)",
    ),
    "sprint_qualifying": QUALIFYING_SQL.format(
        table="sprint_qualifying",
        id="sprintQualifyId",
        file="races_sprint_qualifying_results",
        position="positionNumber",
        q1="q1",
    ),
    "practice": PRACTICE,
    "pit_stops": """
        INSERT INTO stage.pit_stops (raceId, driverId, stop, lap, milliseconds)
        SELECT raceId, driverId, stop, lap, timeMillis FROM f1db_races_pit_stops""",
}
# The expression for the id in a row of a file of standings, and for the races that count.
STANDINGS_OF = {
    "driver": ("driverId", "TRUE"),
    # The 500 miles of Indianapolis did not count for constructors.
    "constructor": (CONSTRUCTOR.format(driver="NULL"), "name <> 'Indianapolis 500'"),
}

RESULTS_OF_DRIVERS = """
    SELECT f1db_drivers.id, count(year) FROM f1db_drivers
        LEFT JOIN f1db_races_race_results AS f1db ON driverId = f1db_drivers.rowid
        LEFT JOIN f1db_races ON f1db_races.id = raceId AND year <= ?
    GROUP BY f1db_drivers.rowid ORDER BY 2 DESC, 1"""
CONSTRUCTORS = """
    SELECT f1db.id, f1db.rowid, f1db.name, demonym
    FROM f1db_constructors AS f1db
    LEFT JOIN f1db_countries AS country ON country.rowid = countryId"""
INSERT_CONSTRUCTOR = """
    INSERT INTO stage.constructors (constructorId, constructorRef, name, nationality)
    VALUES (?, ?, ?, ?)"""
# Circuits, constructors and drivers that first appear after the seasons of f1db_ids.csv.
NEW = """
    SELECT {of}Ref FROM stage.{of}s WHERE {of}Id IN (
        SELECT id FROM ({seen}) JOIN stage.races USING (raceId) GROUP BY id HAVING min(year) > ?)
    ORDER BY 1"""
SEEN = {
    "circuit": "SELECT circuitId AS id, raceId FROM stage.races",
    "constructor": "SELECT constructorId AS id, raceId FROM stage.results",
    "driver": """SELECT driverId AS id, raceId FROM stage.results
        UNION ALL SELECT driverId, raceId FROM stage.practice""",
}


def read(dump: Dump, stage: Stage) -> SourceFacts:
    """Fills the stage from the files of a release. Raises LoadError."""
    db = stage.db
    paths = {name: dump.folder / file_name(f"f1db_{name}") for name in FILES}
    files = files_of(dump, paths, list(FILES))
    for name, columns in FILES.items():
        table = f"f1db_{name}"
        db.execute(f"CREATE TEMP TABLE {table} ({columns})")
        if columns is QUALIFYING_COLUMNS:
            db.execute(UNIQUE_IN_QUALIFYING.format(table))
        load(stage, table, files[name], needs_rows=name in REQUIRED_FILES)
        if columns is QUALIFYING_COLUMNS:
            db.execute(SECOND_ROWS.format(table))
    db.execute(SHARED_CARS)
    db.execute(STARTING_GRID)
    db.execute(CODED)
    for column, names in ERGASTS_NAMES.items():
        db.executemany(
            f"UPDATE f1db_countries SET {column} = ? WHERE {column} = ?",
            [(b, a) for a, b in names.items()],
        )
    with IDS.open(newline="", encoding="utf-8") as file:
        rules = list(csv.DictReader(file))
    add_references(stage, rules)
    for table, statement in FILL_LISTS.items():
        stage.rows[table] = db.execute(statement).rowcount
    fill_constructors(stage, rules)
    insert_statuses(stage, STATUS_TEXTS)
    for table, statement in FILL_RECORDS.items():
        stage.rows[table] = db.execute(statement).rowcount
    db.execute(FASTEST_LAPS)
    for of, (id, counts) in STANDINGS_OF.items():
        for statement in FILL_STANDINGS:
            filled = db.execute(statement.format(of=of, id=id, counts=counts))
        stage.rows[f"{of}_standings"] = filled.rowcount  # the last statement's
    return SourceFacts(
        name="f1db",
        address=dump.address,
        licence=LICENCE,
        checksum=dump.checksum(files.values()),
        remarks=list(remarks(db, rules)),
    )


def file_name(table: str) -> str:
    """The name of the file of a temporary table."""
    return f"{table.replace('_', '-')}.csv"


def fields_of(db: sqlite3.Connection, table: str) -> Iterator[Field]:
    """How the columns of a file are read."""
    parents = {
        child: parent
        for _, _, parent, child, *_ in db.execute(f"PRAGMA temp.foreign_key_list({table})")
    }
    parsers = RACE_PARSERS if table == "f1db_races" else PARSERS
    for _, column, type, not_null, _, key in db.execute(
        f"PRAGMA temp.table_info({table})"
    ).fetchall():
        if column in parents:
            parse = key_in(
                rows_by_id(db, parents[column]), f"an id of {file_name(parents[column])}"
            )
        else:
            parse = parsers.get(column, whole_number if type == "INTEGER" else plain_text)
        yield Field(column, parse, required=bool(not_null or key))


def rows_by_id(db: sqlite3.Connection, table: str) -> dict[str, int]:
    """The numbers of the rows of a file. Raises LoadError if they are very many."""
    rows = dict(db.execute(f"SELECT CAST(id AS TEXT), rowid FROM temp.{table} LIMIT {MAX_IDS + 1}"))
    if len(rows) > MAX_IDS:
        raise LoadError(f"{file_name(table)}: more than {MAX_IDS:,} rows; expected fewer")
    return rows


def load(stage: Stage, table: str, path: AnyPath, needs_rows: bool) -> None:
    """Loads a file into its temporary table."""
    # A release has all columns. One that is absent is one that f1db has renamed.
    file = CsvFile(path, list(fields_of(stage.db, table)), stage.progress, needs_all_columns=True)
    file.insert_into(stage.db, f"temp.{table}", needs_rows)


def by_rule(id: str) -> str:
    """The reference of an id that is not in f1db_ids.csv: the same words."""
    return id.replace("-", "_")


def circuit_references(db: sqlite3.Connection, rules: Iterable[IdRule]) -> dict[str, str]:
    """The references of all circuits, by id."""
    listed = {rule["id"]: rule["reference"] for rule in rules if rule["kind"] == "circuit"}
    ids = [id for (id,) in db.execute("SELECT id FROM f1db_circuits ORDER BY rowid")]
    return distinct("f1db_circuits", {id: listed.get(id, by_rule(id)) for id in ids})


def add_references(stage: Stage, rules: Sequence[IdRule]) -> None:
    """Adds the SQL functions that give references of circuits and drivers, and notes the ids."""
    for kind, references in (
        ("circuit", circuit_references(stage.db, rules)),
        ("driver", driver_references(stage.db, rules)),
    ):
        stage.db.create_function(f"{kind}_reference", 1, references.get, deterministic=True)
        stage.put_ids(kind, [(reference, id) for id, reference in references.items()])


def driver_references(db: sqlite3.Connection, rules: Iterable[IdRule]) -> dict[str, str]:
    """The references of all drivers, by id: the last word if Ergast named them, else all words.

    If two would have the same, the one with more results has it.
    """
    references = {rule["id"]: rule["reference"] for rule in rules if rule["kind"] == "driver"}
    used = {reference.lower() for reference in references.values()}
    found = db.execute(RESULTS_OF_DRIVERS, [KNOWN_UNTIL]).fetchall()
    for id, results in found:
        last = id.rpartition("-")[2]
        if id not in references:
            references[id] = last if results and last not in used else by_rule(id)
            used.add(references[id])
    return distinct("f1db_drivers", {id: references[id] for id, _ in found})


def distinct(table: str, references: dict[str, str]) -> dict[str, str]:
    """The same references. Raises LoadError if two ids have the same."""
    ids: dict[str, str] = {}
    for id, reference in references.items():
        if ids.setdefault(reference.lower(), id) != id:
            both = f"{ids[reference.lower()]!r} and {id!r}"
            raise LoadError(
                f"{file_name(table)}, column id: "
                f"{both} would both have the reference {reference}; expected different ones"
            )
    return references


def fill_constructors(stage: Stage, rules: Iterable[IdRule]) -> None:
    """Inserts the constructors, and the rules that say which of them a result has."""
    db = stage.db
    names = {rule["reference"]: rule["name"] for rule in rules if rule["name"]}
    drivers = rows_by_id(db, "f1db_drivers")
    constructors = {id: facts for id, *facts in db.execute(CONSTRUCTORS)}
    listed, others = rules_of_constructors(rules, constructors, drivers)
    numbers: dict[str, int] = {}
    # First the constructors that always have a reference, then those that have it only sometimes.
    for rule in [*others, *listed]:
        reference = rule["reference"]
        if reference not in numbers:
            numbers[reference] = len(numbers) + 1
            _, name, nationality = constructors[rule["id"]]
            row = (numbers[reference], reference, names.get(reference, name), nationality)
            db.execute(INSERT_CONSTRUCTOR, row)
    stage.rows["constructors"] = len(numbers)
    stage.put_ids("constructor", [(rule["reference"], rule["id"]) for rule in [*others, *listed]])
    db.execute(CREATE_RULES)
    for priority, rule in enumerate([*listed, *others]):
        engine, *seasons_and_rounds, driver = (rule[condition] or None for condition in CONDITIONS)
        constructor, number = constructors[rule["id"]][0], numbers[rule["reference"]]
        values = (constructor, priority, engine, *seasons_and_rounds, drivers.get(driver or ""))
        db.execute(insertion("f1db_rules", len(values) + 1), (*values, number))


def rules_of_constructors(
    rules: Iterable[IdRule], constructors: Collection[str], drivers: Collection[str]
) -> tuple[list[IdRule], list[IdRule]]:
    """The rules that fit the release; and a rule without conditions for each other constructor."""
    listed = [
        rule
        for rule in rules
        if rule["kind"] == "constructor"
        and rule["id"] in constructors
        and (not rule["driver"] or rule["driver"] in drivers)
    ]
    always = {rule["id"] for rule in listed if not any(rule[condition] for condition in CONDITIONS)}
    others: list[IdRule] = [
        {"id": id, "reference": by_rule(id), **dict.fromkeys(CONDITIONS, "")}
        for id in constructors
        if id not in always
    ]
    return listed, others


def remarks(db: sqlite3.Connection, rules: Iterable[IdRule]) -> Iterator[str]:
    """Reports ids that f1db_ids.csv does not know, whose reference is a guess."""
    listed = {rule["reference"] for rule in rules}
    for of, seen in SEEN.items():
        new = [
            reference for (reference,) in db.execute(NEW.format(of=of, seen=seen), [KNOWN_UNTIL])
        ]
        if names := ", ".join(reference for reference in new if reference not in listed):
            yield f"new {of}s, with ids made from f1db's own: {names[:200]}"
