"""Reads the database and reports doubts about its data, the most doubtful first: `racedata check`.

With `--against SOURCE`, the doubts are the differences from another source, which against.py finds.

A doubt is two facts that can hardly both be true: each check is a query whose rows are the doubts,
with a sentence that says what they mean. Some doubts are errors of the dump; others are history,
such as shared cars and penalties. corrections.csv is the place for errors that are proven. The
check changes nothing.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from racedata.loader.against import compare
from racedata.loader.corrections import HEADER
from racedata.loader.errors import Progress
from racedata.loader.existing import ExistingDatabase
from racedata.loader.replacement import add_database_argument, run
from racedata.loader.values import milliseconds

ROWS_SHOWN = 10


class Check(NamedTuple):
    title: str
    meaning: str  # what a row can mean, and the source of the rule if there is one
    sql: str  # the doubts, the most doubtful first; its column names head the report's columns


# What the checks read beside the tables: `named` are the rows of `results` with names instead of
# ids.
VIEWS = """
CREATE TEMP VIEW race AS SELECT raceId, year, round, year || '/' || round || ' ' || name AS race FROM races;

CREATE TEMP VIEW classified AS  -- all sessions with a result
    SELECT 'race' AS session, raceId, driverId, constructorId, number, grid, positionText, positionOrder, points, laps,
        milliseconds, statusId FROM results
    UNION ALL
    SELECT 'sprint', raceId, driverId, constructorId, number, grid, positionText, positionOrder, points, laps,
        milliseconds, statusId FROM sprint_results;

CREATE TEMP VIEW named AS
    SELECT classified.*, race, year, round, driverRef AS driver, status,
        CASE WHEN positionText GLOB '[1-9]*' THEN CAST(positionText AS INTEGER) END AS place,
        ifnull(classified.number, 'of ' || driverRef) AS car
    FROM classified JOIN race USING (raceId) JOIN drivers USING (driverId) LEFT JOIN status USING (statusId);

CREATE TEMP VIEW empty_grid_places AS  -- the last of adjacent empty places
    SELECT raceId, session, group_concat(grid - 1, ', ') AS places FROM (
        SELECT *, lag(grid, 1, 0) OVER (PARTITION BY raceId, session ORDER BY grid) AS previous FROM (
            SELECT DISTINCT raceId, session, grid FROM classified WHERE grid > 0))
    WHERE grid > previous + 1 GROUP BY raceId, session;

CREATE TEMP TABLE timed AS
    SELECT raceId, driverId, count(*) AS laps, max(lap) AS lastLap, count(time) AS times,
        sum(milliseconds(time)) AS total
    FROM lap_times GROUP BY raceId, driverId;

CREATE TEMP TABLE scored AS  -- what each driver earned for each constructor in each race, with its sprint
    SELECT raceId, driverId, constructorId, sum(points) AS points, sum(session = 'race' AND positionText = '1') AS wins
    FROM classified GROUP BY raceId, driverId, constructorId;
CREATE INDEX temp.scored_driverId ON scored (driverId, raceId);
CREATE INDEX temp.scored_constructorId ON scored (constructorId, raceId);

CREATE TEMP VIEW summed AS  -- the races with results of all rounds up to theirs: only there can sums be compared
    SELECT raceId FROM (
        SELECT raceId, min(raceId IN (SELECT raceId FROM results)) OVER (PARTITION BY year ORDER BY round) AS complete
        FROM races)
    WHERE complete;
"""

# The standings beside the sums of results: one table for drivers, one for constructors.
SUMS = """
CREATE TEMP TABLE {of}_sums AS
    SELECT race.raceId, race.year, race.round, race, {of}Ref AS {of}, positionText,
        CAST(standing.points AS REAL) AS points, standing.wins,
        ifnull(sum(scored.points), 0) AS earned, ifnull(sum(scored.wins), 0) AS won
    FROM {of}_standings AS standing JOIN race USING (raceId) JOIN {of}s USING ({of}Id)
    JOIN races AS earlier ON earlier.year = race.year AND earlier.round <= race.round
    LEFT JOIN scored ON scored.raceId = earlier.raceId AND scored.{of}Id = standing.{of}Id
    WHERE race.raceId IN (SELECT raceId FROM summed) GROUP BY standing.record;
"""

SUM_OF_POINTS = """
    SELECT race AS "first race", {who}, count(*) AS races, points AS "standings", earned AS "results",
        points - earned AS difference
    FROM {table}
    WHERE abs(points - earned) > 0.001 AND (year >= {since} OR points > earned)
    GROUP BY year, {who}, round(points - earned, 2)
    ORDER BY abs(difference) DESC, year, min(round)  -- with min(round), SQLite takes the other columns from its row
"""

WINS = """
    SELECT race, {who}, wins AS "wins in the standings", won AS "races won" FROM {table} WHERE wins <> won
    ORDER BY year, round, {who}
"""

LACKS_ROUND = """
    SELECT race, count(*) AS results FROM race JOIN results USING (raceId)
    WHERE year >= {since} AND raceId NOT IN (SELECT raceId FROM {table}) GROUP BY raceId ORDER BY year, round
"""

# The sum of a driver's lap timings, if they are complete, and the race time.
LAP_SUMS = """
    SELECT race, driver, named.milliseconds AS "race time", total AS "sum of laps",
        named.milliseconds - total AS difference
    FROM named JOIN timed USING (raceId, driverId)
    WHERE session = 'race' AND named.laps = timed.laps AND timed.laps = times AND timed.laps = lastLap
"""

CHECKS = (
    Check(
        "A driver's permanent number is not the number of the car in most races of the latest season.",
        "The dump has the number of an earlier drive, or of a stand-in. Number 1, the champion's, is no doubt. "
        "Permanent numbers exist since 2014.",
        """
        WITH cars AS (
            SELECT driverId, results.number, count(*) AS races, sum(count(*)) OVER (PARTITION BY driverId) AS total
            FROM results JOIN races USING (raceId)
            WHERE year = (SELECT max(year) FROM results JOIN races USING (raceId)) AND year >= 2014
            GROUP BY driverId, results.number)
        SELECT driverRef AS driver, drivers.number AS "permanent number", cars.number AS "car number",
            races, total AS "of"
        FROM cars JOIN drivers USING (driverId)
        WHERE cars.number NOT IN (1, drivers.number) AND races * 2 > total ORDER BY races DESC, driver
        """,
    ),
    Check(
        "A race or sprint was run, but nobody won it.",
        "The winner is missing, or has another place.",
        """
        SELECT race, session, count(*) AS drivers, min(place) AS "best place" FROM named
        GROUP BY raceId, session HAVING ifnull(min(place), 0) <> 1 ORDER BY year, round
        """,
    ),
    Check(
        "Two cars have the same place.",
        "One of the two places is wrong.",
        """
        SELECT race, session, place, group_concat(driver || ' (' || car || ')', ', ') AS "drivers (cars)" FROM named
        WHERE place IS NOT NULL GROUP BY raceId, session, place HAVING count(DISTINCT car) > 1
        ORDER BY year, round, place
        """,
    ),
    Check(
        "A place of a classification is empty.",
        "A driver is missing or has another place; or the stewards took a place from a driver and promoted nobody.",
        """
        WITH places AS (SELECT DISTINCT raceId, session, place FROM named WHERE place IS NOT NULL)
        SELECT race, session, place AS "place", place - previous - 1 AS "empty places before it" FROM (
            SELECT *, lag(place, 1, 0) OVER (PARTITION BY raceId, session ORDER BY place) AS previous FROM places)
        JOIN race USING (raceId) WHERE place > previous + 1 AND previous > 0 ORDER BY year, round
        """,
    ),
    Check(
        "Two drivers of one car have different results.",
        "If they shared the car, they have one result. If not, one of the car numbers is wrong.",
        """
        SELECT race, number AS car,
            group_concat(driver || ' ' || positionText || ' (' || laps || ' laps)', ', ') AS results
        FROM named WHERE laps > 0 AND number > 0
        GROUP BY raceId, session, number HAVING count(DISTINCT positionText) > 1 ORDER BY year DESC, round
        """,
    ),
    Check(
        "A driver has two results in one session after 1978.",
        "Before, drivers took over other drivers' cars, or entered with two. Since then, one row is too many.",
        """
        SELECT race, session, driverRef AS driver, count(*) AS rows FROM (
            SELECT session, raceId, driverId FROM classified
            UNION ALL SELECT 'qualifying', raceId, driverId FROM qualifying
            UNION ALL SELECT 'standings', raceId, driverId FROM driver_standings)
        JOIN race USING (raceId) JOIN drivers USING (driverId)
        WHERE year > 1978 GROUP BY raceId, session, driverId HAVING count(*) > 1 ORDER BY year, round
        """,
    ),
    Check(
        "A driver is classified ahead of one who drove more laps, or the same laps in less time.",
        "The laps, the time or the place is wrong; or a penalty after the race is in the time, but not in the place.",
        """
        SELECT race, session, place, driver, laps, milliseconds,
            next AS "next driver", next_laps AS laps, next_milliseconds AS milliseconds
        FROM (
            SELECT *, lead(driver) OVER results AS next, lead(laps) OVER results AS next_laps,
                lead(milliseconds) OVER results AS next_milliseconds
            FROM named WHERE place IS NOT NULL WINDOW results AS (PARTITION BY raceId, session ORDER BY place))
        WHERE next_laps > laps OR next_laps = laps AND next_milliseconds < milliseconds ORDER BY year, round, place
        """,
    ),
    Check(
        "A status says how many laps the driver is behind the winner, and the laps say otherwise.",
        "The laps or the status is wrong.",
        """
        SELECT race, session, driver, status, named.laps, winner.laps AS "winner's laps"
        FROM named JOIN (SELECT raceId, session, max(laps) AS laps FROM classified WHERE positionText = '1'
                           GROUP BY raceId, session) AS winner USING (raceId, session)
        WHERE (status GLOB '+[0-9]* Lap*' AND CAST(status AS INTEGER) <> winner.laps - named.laps)
        OR (status = 'Finished' AND named.laps <> winner.laps)
        ORDER BY named.laps > winner.laps DESC, status = 'Finished' DESC, year DESC, round, place
        """,
    ),
    Check(
        "A driver's laps are not as many as the lap timings.",
        "A timing is missing or there is one too many, or the laps are wrong.",
        """
        SELECT race, driver, named.laps, timed.laps AS timings, lastLap AS "last timed lap"
        FROM named LEFT JOIN timed USING (raceId, driverId)
        WHERE session = 'race' AND raceId IN (SELECT raceId FROM timed)
        AND (named.laps <> ifnull(timed.laps, 0) OR timed.laps <> lastLap)
        ORDER BY abs(named.laps - ifnull(timed.laps, 0)) DESC, year, round, driver
        """,
    ),
    Check(
        "The sum of a driver's lap timings is not the race time.",
        "In milliseconds. A lap timing or the race time is wrong. Differences up to 10 ms are rounding.",
        LAP_SUMS
        + """
        AND abs(difference) > 10 AND (difference % 5000 <> 0 OR difference < 0)
        ORDER BY abs(difference) DESC, year, round, driver
        """,
    ),
    Check(
        "Two cars have the same place on the grid.",
        "One of the two is wrong. If a grid place is empty, it is probably that driver's.",
        """
        SELECT race, session, grid, places AS "empty places",
            group_concat(driver || ' (qualified ' || ifnull(position, '-') || ')', ', ') AS drivers
        FROM named LEFT JOIN qualifying USING (raceId, driverId) LEFT JOIN empty_grid_places USING (raceId, session)
        WHERE grid > 0 GROUP BY raceId, session, grid HAVING count(DISTINCT car) > 1 ORDER BY year DESC, round, grid
        """,
    ),
    Check(
        "A driver starts further ahead than the qualifying allows.",
        "To gain a place on the grid, a driver needs another who had qualified ahead and starts behind, or not at all. "
        "Weekends of 2021 and 2022 with a sprint do not count: there the sprint made the grid.",
        """
        WITH starters AS (
            SELECT raceId, driverId, position, grid FROM qualifying LEFT JOIN results USING (raceId, driverId))
        SELECT race, driverRef AS driver, position AS qualified, grid, lost AS "fell behind" FROM (
            SELECT *, (SELECT count(*) FROM starters AS other WHERE other.raceId = starters.raceId
                AND other.position < starters.position
                AND (ifnull(other.grid, 0) = 0 OR other.grid > starters.grid)) AS lost FROM starters WHERE grid > 0)
        JOIN races USING (raceId) JOIN race USING (raceId) JOIN drivers USING (driverId)
        WHERE grid < position - lost AND (races.year NOT IN (2021, 2022) OR raceId NOT IN (
            SELECT raceId FROM sessions WHERE session = 'sprint'))
        ORDER BY position - lost - grid DESC, races.year, races.round
        """,
    ),
    Check(
        "A driver with a faster time in Q3 is further behind in the qualifying.",
        "The place has a grid penalty in it, or the time was taken away, or one of the two is wrong.",
        """
        WITH third AS (SELECT *, milliseconds(q3) AS time FROM qualifying WHERE q3 IS NOT NULL AND position IS NOT NULL)
        SELECT race, driverRef AS driver, third.position, third.q3, min(ahead.position) AS "slower driver's position",
            ahead.q3 AS "slower driver's Q3"
        FROM third JOIN third AS ahead USING (raceId)
        JOIN race USING (raceId) JOIN drivers ON third.driverId = drivers.driverId
        WHERE ahead.position < third.position AND ahead.time > third.time
        GROUP BY raceId, third.driverId ORDER BY year, round, third.position
        """,
    ),
    Check(
        "A driver has another car number or constructor in the qualifying or sprint than in the race.",
        "One of the two is wrong; the driver's other races tell which. Before 1979 drivers had spare cars.",
        """
        SELECT race, driver, other.session, other.number AS "car", named.number AS "car in the race",
            there.constructorRef AS constructor, here.constructorRef AS "in the race"
        FROM named JOIN (
            SELECT 'qualifying' AS session, raceId, driverId, constructorId, number FROM qualifying
            UNION ALL SELECT 'sprint', raceId, driverId, constructorId, number FROM sprint_results
        ) AS other USING (raceId, driverId)
        JOIN constructors AS here ON here.constructorId = named.constructorId
        JOIN constructors AS there ON there.constructorId = other.constructorId
        WHERE named.session = 'race' AND year > 1978
        AND (other.number <> named.number OR other.constructorId <> named.constructorId)
        ORDER BY other.constructorId <> named.constructorId, year DESC, round, driver
        """,
    ),
    Check(
        "A driver's points in the standings are not the sum of the results.",
        "Since 1991 all results count, so the two are equal. Before, a season's worst results were dropped, and the "
        "standings have at most the sum (the sporting regulations). One line per driver, season and difference.",
        SUM_OF_POINTS.format(who="driver", table="driver_sums", since=1991),
    ),
    Check(
        "A constructor's points in the standings are not the sum of the results.",
        "Since 1979 all results of all cars count (the sporting regulations), so the two are equal unless the stewards "
        "took points away. Before, only the best car in a race counted. One line per constructor and difference.",
        SUM_OF_POINTS.format(who="constructor", table="constructor_sums", since=1979),
    ),
    Check(
        "A driver's wins in the standings are not the races won.",
        "The wins or a result is wrong. A win in a shared car counts for each driver; a sprint is no win.",
        WINS.format(who="driver", table="driver_sums"),
    ),
    Check(
        "A constructor's wins in the standings are not the races won.",
        "The wins or a result is wrong.",
        WINS.format(who="constructor", table="constructor_sums"),
    ),
    Check(
        "A race was run, but there are no driver standings after it.",
        "The dump lacks a round.",
        LACKS_ROUND.format(table="driver_standings", since=1950),
    ),
    Check(
        "A race was run, but there are no constructor standings after it.",
        "The dump lacks a round. The constructors' championship exists since 1958.",
        LACKS_ROUND.format(table="constructor_standings", since=1958),
    ),
    Check(
        "A session is not before its race.",
        "A date or time is wrong; times are in UTC.",
        """
        SELECT race, CASE session WHEN 'fp1' THEN 'practice 1' WHEN 'fp2' THEN 'practice 2' WHEN 'fp3' THEN 'practice 3'
                WHEN 'sq' THEN 'sprint qualifying' WHEN 'quali' THEN 'qualifying' ELSE session END AS session,
            sessions.date || ifnull(' ' || sessions.time, '') AS "session at",
            races.date || ifnull(' ' || races.time, '') AS "race at"
        FROM sessions JOIN races USING (raceId) JOIN race USING (raceId)
        WHERE sessions.date > races.date OR (sessions.date = races.date AND sessions.time >= races.time)
        ORDER BY races.year, races.round
        """,
    ),
    Check(
        "A race is not after the one before it.",
        "A date or the order of rounds is wrong.",
        """
        SELECT race, date, previous AS "race before" FROM (
            SELECT raceId, date, lag(date) OVER (PARTITION BY year ORDER BY round) AS previous FROM races)
        JOIN race USING (raceId) WHERE date <= previous ORDER BY year, round
        """,
    ),
    Check(
        "A driver has a pit stop or a fastest lap after the last lap driven.",
        "The laps are wrong (some dumps have 0 for disqualified drivers), or the stop or lap is another driver's.",
        """
        SELECT race, driver, positionText AS place, laps, max(lap) AS "lap of the stop or fastest lap" FROM named
        JOIN (SELECT raceId, driverId, lap FROM pit_stops
              UNION ALL SELECT raceId, driverId, fastestLap FROM results) USING (raceId, driverId)
        WHERE session = 'race' AND lap > laps
        GROUP BY raceId, driverId ORDER BY max(lap) - laps DESC, year, round
        """,
    ),
    Check(
        "A driver's pit stops are not numbered 1, 2, 3, …",
        "A stop is missing.",
        """
        SELECT race, driverRef AS driver, count(*) AS stops, max(stop) AS "last stop" FROM pit_stops
        JOIN race USING (raceId) JOIN drivers USING (driverId)
        GROUP BY raceId, driverId HAVING count(*) <> max(stop) ORDER BY year, round
        """,
    ),
    Check(
        "A driver has a result, but is not in the driver standings after the race.",
        "With points, the dump is wrong. Without, these standings list drivers only from their first finish on.",
        """
        SELECT race, count(*) AS drivers, sum(points) AS points, group_concat(driver, ', ') AS "who" FROM named
        WHERE session = 'race' AND raceId IN (SELECT raceId FROM driver_standings)
        AND (raceId, driverId) NOT IN (SELECT raceId, driverId FROM driver_standings)
        GROUP BY raceId ORDER BY sum(points) DESC, year DESC, round
        """,
    ),
    Check(
        "A driver has a qualifying result, but none in the race.",
        "History, most likely: the driver withdrew after the qualifying.",
        """
        SELECT race, driverRef AS driver, position AS qualified FROM qualifying
        JOIN race USING (raceId) JOIN drivers USING (driverId)
        WHERE raceId IN (SELECT raceId FROM results)
        AND (raceId, driverId) NOT IN (SELECT raceId, driverId FROM results) ORDER BY year, round
        """,
    ),
    Check(
        "The race time is longer than the sum of the lap timings, by a multiple of five seconds.",
        "In milliseconds. History, most likely: a time penalty after the race.",
        LAP_SUMS
        + """
        AND difference > 0 AND difference % 5000 = 0 ORDER BY difference DESC, year, round, driver
        """,
    ),
    Check(
        "Drivers share a place.",
        "History: until 1961 drivers shared cars, and all drivers of a car have its place, also the first.",
        """
        SELECT race, place, number AS car, group_concat(driver, ', ') AS drivers FROM named
        WHERE place IS NOT NULL GROUP BY raceId, session, place HAVING count(*) > 1 AND count(DISTINCT car) = 1
        ORDER BY place > 1, year DESC, round, place
        """,
    ),
)


def aligned(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """The lines of a table with aligned columns."""
    cells = [
        list(heads),
        *(["-" if value is None else str(value) for value in row] for row in rows),
    ]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for row in cells:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()


def paragraph(
    title: str,
    meaning: str,
    heads: Iterable[str],
    rows: Sequence[Iterable[object]],
    rows_shown: int | None,
) -> Iterator[str]:
    """The lines for what was found. `rows_shown` limits the rows; None shows all."""
    yield f"{len(rows):,}: {title}"
    yield from wrap(meaning, 118, initial_indent="  ", subsequent_indent="  ")
    yield from aligned(heads, rows[:rows_shown])
    if rows_shown is not None and len(rows) > rows_shown:
        yield f"  and {len(rows) - rows_shown:,} more; --all shows them"
    yield ""


def report(path: Path, rows_shown: int | None) -> Iterator[str]:
    """The lines of the report: a paragraph per check that found something.

    Raises LoadError for a file that is not such a database.
    """
    with closing(ExistingDatabase(path)) as existing:
        db = existing.db
        db.create_function(
            "milliseconds", 1, lambda time: time and milliseconds(time), deterministic=True
        )
        db.executescript(VIEWS)
        for of in ("driver", "constructor"):
            db.execute(SUMS.format(of=of))
        checks, doubts = 0, 0
        for check in CHECKS:
            found = db.execute(check.sql)
            rows = found.fetchall()
            if rows:
                checks, doubts = checks + 1, doubts + len(rows)
                heads = [column[0] for column in found.description]
                yield from paragraph(check.title, check.meaning, heads, rows, rows_shown)
        yield f"{doubts:,} doubts from {checks} of {len(CHECKS)} checks; the others found nothing"


def report_against(
    path: Path, source: str, rows_shown: int | None, progress: Progress
) -> Iterator[str]:
    """The lines of the report on differences from a source: a paragraph per group. Raises what
    `compare` does.
    """
    found, remarks = compare(path, source, progress)
    for group, rows in found:
        yield from paragraph(group.title, group.meaning, ("race", HEADER), rows, rows_shown)
    yield from remarks
    yield f"{sum(len(rows) for _, rows in found):,} differences of {len(found)} kinds"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="racedata check",
        description="Report doubts about the data of a database, the most doubtful first.",
        epilog="Exit status: 0 if the database could be read, whatever was found; else 1, or 2 for wrong arguments.",
    )
    add_database_argument(parser)
    parser.add_argument(
        "--against",
        metavar="SOURCE",
        help="report instead every fact that differs in another source: one that racedata load reads, or a database",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help=f"show all that was found, not only {ROWS_SHOWN} of a kind",
    )
    parsed = parser.parse_args(arguments)
    path, rows_shown = Path(parsed.database), None if parsed.all else ROWS_SHOWN

    def work(progress: Progress) -> list[str]:
        if parsed.against is None:
            return list(report(path, rows_shown))
        return list(report_against(path, parsed.against, rows_shown, progress))

    run("check", parsed.database, work, replaces=False)
