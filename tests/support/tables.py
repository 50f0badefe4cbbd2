"""A dump as SQLite tables, read from its CSV files without racedata, for tests to compare answers with.

The views have the column names of FastF1's tables, and join all that a filter can speak of.
"""

import csv
import sqlite3
import unicodedata
from pathlib import Path

VIEWS = """
CREATE VIEW circuit AS SELECT circuitId AS circuit, circuitRef AS circuitId, url AS circuitUrl, name AS circuitName,
    lat, lng AS long, location AS locality, country FROM circuits;

CREATE VIEW race AS SELECT raceId, year AS season, round, races.url AS raceUrl, races.name AS raceName,
    date AS raceDate, time AS raceTime, fp1_date AS fp1Date, fp1_time AS fp1Time, quali_date AS qualifyingDate,
    quali_time AS qualifyingTime, sprint_date AS sprintDate, circuit.*, seasons.url AS seasonUrl
    FROM races JOIN circuit ON circuit = races.circuitId JOIN seasons USING (year);

CREATE VIEW driver AS SELECT driverId AS driver, driverRef AS driverId, number AS driverNumber, code AS driverCode,
    url AS driverUrl, forename AS givenName, surname AS familyName, dob AS dateOfBirth, nationality AS driverNationality
    FROM drivers;

CREATE VIEW constructor AS SELECT constructorId AS constructor, constructorRef AS constructorId,
    url AS constructorUrl, name AS constructorName, nationality AS constructorNationality FROM constructors;

-- A row of results. A race that is still ahead, or that the dump has no results of, is one row without a driver.
CREATE VIEW entry AS SELECT race.*, driver.*, constructor.*, results.resultId, results.number,
    positionOrder AS position, CAST(positionText AS TEXT) AS positionText, positionOrder, points, grid, laps,
    statusId, status.status, milliseconds AS totalRaceTimeMillis, rank,
    iif(rank = 0, NULL, fastestLap) AS fastestLapNumber, iif(fastestLap, nullif(rank, 0), NULL) AS fastestLapRank,
    iif(rank = 0, NULL, milliseconds(fastestLapTime)) AS fastestLapTime
    FROM race LEFT JOIN results USING (raceId) LEFT JOIN driver ON driver = results.driverId
    LEFT JOIN constructor ON constructor = results.constructorId LEFT JOIN status USING (statusId);

CREATE VIEW sprint AS SELECT race.*, driver.*, constructor.*, resultId, sprint_results.number,
    positionOrder AS position, CAST(positionText AS TEXT) AS positionText, positionOrder, points, grid, laps,
    status.status, milliseconds AS totalRaceTimeMillis, fastestLap AS fastestLapNumber
    FROM race JOIN sprint_results USING (raceId) JOIN driver ON driver = sprint_results.driverId
    JOIN constructor ON constructor = sprint_results.constructorId JOIN status USING (statusId);

-- With the grid, place, rank and status of the same driver in the race.
CREATE VIEW qualified AS SELECT race.*, driver.*, constructor.*, qualifyId, qualifying.number, qualifying.position,
    milliseconds(q1) AS Q1, milliseconds(q2) AS Q2, milliseconds(q3) AS Q3, results.grid, results.rank,
    status.status, results.positionText AS result
    FROM race JOIN qualifying USING (raceId) JOIN driver ON driver = qualifying.driverId
    JOIN constructor ON constructor = qualifying.constructorId
    LEFT JOIN results ON (results.raceId, results.driverId) = (race.raceId, driver) LEFT JOIN status USING (statusId);

CREATE VIEW timing AS SELECT race.*, driver.*, lap AS number, position, milliseconds(lap_times.time) AS time
    FROM race JOIN lap_times USING (raceId) JOIN driver ON driver = lap_times.driverId;

CREATE VIEW stop AS SELECT race.*, driver.*, lap, stop, pit_stops.time, milliseconds AS duration
    FROM race JOIN pit_stops USING (raceId) JOIN driver ON driver = pit_stops.driverId;

-- `latest`: after the latest race of the season with standings; `finished`: and that was its last race.
CREATE VIEW driver_standing AS SELECT race.*, driver.*, driverStandingsId AS id, position,
    CAST(positionText AS TEXT) AS positionText, points, wins,
    round = (SELECT max(round) FROM races JOIN driver_standings USING (raceId) WHERE year = season) AS latest,
    round = (SELECT max(round) FROM races WHERE year = season) AS finished,
    (SELECT group_concat(constructorRef) FROM (SELECT constructorRef FROM results JOIN races USING (raceId)
        JOIN constructors USING (constructorId) WHERE driverId = driver AND year = season AND races.round <= race.round
        GROUP BY constructorRef ORDER BY min(races.round * 1000000 + resultId))) AS constructorIds
    FROM race JOIN driver_standings USING (raceId) JOIN driver ON driver = driver_standings.driverId;

CREATE VIEW constructor_standing AS SELECT race.*, constructor.*, constructorStandingsId AS id, position,
    CAST(positionText AS TEXT) AS positionText, points, wins,
    round = (SELECT max(round) FROM races JOIN constructor_standings USING (raceId) WHERE year = season) AS latest,
    round = (SELECT max(round) FROM races WHERE year = season) AS finished
    FROM race JOIN constructor_standings USING (raceId)
    JOIN constructor ON constructor = constructor_standings.constructorId;
"""


class Tables:
    """The files of a dump in `folder`, a table each."""

    def __init__(self, folder: Path) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.row_factory = sqlite3.Row
        self.database.create_function("milliseconds", 1, milliseconds, deterministic=True)
        self.database.create_function("plain", 1, plain, deterministic=True)
        for file in folder.glob("*.csv"):
            with file.open(newline="", encoding="utf-8") as lines:
                names, *rows = csv.reader(lines)
            self.database.execute(f"CREATE TABLE {file.stem} ({', '.join(f'{name} NUMERIC' for name in names)})")
            places = ", ".join("?" * len(names))
            # Rows can be shorter than the header.
            values = [[None if value in ("", r"\N") else value.strip() for value in row] for row in rows]
            filled = [row + [None] * (len(names) - len(row)) for row in values]
            self.database.executemany(f"INSERT INTO {file.stem} VALUES ({places})", filled)
        for table in ("results", "qualifying", "driver_standings", "races"):
            key = "year" if table == "races" else "raceId, driverId"
            self.database.execute(f"CREATE INDEX {table}_key ON {table} ({key})")
        self.database.executescript(VIEWS)

    def close(self) -> None:
        self.database.close()

    def rows(self, query: str) -> list[dict[str, object]]:
        """The rows that a query finds, by name."""
        return [dict(row) for row in self.database.execute(query)]

    def value(self, query: str) -> object:
        """The one value that a query finds."""
        [[value]] = self.database.execute(query).fetchall()
        return value


def milliseconds(text: str | None) -> int | None:
    """The milliseconds of a time such as `1:28.289`."""
    if text is None:
        return None
    minutes, _, seconds = str(text).rpartition(":")
    return int(minutes or 0) * 60_000 + round(float(seconds) * 1000)


def plain(name: str) -> str:
    """A name without letter case and accents."""
    decomposed = unicodedata.normalize("NFKD", name).lower()
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))
