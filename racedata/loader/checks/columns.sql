-- Checks of columns that a whole race lacks.

-- How many values each column has in each race, and in how many races of the season it has any.
CREATE TEMP TABLE filled AS
SELECT *, count(*) OVER season AS races, sum(filled > 0) OVER season AS filled_races FROM (
    SELECT kind, name, raceId, count(value) AS filled, count(*) AS rows FROM (
        SELECT 'results' AS kind, 'number' AS name, raceId, number AS value FROM results
        UNION ALL SELECT 'results', 'grid', raceId, grid FROM results
        UNION ALL SELECT 'results', 'points', raceId, points FROM results
        UNION ALL SELECT 'results', 'laps', raceId, laps FROM results
        UNION ALL SELECT 'results', 'milliseconds', raceId, milliseconds FROM results
        UNION ALL SELECT 'results', 'fastestLapTime', raceId, fastestLapTime FROM results
        UNION ALL SELECT 'qualifying', 'position', raceId, position FROM qualifying
        UNION ALL SELECT 'qualifying', 'q1', raceId, q1 FROM qualifying
        UNION ALL SELECT 'qualifying', 'q2', raceId, q2 FROM qualifying
        UNION ALL SELECT 'qualifying', 'q3', raceId, q3 FROM qualifying
        UNION ALL SELECT 'sprint_results', 'grid', raceId, grid FROM sprint_results
        UNION ALL SELECT 'sprint_results', 'points', raceId, points FROM sprint_results
        UNION ALL SELECT 'sprint_results', 'laps', raceId, laps FROM sprint_results
        UNION ALL SELECT 'sprint_results', 'milliseconds', raceId, milliseconds FROM sprint_results
        UNION ALL SELECT 'sprint_qualifying', 'q1', raceId, q1 FROM sprint_qualifying
        UNION ALL SELECT 'sprint_qualifying', 'q2', raceId, q2 FROM sprint_qualifying
        UNION ALL SELECT 'sprint_qualifying', 'q3', raceId, q3 FROM sprint_qualifying
        UNION ALL SELECT 'practice', 'position', raceId, position FROM practice
        UNION ALL SELECT 'practice', 'laps', raceId, laps FROM practice
        UNION ALL SELECT 'practice', 'milliseconds', raceId, milliseconds FROM practice
        UNION ALL SELECT 'pit_stops', 'lap', raceId, lap FROM pit_stops
        UNION ALL SELECT 'pit_stops', 'time', raceId, time FROM pit_stops
        UNION ALL SELECT 'pit_stops', 'milliseconds', raceId, milliseconds FROM pit_stops
        UNION ALL SELECT 'lap_times', 'time', raceId, time FROM lap_times)
    GROUP BY kind, name, raceId)
JOIN race USING (raceId)
WINDOW season AS (PARTITION BY kind, name, year);

-- A column is empty for a whole race, but filled for the season's other races.
-- The source lacks it for this race; or that part of qualifying was cancelled, or nobody set a
-- time.
-- rows: filled
SELECT race, kind AS "table", name AS column, rows FROM filled
WHERE filled = 0 AND filled_races > 1 AND races - filled_races <= 2
ORDER BY year DESC, round, kind, name;
