-- The database: every table and index, and what one row of each is. The loader runs this file to make a new
-- database; the service takes one only if it has the two numbers below. Columns bear the dump's own names.
-- Belongs here: tables, indexes, what a row is. Not here: queries (database.py), what the wire shows (serializers.py).
--
-- Behind SQLite's last page, where SQLite does not look, the loader appends the SHA-256 of all bytes before it (32
-- bytes): by them the service knows at start that the file is as it was built.

PRAGMA application_id = 0x52414345;  -- "RACE": tells this file from every other SQLite file
PRAGMA user_version = 1;             -- the schema version: raise it with any change below

-- Where and when the file was built; one row.
CREATE TABLE build (
    source         TEXT NOT NULL,  -- folder, zip or URL, as it was given to the loader
    sourceChecksum TEXT NOT NULL,  -- SHA-256, in hexadecimal, of the dump's files as they were read
    builtAt        TEXT NOT NULL   -- UTC, YYYY-MM-DDTHH:MM:SSZ
) STRICT;

-- How many rows each of the tables below has; one row to each table.
CREATE TABLE row_counts (
    name TEXT PRIMARY KEY,
    rows INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE circuits (
    circuitId  INTEGER PRIMARY KEY,
    circuitRef TEXT NOT NULL UNIQUE,  -- `circuitId` on the wire
    name       TEXT NOT NULL,
    location   TEXT,                  -- `locality` on the wire
    country    TEXT,
    lat        TEXT,                  -- degrees, in the dump's own digits
    lng        TEXT,
    url        TEXT
) STRICT;

CREATE TABLE constructors (
    constructorId  INTEGER PRIMARY KEY,
    constructorRef TEXT NOT NULL UNIQUE,  -- `constructorId` on the wire
    name           TEXT NOT NULL,
    nationality    TEXT,
    url            TEXT
) STRICT;

CREATE TABLE drivers (
    driverId    INTEGER PRIMARY KEY,
    driverRef   TEXT NOT NULL UNIQUE,  -- `driverId` on the wire
    number      INTEGER,               -- the permanent one, since 2014
    code        TEXT,
    forename    TEXT NOT NULL,
    surname     TEXT NOT NULL,
    dob         TEXT,                  -- YYYY-MM-DD
    nationality TEXT,
    url         TEXT
) STRICT;

-- How a driver finished: `Finished`, `+1 Lap`, `Engine`, …
CREATE TABLE status (
    statusId INTEGER PRIMARY KEY,
    status   TEXT NOT NULL
) STRICT;

-- One race weekend. Dates are YYYY-MM-DD, times HH:MM:SS in UTC.
CREATE TABLE races (
    raceId      INTEGER PRIMARY KEY,
    year        INTEGER NOT NULL,
    round       INTEGER NOT NULL,
    circuitId   INTEGER NOT NULL REFERENCES circuits,
    name        TEXT NOT NULL,
    date        TEXT NOT NULL,
    time        TEXT,
    url         TEXT,
    fp1_date    TEXT,
    fp1_time    TEXT,
    fp2_date    TEXT,  -- from 2023, on a sprint weekend: the session that sets the sprint's grid
    fp2_time    TEXT,
    fp3_date    TEXT,
    fp3_time    TEXT,
    quali_date  TEXT,
    quali_time  TEXT,
    sprint_date TEXT,
    sprint_time TEXT,
    UNIQUE (year, round)
) STRICT;

-- One driver in one race's classification. A driver may stand twice in it (shared cars, 1950 to 1978).
CREATE TABLE results (
    resultId        INTEGER PRIMARY KEY,
    raceId          INTEGER NOT NULL REFERENCES races,
    driverId        INTEGER NOT NULL REFERENCES drivers,
    constructorId   INTEGER NOT NULL REFERENCES constructors,
    number          INTEGER,           -- of the car
    grid            INTEGER NOT NULL,
    positionText    TEXT NOT NULL,     -- `1`, `R` retired, `D` disqualified, …
    positionOrder   INTEGER NOT NULL,
    points          TEXT NOT NULL,     -- `25`, `12.5`; never `25.0`
    laps            INTEGER NOT NULL,
    milliseconds    INTEGER,           -- race time
    fastestLap      INTEGER,           -- the lap it was driven in
    rank            INTEGER,           -- of the fastest lap; 0 where there is none
    fastestLapTime  TEXT,              -- M:SS.mmm
    fastestLapSpeed TEXT,              -- km/h, in the dump's own digits
    statusId        INTEGER NOT NULL REFERENCES status
) STRICT;
CREATE INDEX results_of_race ON results (raceId, positionOrder, resultId);

-- One driver in one sprint's classification.
CREATE TABLE sprint_results (
    resultId       INTEGER PRIMARY KEY,
    raceId         INTEGER NOT NULL REFERENCES races,
    driverId       INTEGER NOT NULL REFERENCES drivers,
    constructorId  INTEGER NOT NULL REFERENCES constructors,
    number         INTEGER,
    grid           INTEGER NOT NULL,
    positionText   TEXT NOT NULL,
    positionOrder  INTEGER NOT NULL,
    points         TEXT NOT NULL,
    laps           INTEGER NOT NULL,
    milliseconds   INTEGER,
    fastestLap     INTEGER,
    rank           INTEGER,
    fastestLapTime TEXT,
    statusId       INTEGER NOT NULL REFERENCES status
) STRICT;
CREATE INDEX sprint_results_of_race ON sprint_results (raceId, positionOrder, resultId);

-- One driver in one race's qualifying. Times are M:SS.mmm.
CREATE TABLE qualifying (
    qualifyId     INTEGER PRIMARY KEY,
    raceId        INTEGER NOT NULL REFERENCES races,
    driverId      INTEGER NOT NULL REFERENCES drivers,
    constructorId INTEGER NOT NULL REFERENCES constructors,
    number        INTEGER,
    position      INTEGER,
    q1            TEXT,
    q2            TEXT,
    q3            TEXT
) STRICT;
CREATE INDEX qualifying_of_race ON qualifying (raceId, position, qualifyId);

-- One driver's lap. `record` counts a race's timings from 0, by lap, then position: a page of them is a
-- range of the primary key, which costs the same wherever in the race it begins.
CREATE TABLE lap_times (
    raceId   INTEGER NOT NULL REFERENCES races,
    record   INTEGER NOT NULL,
    driverId INTEGER NOT NULL REFERENCES drivers,
    lap      INTEGER NOT NULL,
    position INTEGER,
    time     TEXT,  -- M:SS.mmm
    PRIMARY KEY (raceId, record)
) STRICT, WITHOUT ROWID;
