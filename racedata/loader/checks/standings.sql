-- Checks of the standings: each is computed from the results, by the rule of its season.
-- The rules are those of the sporting regulations: how many of a season's best results counted, and
-- what a constructor earned for a place.

-- Seasons, rounds of them, and how many results of those rounds count. For drivers until 1990, and
-- for constructors until 1978; after that, all results count. No season reaches round 99.
CREATE TEMP TABLE best_results (first, last, first_round, last_round, counted);
INSERT INTO best_results VALUES
    (1950, 1953, 1, 99, 4),
    (1954, 1957, 1, 99, 5),
    (1958, 1958, 1, 99, 6),
    (1959, 1959, 1, 99, 5),
    (1960, 1960, 1, 99, 6),
    (1961, 1962, 1, 99, 5),
    (1963, 1965, 1, 99, 6),
    (1966, 1966, 1, 99, 5),
    (1967, 1967, 1, 6, 5),
    (1967, 1967, 7, 99, 4),
    (1968, 1968, 1, 6, 5),
    (1968, 1968, 7, 99, 5),
    (1969, 1969, 1, 6, 5),
    (1969, 1969, 7, 99, 4),
    (1970, 1970, 1, 7, 6),
    (1970, 1970, 8, 99, 5),
    (1971, 1971, 1, 6, 5),
    (1971, 1971, 7, 99, 4),
    (1972, 1972, 1, 6, 5),
    (1972, 1972, 7, 99, 5),
    (1973, 1974, 1, 8, 7),
    (1973, 1974, 9, 99, 6),
    (1975, 1975, 1, 7, 6),
    (1975, 1975, 8, 99, 6),
    (1976, 1976, 1, 8, 7),
    (1976, 1976, 9, 99, 7),
    (1977, 1977, 1, 9, 8),
    (1977, 1977, 10, 99, 7),
    (1978, 1978, 1, 8, 7),
    (1978, 1978, 9, 99, 7),
    (1979, 1979, 1, 7, 4),
    (1979, 1979, 8, 99, 4),
    (1980, 1980, 1, 7, 5),
    (1980, 1980, 8, 99, 5),
    (1981, 1990, 1, 99, 11);

-- Seasons in which a constructor's points for a place were not the driver's: the driver's point for
-- the fastest lap did not count, and in 1961 only drivers had 9 for a win.
CREATE TEMP TABLE points_of_constructors (first, last, place, points);
INSERT INTO points_of_constructors VALUES
    (1958, 1959, 1, 8), (1958, 1959, 2, 6), (1958, 1959, 3, 4),
    (1958, 1959, 4, 3), (1958, 1959, 5, 2),
    (1961, 1961, 1, 8), (1961, 1961, 2, 6), (1961, 1961, 3, 4),
    (1961, 1961, 4, 3), (1961, 1961, 5, 2), (1961, 1961, 6, 1);

-- What each driver and constructor earned in each race, with its sprint; `of` says which. Until
-- 1978, only a constructor's best car in a race counted. `places` has five bits for how often each
-- of the places 1 to 12 was reached, the first place in the highest.
CREATE TEMP TABLE earned AS
SELECT 'driver' AS of, driverId AS id, raceId, sum(points) AS points,
    sum(session = 'race' AND positionText = '1') AS wins, sum(place_bit) AS places
FROM (SELECT *, iif(session = 'race' AND place <= 12, 1 << 5 * (12 - place), 0) AS place_bit
      FROM named)
GROUP BY raceId, driverId
UNION ALL
SELECT 'constructor', constructorId, raceId, iif(year > 1978, sum(points), max(points)),
    sum(session = 'race' AND positionText = '1'), sum(place_bit)
FROM (
    SELECT raceId, constructorId, session, year, positionText,
        iif(session = 'race' AND place <= 12, 1 << 5 * (12 - place), 0) AS place_bit, CASE
        WHEN of_driver = 0 OR rule.first IS NULL THEN of_driver
        ELSE ifnull((SELECT points FROM points_of_constructors AS scale
                     WHERE scale.first = rule.first AND scale.place = named.place), 0)
        END AS points
    FROM (SELECT *, CAST(points AS REAL) AS of_driver FROM named) AS named
    LEFT JOIN (SELECT DISTINCT first, last FROM points_of_constructors) AS rule
        ON year BETWEEN rule.first AND rule.last)
GROUP BY raceId, constructorId;
CREATE INDEX temp.earned_id ON earned (of, id, raceId);

-- Races up to which every round has results: only there can sums be compared.
CREATE TEMP VIEW summed AS
SELECT raceId FROM (
    SELECT raceId, min(raceId IN (SELECT raceId FROM results))
        OVER (PARTITION BY year ORDER BY round) AS complete
    FROM races)
WHERE complete;

CREATE TEMP TABLE standing AS
SELECT 'driver' AS of, record, raceId, driverId AS id, driverRef AS name, position, positionText,
    CAST(points AS REAL) AS points, wins
FROM driver_standings JOIN drivers USING (driverId)
UNION ALL
SELECT 'constructor', record, raceId, constructorId, constructorRef, position, positionText,
    CAST(points AS REAL), wins
FROM constructor_standings JOIN constructors USING (constructorId);

-- The standings, and the sum of the results that count.
CREATE TEMP TABLE sums AS
SELECT of, race, raceId, year, round, name, position, positionText, points, standing.wins,
    ifnull(round(sum_of_points, 2), 0) AS earned, ifnull(won, 0) AS won, ifnull(places, 0) AS places
FROM standing JOIN race USING (raceId)
LEFT JOIN (
    SELECT of, record, sum(wins) AS won, sum(places) AS places,
        sum(points) FILTER (WHERE counted IS NULL OR nth <= counted) AS sum_of_points
    FROM (
        SELECT of, record, scored.points, scored.wins, places, counted, row_number() OVER (
            PARTITION BY of, record, first_round ORDER BY scored.points DESC) AS nth
        FROM standing JOIN races AS latest USING (raceId)
        JOIN earned AS scored USING (of, id)
        JOIN races AS earlier ON earlier.raceId = scored.raceId
            AND earlier.year = latest.year AND earlier.round <= latest.round
        LEFT JOIN best_results AS rule ON latest.year BETWEEN first AND last
            AND earlier.round BETWEEN first_round AND last_round
            AND (of = 'driver' OR latest.year <= 1978))
    GROUP BY of, record) USING (of, record)
WHERE raceId IN (SELECT raceId FROM summed);

-- The standings, and what the next driver or constructor in them has.
CREATE TEMP VIEW neighbours AS
SELECT *, lead(name) OVER standing AS next, lead(points) OVER standing AS next_points,
    lead(position) OVER standing AS next_position, lead(places) OVER standing AS next_places
FROM sums WHERE positionText GLOB '[1-9]*'
WINDOW standing AS (PARTITION BY of, raceId ORDER BY position, points DESC);

-- A driver's points in the standings are not the sum of the results that count.
-- The season's rules apply: until 1990, only a driver's best results counted. Either a result or
-- the standings are wrong. One line per driver, season and difference.
-- rows: sums WHERE of = 'driver'
SELECT race AS "first race", name AS driver, count(*) AS races, points AS "standings",
    earned AS "results", round(points - earned, 2) AS difference
FROM sums WHERE of = 'driver' AND abs(points - earned) > 0.001
GROUP BY year, name, round(points - earned, 2)
-- with min(round), SQLite takes the other columns from its row
ORDER BY abs(points - earned) DESC, year, min(round);

-- A constructor's points in the standings are not the sum of the results that count.
-- The season's rules apply: until 1978, only a constructor's best car in each race counted. Either
-- a result or the standings are wrong, or the stewards took points away. One line per constructor,
-- season and difference.
-- rows: sums WHERE of = 'constructor'
SELECT race AS "first race", name AS constructor, count(*) AS races, points AS "standings",
    earned AS "results", round(points - earned, 2) AS difference
FROM sums WHERE of = 'constructor' AND abs(points - earned) > 0.001
GROUP BY year, name, round(points - earned, 2)
-- with min(round), SQLite takes the other columns from its row
ORDER BY abs(points - earned) DESC, year, min(round);

-- A driver or constructor is in the standings, but has no result in the season so far.
-- The row is one too many, or a result has another driver or constructor. One line per season.
-- rows: standing WHERE raceId IN (SELECT raceId FROM summed)
SELECT race AS "first race", of, name, count(*) AS races, points
FROM standing JOIN race AS latest USING (raceId)
WHERE raceId IN (SELECT raceId FROM summed) AND NOT EXISTS (
    SELECT 1 FROM earned JOIN races AS earlier USING (raceId)
    WHERE earned.of = standing.of AND earned.id = standing.id
        AND earlier.year = latest.year AND earlier.round <= latest.round)
GROUP BY year, of, name
-- with min(round), SQLite takes the other columns from its row
ORDER BY year, min(round), name;

-- A driver with fewer points is ahead in the standings.
-- The place or the points are wrong.
-- rows: sums WHERE of = 'driver'
SELECT race, name AS driver, position, points, next AS "next driver", next_points AS points
FROM neighbours WHERE of = 'driver' AND next_points > points ORDER BY year, round, position;

-- A constructor with fewer points is ahead in the standings.
-- The place or the points are wrong.
-- rows: sums WHERE of = 'constructor'
SELECT race, name AS constructor, position, points, next AS "next constructor",
    next_points AS points
FROM neighbours WHERE of = 'constructor' AND next_points > points ORDER BY year, round, position;

-- A driver or constructor is ahead of another with as many points and better places.
-- Of those with equal points, who has more wins is ahead, then who has more second places, and so
-- on. The places in the standings or in a result are wrong.
-- rows: sums WHERE positionText GLOB '[1-9]*'
SELECT race, of, name, position, next AS "with better places", next_position AS position, points
FROM neighbours WHERE next_points = points AND next_position > position AND next_places > places
ORDER BY year, round, of, position;

-- A driver's number of wins in the standings differs from the number of races won.
-- The wins or a result is wrong. A win in a shared car counts for each driver; a sprint does not
-- count as a win.
-- rows: sums WHERE of = 'driver'
SELECT race, name AS driver, wins AS "wins in the standings", won AS "races won" FROM sums
WHERE of = 'driver' AND wins <> won ORDER BY year, round, name;

-- A constructor's number of wins in the standings differs from the number of races won.
-- The wins or a result is wrong.
-- rows: sums WHERE of = 'constructor'
SELECT race, name AS constructor, wins AS "wins in the standings", won AS "races won" FROM sums
WHERE of = 'constructor' AND wins <> won ORDER BY year, round, name;

-- A race was run, but there are no driver standings after it.
-- The dump lacks a round.
-- rows: (SELECT DISTINCT raceId FROM results)
SELECT race, count(*) AS results FROM race JOIN results USING (raceId)
WHERE raceId NOT IN (SELECT raceId FROM driver_standings)
GROUP BY raceId ORDER BY year, round;

-- A race was run, but there are no constructor standings after it.
-- The dump lacks a round. The constructors' championship began in 1958.
-- rows: (SELECT DISTINCT raceId FROM results JOIN races USING (raceId) WHERE year >= 1958)
SELECT race, count(*) AS results FROM race JOIN results USING (raceId)
WHERE year >= 1958 AND raceId NOT IN (SELECT raceId FROM constructor_standings)
GROUP BY raceId ORDER BY year, round;

-- A driver has a result, but is not in the driver standings after the race.
-- If the driver has points, the dump is wrong. If not, these standings list drivers only from
-- their first finish on.
-- rows: named WHERE session = 'race' AND raceId IN (SELECT raceId FROM driver_standings)
-- history
SELECT race, count(*) AS drivers, sum(points) AS points,
    group_concat(driver, ', ') AS "who"
FROM named
WHERE session = 'race' AND raceId IN (SELECT raceId FROM driver_standings)
    AND (raceId, driverId) NOT IN (SELECT raceId, driverId FROM driver_standings)
GROUP BY raceId ORDER BY sum(points) DESC, year DESC, round;
