-- The files of Ergast's dump, as ergast_files.py writes them: a query for each. See sections.py.

-- [circuits]

SELECT circuitId, circuitRef, name, location, country, lat, lng, alt, url FROM circuits;

-- [constructor_results]

SELECT row_number() OVER (ORDER BY year, round, constructorId) AS constructorResultsId,
    raceId, constructorId,
    printf('%.10g', iif(year < 1979, max(CAST(points AS REAL)), sum(CAST(points AS REAL)))
        + ifnull((SELECT sum(CAST(points AS REAL)) FROM sprint_results AS sprint
                  WHERE sprint.raceId = results.raceId
                      AND sprint.constructorId = results.constructorId), 0)) AS points,
    iif((raceId, constructorId) IN (
        SELECT raceId, constructorId FROM constructor_standings WHERE positionText = 'E'
    ), 'D', NULL) AS status
FROM results JOIN races USING (raceId)
WHERE raceId IN (SELECT raceId FROM constructor_standings)
GROUP BY raceId, constructorId ORDER BY 1;

-- [constructor_standings]

SELECT constructorStandingsId, raceId, constructorId, points, position, positionText, wins
FROM constructor_standings ORDER BY constructorStandingsId;

-- [constructors]

SELECT constructorId, constructorRef, name, nationality, url FROM constructors;

-- [driver_standings]

SELECT driverStandingsId, raceId, driverId, points, position, positionText, wins
FROM driver_standings ORDER BY driverStandingsId;

-- [drivers]

SELECT driverId, driverRef, number, code, forename, surname, dob, nationality, url
FROM drivers;

-- [lap_times]

SELECT raceId, driverId, lap, position, time, milliseconds(time) AS milliseconds
FROM lap_times ORDER BY raceId, record;

-- [pit_stops]

SELECT raceId, driverId, stop, lap, time, clock(milliseconds) AS duration, milliseconds
FROM pit_stops ORDER BY raceId, record;

-- [qualifying]

SELECT qualifyId, raceId, driverId, constructorId, number, position, q1, q2, q3
FROM qualifying ORDER BY qualifyId;

-- [races] The session that sets the sprint's grid is in the columns of the second practice.

SELECT races.raceId, year, round, circuitId, name, races.date, races.time, url,
    fp1.date AS fp1_date, fp1.time AS fp1_time, second.date AS fp2_date, second.time AS fp2_time,
    fp3.date AS fp3_date, fp3.time AS fp3_time, quali.date AS quali_date, quali.time AS quali_time,
    sprint.date AS sprint_date, sprint.time AS sprint_time
FROM races
    LEFT JOIN sessions AS fp1 ON fp1.raceId = races.raceId AND fp1.session = 'fp1'
    LEFT JOIN sessions AS second ON second.raceId = races.raceId AND second.session = (
        SELECT min(session) FROM sessions
        WHERE sessions.raceId = races.raceId AND session IN ('fp2', 'sq'))
    LEFT JOIN sessions AS fp3 ON fp3.raceId = races.raceId AND fp3.session = 'fp3'
    LEFT JOIN sessions AS quali ON quali.raceId = races.raceId AND quali.session = 'quali'
    LEFT JOIN sessions AS sprint ON sprint.raceId = races.raceId AND sprint.session = 'sprint'
ORDER BY races.raceId;

-- [results] `first` is the time of the first row that has one: with min(record), SQLite takes it from
-- that row.

SELECT resultId, raceId, driverId, constructorId, number, grid,
    iif(positionText GLOB '[0-9]*', CAST(positionText AS INTEGER), NULL) AS position, positionText,
    positionOrder, points, laps, finish_time(milliseconds, first) AS time, milliseconds,
    fastestLap, rank, fastestLapTime, fastestLapSpeed, statusId
FROM results LEFT JOIN (
    SELECT raceId, milliseconds AS first, min(record) FROM results WHERE milliseconds NOT NULL
    GROUP BY raceId) USING (raceId)
ORDER BY resultId;

-- [seasons]

SELECT year, url FROM seasons;

-- [sprint_results] As in results.

SELECT resultId, raceId, driverId, constructorId, number, grid,
    iif(positionText GLOB '[0-9]*', CAST(positionText AS INTEGER), NULL) AS position, positionText,
    positionOrder, points, laps, finish_time(milliseconds, first) AS time, milliseconds,
    fastestLap, fastestLapTime, statusId, rank
FROM sprint_results LEFT JOIN (
    SELECT raceId, milliseconds AS first, min(record) FROM sprint_results WHERE milliseconds NOT NULL
    GROUP BY raceId) USING (raceId)
ORDER BY resultId;

-- [status]

SELECT statusId, status FROM status;
