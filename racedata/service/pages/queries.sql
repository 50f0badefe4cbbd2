-- What pages show and no endpoint answers. A paragraph is a query; its first line has the name of the query.
-- `{who}` is a driver, a constructor or a circuit. Starts, wins and poles are counted as in the views of schema.sql.

-- drives: the races of a driver or constructor, or of all in a season, in order. For a driver, a podium is a race; for
-- a constructor, a place. In Argentina in 1955, Farina was second and third in two Ferraris, which he shared with
-- others: one podium for him, and two for Ferrari.
SELECT {who}Ref, year, round, max(isStart), max(isWinner),
    ({who}Ref, year, round) IN (SELECT {who}Ref, year, round FROM poles WHERE {column} = ?1),
    count(DISTINCT iif(position <= 3, iif('{who}' = 'driver', 1, position), NULL)), total(points)
FROM race_results WHERE {column} = ?1
GROUP BY year, round, {who}Ref ORDER BY year, round

-- sprint points: all of a driver or constructor
SELECT total(points) FROM sprint_race_results WHERE {who}Ref = ?

-- partners: the constructors that a driver drove for, or the drivers of a constructor, by season. Those with the most
-- races are first.
SELECT year, {other}Ref FROM race_results WHERE {who}Ref = ?
GROUP BY year, {other}Ref ORDER BY year, count(DISTINCT round) DESC, min(round * 1000 + positionOrder)

-- winners: who won the races that a driver or constructor won, in order
SELECT year, round, other.driverRef
FROM race_results AS own JOIN race_results AS other USING (year, round)
WHERE own.{who}Ref = ? AND own.isWinner AND other.isWinner
GROUP BY year, round, other.driverRef ORDER BY year, round, min(other.positionOrder)

-- mates: a driver and each team mate in a season, the latest first: how often they were together in a race or in
-- qualifying, and in how many of these the driver had the better or the worse place, if both had one. Both started the
-- race; of several places in shared cars, the best counts. In qualifying, the place counts, whatever the grid was.
SELECT year, constructorRef AS constructor, mate,
    count(*) FILTER (WHERE isRace) AS races,
    count(*) FILTER (WHERE isRace AND place < matePlace) AS ahead,
    count(*) FILTER (WHERE isRace AND place > matePlace) AS behind,
    count(*) FILTER (WHERE NOT isRace) AS qualifyings,
    count(*) FILTER (WHERE NOT isRace AND place < matePlace) AS qualifiedAhead,
    count(*) FILTER (WHERE NOT isRace AND place > matePlace) AS qualifiedBehind
FROM (
    SELECT TRUE AS isRace, year, constructorRef, other.driverRef AS mate,
        min(own.position) AS place, min(other.position) AS matePlace
    FROM race_results AS own JOIN race_results AS other USING (year, round, constructorRef)
    WHERE own.driverRef = ?1 AND other.driverRef <> ?1 AND own.isStart AND other.isStart
    GROUP BY year, round, constructorRef, mate
    UNION ALL
    SELECT FALSE, year, constructorRef, other.driverRef, own.position, other.position
    FROM qualifying_results AS own JOIN qualifying_results AS other USING (year, round, constructorRef)
    WHERE own.driverRef = ?1 AND other.driverRef <> ?1)
GROUP BY year, constructorRef, mate ORDER BY year DESC, races DESC, qualifyings DESC, constructorRef, mate

-- starts: of all drivers or constructors, and the races at circuits: how many, and the first and the last season
SELECT {who}Ref, count(DISTINCT year * 1000 + round) AS races, min(year) AS first, max(year) AS last
FROM race_results WHERE isStart GROUP BY {who}Ref

-- leaders: who led the championship of the drivers after each round of a season
SELECT round, driverId FROM driver_standings JOIN races USING (raceId)
WHERE races.year = ? AND positionText = '1' ORDER BY driver_standings.record

-- won races: each race with a winner, in order: race time and place on the grid; the gap in milliseconds to the second,
-- if both drove as many laps, and who that was. Of two drivers who shared a car, the first in the result counts: Brooks,
-- not Moss, in Britain in 1957.
SELECT won.raceId, won.driverId, won.milliseconds, won.grid,
    second.milliseconds - won.milliseconds AS gap, second.driverId AS secondId,
    min(coalesce(second.record, won.record))
FROM (SELECT *, min(record) FROM results WHERE positionText = '1' GROUP BY raceId) AS won
    JOIN races USING (raceId)
    LEFT JOIN results AS second ON second.raceId = won.raceId AND second.positionText = '2'
        AND second.laps = won.laps AND second.milliseconds > won.milliseconds
GROUP BY won.raceId ORDER BY year, round

-- corrected races: the races with corrected values, of a season or of all, in order
SELECT races.year, round, name, count(*) AS count FROM corrections JOIN races USING (raceId)
WHERE ?1 IS NULL OR races.year = ?1 GROUP BY raceId ORDER BY races.year, round

-- newest records: the latest race of which each source gave records, by kind
SELECT sources.name AS source, kind, races.name AS race, max(date) AS date
FROM origins JOIN sources USING (sourceId) JOIN races USING (raceId) GROUP BY sourceId, kind

-- provisional sources: those that gave records of a race, by kind
SELECT kind, name FROM origins JOIN sources USING (sourceId) WHERE raceId = ? AND isProvisional
