"""Checks of the standings: each is computed from the results, by the rule of its season.

The rules are those of the sporting regulations: how many of a season's best results counted, and
what a constructor earned for a place.
"""

import sqlite3

from racedata.loader.checks.check import Check

TO_THE_LAST = 99  # the number of a round that no season reaches

# Seasons (first, last), rounds of them (first, last), and how many results of those rounds count.
# For drivers until 1990, and for constructors until 1978; after that, all results count.
BEST_RESULTS = (
    (1950, 1953, 1, TO_THE_LAST, 4),
    (1954, 1957, 1, TO_THE_LAST, 5),
    (1958, 1958, 1, TO_THE_LAST, 6),
    (1959, 1959, 1, TO_THE_LAST, 5),
    (1960, 1960, 1, TO_THE_LAST, 6),
    (1961, 1962, 1, TO_THE_LAST, 5),
    (1963, 1965, 1, TO_THE_LAST, 6),
    (1966, 1966, 1, TO_THE_LAST, 5),
    (1967, 1967, 1, 6, 5),
    (1967, 1967, 7, TO_THE_LAST, 4),
    (1968, 1968, 1, 6, 5),
    (1968, 1968, 7, TO_THE_LAST, 5),
    (1969, 1969, 1, 6, 5),
    (1969, 1969, 7, TO_THE_LAST, 4),
    (1970, 1970, 1, 7, 6),
    (1970, 1970, 8, TO_THE_LAST, 5),
    (1971, 1971, 1, 6, 5),
    (1971, 1971, 7, TO_THE_LAST, 4),
    (1972, 1972, 1, 6, 5),
    (1972, 1972, 7, TO_THE_LAST, 5),
    (1973, 1974, 1, 8, 7),
    (1973, 1974, 9, TO_THE_LAST, 6),
    (1975, 1975, 1, 7, 6),
    (1975, 1975, 8, TO_THE_LAST, 6),
    (1976, 1976, 1, 8, 7),
    (1976, 1976, 9, TO_THE_LAST, 7),
    (1977, 1977, 1, 9, 8),
    (1977, 1977, 10, TO_THE_LAST, 7),
    (1978, 1978, 1, 8, 7),
    (1978, 1978, 9, TO_THE_LAST, 7),
    (1979, 1979, 1, 7, 4),
    (1979, 1979, 8, TO_THE_LAST, 4),
    (1980, 1980, 1, 7, 5),
    (1980, 1980, 8, TO_THE_LAST, 5),
    (1981, 1990, 1, TO_THE_LAST, 11),
)
# Until this season, only a constructor's best car in a race counted.
LAST_SEASON_OF_THE_BEST_CAR = 1978
# Seasons (first, last) in which a constructor's points for a place were not the driver's: the
# driver's point for the fastest lap did not count, and in 1961 only drivers had 9 for a win.
POINTS_OF_CONSTRUCTORS = (
    (1958, 1959, (8, 6, 4, 3, 2)),
    (1961, 1961, (8, 6, 4, 3, 2, 1)),
)

TABLES = f"""
CREATE TEMP TABLE best_results (of, first, last, first_round, last_round, counted);
CREATE TEMP TABLE points_of_constructors (first, last, place, points);

CREATE TEMP VIEW driver_points AS  -- what each driver earned in each race, with its sprint
    SELECT raceId, driverId, sum(points) AS points,
        sum(session = 'race' AND positionText = '1') AS wins
    FROM classified GROUP BY raceId, driverId;

CREATE TEMP VIEW constructor_points AS
    SELECT raceId, constructorId,
        iif(year > {LAST_SEASON_OF_THE_BEST_CAR}, sum(points), max(points)) AS points,
        sum(session = 'race' AND positionText = '1') AS wins
    FROM (
        SELECT raceId, constructorId, session, year, positionText, CASE
            WHEN of_driver = 0 OR rule.first IS NULL THEN of_driver
            ELSE ifnull((SELECT points FROM points_of_constructors AS scale
                         WHERE scale.first = rule.first AND scale.place = named.place), 0)
            END AS points
        FROM (SELECT *, CAST(points AS REAL) AS of_driver FROM named) AS named
        LEFT JOIN (SELECT DISTINCT first, last FROM points_of_constructors) AS rule
            ON year BETWEEN rule.first AND rule.last)
    GROUP BY raceId, constructorId;

-- races up to which every round has results: only there can sums be compared
CREATE TEMP VIEW summed AS
    SELECT raceId FROM (
        SELECT raceId, min(raceId IN (SELECT raceId FROM results))
            OVER (PARTITION BY year ORDER BY round) AS complete
        FROM races)
    WHERE complete;
"""

# The standings and the results that count: one table for drivers, one for constructors.
SUMS = """
CREATE TEMP TABLE {of}_earned AS SELECT * FROM {of}_points;
CREATE INDEX temp.{of}_earned_id ON {of}_earned ({of}Id, raceId);
CREATE TEMP TABLE {of}_sums AS
    SELECT race.raceId, race.year, race.round, race, {of}Ref AS {of}, position, positionText,
        CAST(standing.points AS REAL) AS points, standing.wins,
        ifnull(round(sum(so_far.points), 2), 0) AS earned, ifnull(won, 0) AS won
    FROM {of}_standings AS standing JOIN race USING (raceId) JOIN {of}s USING ({of}Id)
    LEFT JOIN (
        SELECT record, sum(wins) AS won,
            sum(points) FILTER (WHERE counted IS NULL OR nth <= counted) AS points
        FROM (
            SELECT record, scored.points, scored.wins, counted, row_number() OVER (
                PARTITION BY record, first_round ORDER BY scored.points DESC) AS nth
            FROM {of}_standings AS standing JOIN races AS latest ON latest.raceId = standing.raceId
            JOIN {of}_earned AS scored ON scored.{of}Id = standing.{of}Id
            JOIN races AS earlier ON earlier.raceId = scored.raceId
                AND earlier.year = latest.year AND earlier.round <= latest.round
            LEFT JOIN best_results AS rule ON of = '{of}' AND latest.year BETWEEN first AND last
                AND earlier.round BETWEEN first_round AND last_round)
        GROUP BY record) AS so_far USING (record)
    WHERE race.raceId IN (SELECT raceId FROM summed) GROUP BY record;
"""

POINTS = """
    SELECT race AS "first race", {of}, count(*) AS races, points AS "standings",
        earned AS "results", round(points - earned, 2) AS difference
    FROM {of}_sums WHERE abs(points - earned) > 0.001
    GROUP BY year, {of}, round(points - earned, 2)
    -- with min(round), SQLite takes the other columns from its row
    ORDER BY abs(points - earned) DESC, year, min(round)
"""

WINS = """
    SELECT race, {of}, wins AS "wins in the standings", won AS "races won" FROM {of}_sums
    WHERE wins <> won ORDER BY year, round, {of}
"""

# Pairs of neighbours in the standings in which the one behind has more points.
PLACES = """
    SELECT race, {of}, position, points, next AS "next {of}", next_points AS points FROM (
        SELECT *, lead({of}) OVER places AS next, lead(points) OVER places AS next_points
        FROM {of}_sums WHERE positionText GLOB '[1-9]*'
        WINDOW places AS (PARTITION BY raceId ORDER BY position, points DESC))
    WHERE next_points > points ORDER BY year, round, position
"""

LACKS_ROUND = """
    SELECT race, count(*) AS results FROM race JOIN results USING (raceId)
    WHERE year >= {since} AND raceId NOT IN (SELECT raceId FROM {of}_standings)
    GROUP BY raceId ORDER BY year, round
"""

CHECKS = (
    Check(
        "A driver's points in the standings are not the sum of the results that count.",
        "The season's rules apply: until 1990, only a driver's best results counted. "
        "Either a result or the standings are wrong. One line per driver, season and difference.",
        "driver_sums",
        POINTS.format(of="driver"),
    ),
    Check(
        "A constructor's points in the standings are not the sum of the results that count.",
        "The season's rules apply: until 1978, only a constructor's best car in each race "
        "counted. Either a result or the standings are wrong, or the stewards took points away. "
        "One line per constructor, season and difference.",
        "constructor_sums",
        POINTS.format(of="constructor"),
    ),
    Check(
        "A driver with fewer points is ahead in the standings.",
        "The place or the points are wrong.",
        "driver_sums",
        PLACES.format(of="driver"),
    ),
    Check(
        "A constructor with fewer points is ahead in the standings.",
        "The place or the points are wrong.",
        "constructor_sums",
        PLACES.format(of="constructor"),
    ),
    Check(
        "A driver's number of wins in the standings differs from the number of races won.",
        "The wins or a result is wrong. A win in a shared car counts for each driver; a sprint "
        "does not count as a win.",
        "driver_sums",
        WINS.format(of="driver"),
    ),
    Check(
        "A constructor's number of wins in the standings differs from the number of races won.",
        "The wins or a result is wrong.",
        "constructor_sums",
        WINS.format(of="constructor"),
    ),
    Check(
        "A race was run, but there are no driver standings after it.",
        "The dump lacks a round.",
        "(SELECT DISTINCT raceId FROM results)",
        LACKS_ROUND.format(of="driver", since=1950),
    ),
    Check(
        "A race was run, but there are no constructor standings after it.",
        "The dump lacks a round. The constructors' championship began in 1958.",
        "(SELECT DISTINCT raceId FROM results JOIN races USING (raceId) WHERE year >= 1958)",
        LACKS_ROUND.format(of="constructor", since=1958),
    ),
    Check(
        "A driver has a result, but is not in the driver standings after the race.",
        "If the driver has points, the dump is wrong. If not, these standings list drivers only "
        "from their first finish on.",
        "named WHERE session = 'race' AND raceId IN (SELECT raceId FROM driver_standings)",
        """
        SELECT race, count(*) AS drivers, sum(points) AS points,
            group_concat(driver, ', ') AS "who"
        FROM named
        WHERE session = 'race' AND raceId IN (SELECT raceId FROM driver_standings)
            AND (raceId, driverId) NOT IN (SELECT raceId, driverId FROM driver_standings)
        GROUP BY raceId ORDER BY sum(points) DESC, year DESC, round
        """,
        is_history=True,
    ),
)


def fill(db: sqlite3.Connection) -> None:
    """Creates the tables that the checks above read."""
    db.executescript(TABLES)
    for of in ("driver", "constructor"):
        rules = [
            (of, *rule)
            for rule in BEST_RESULTS
            if of == "driver" or rule[1] <= LAST_SEASON_OF_THE_BEST_CAR
        ]
        db.executemany("INSERT INTO best_results VALUES (?, ?, ?, ?, ?, ?)", rules)
    db.executemany(
        "INSERT INTO points_of_constructors VALUES (?, ?, ?, ?)",
        [
            (first, last, place, points)
            for first, last, scale in POINTS_OF_CONSTRUCTORS
            for place, points in enumerate(scale, 1)
        ],
    )
    for of in ("driver", "constructor"):
        db.executescript(SUMS.format(of=of))
