-- Checks of drivers, constructors and circuits.

CREATE TEMP VIEW names AS
SELECT 'driver' AS list, driverRef AS reference, forename || ' ' || surname AS name FROM drivers
UNION ALL SELECT 'constructor', constructorRef, name FROM constructors
UNION ALL SELECT 'circuit', circuitRef, name FROM circuits
UNION ALL SELECT 'race', year || '/' || round, name FROM races;

-- The drivers who entered or drove in each race, and their codes.
CREATE TEMP VIEW drove AS
SELECT raceId, driverId FROM entries UNION SELECT raceId, driverId FROM results
UNION SELECT raceId, driverId FROM qualifying UNION SELECT raceId, driverId FROM practice;

-- A driver's permanent number differs from the car's number in most races of the latest season.
-- The dump has a number that the driver used earlier, or as a stand-in. The champion's number 1
-- is not reported. Permanent numbers began in 2014.
-- rows: drivers WHERE number NOT NULL
WITH cars AS (
    SELECT driverId, results.number, count(*) AS races,
        sum(count(*)) OVER (PARTITION BY driverId) AS total
    FROM results JOIN races USING (raceId)
    WHERE year = (SELECT max(year) FROM results JOIN races USING (raceId)) AND year >= 2014
    GROUP BY driverId, results.number)
SELECT driverRef AS driver, drivers.number AS "permanent number",
    cars.number AS "car number", races, total AS "of"
FROM cars JOIN drivers USING (driverId)
WHERE cars.number NOT IN (1, drivers.number) AND races * 2 > total
ORDER BY races DESC, driver;

-- A driver has a code, but drove only before there were codes.
-- The code is made up, or belongs to a later driver. Timing screens show codes since about 2005.
-- rows: drivers WHERE code NOT NULL
SELECT driverRef AS driver, code, max(year) AS "last season",
    (SELECT group_concat(driverRef, ', ') FROM drivers AS other
     WHERE other.code = drivers.code AND other.driverId <> drivers.driverId) AS "others with it"
FROM drivers JOIN drove USING (driverId) JOIN races USING (raceId)
WHERE code NOT NULL GROUP BY driverId HAVING max(year) < 2005 ORDER BY max(year), driver;

-- Two drivers of one season have the same code.
-- One of the two codes is wrong: in timing, a code is of one driver.
-- rows: (SELECT DISTINCT year, driverId FROM drove JOIN races USING (raceId) JOIN drivers USING (driverId) WHERE code NOT NULL)
SELECT year AS season, code, group_concat(driverRef, ', ') AS drivers FROM (
    SELECT DISTINCT year, code, driverRef
    FROM drove JOIN races USING (raceId) JOIN drivers USING (driverId) WHERE year >= 2005)
WHERE code NOT NULL GROUP BY year, code HAVING count(*) > 1 ORDER BY year DESC, code;

-- A name contains an HTML entity.
-- The dump was made from a web page: it has &amp; instead of &.
-- rows: names
SELECT * FROM names WHERE name GLOB '*&[a-z#]*;*' ORDER BY list, reference;

-- A driver's reference and surname have nothing in common.
-- The surname is another driver's, or the reference has a spelling mistake or an old name.
-- rows: drivers
SELECT driverRef AS driver, forename, surname FROM drivers
WHERE letters(surname || forename) NOT LIKE '%' || substr(letters(driverRef), 1, 4) || '%'
    AND letters(driverRef) NOT LIKE '%' || substr(letters(surname), 1, 4) || '%'
ORDER BY driver;

-- Only one driver or constructor has this nationality, and it begins like a common one.
-- It is another word for the same nationality.
-- rows: drivers WHERE nationality NOT NULL
WITH words AS (
    SELECT nationality AS word, count(*) AS number, min(reference) AS reference FROM (
        SELECT nationality, driverRef AS reference FROM drivers
        UNION ALL SELECT nationality, constructorRef FROM constructors)
    WHERE nationality NOT NULL GROUP BY nationality)
SELECT words.reference AS "driver or constructor", words.word AS nationality,
    usual.word AS "of others", usual.number AS others
FROM words JOIN words AS usual ON substr(usual.word, 1, 5) = substr(words.word, 1, 5)
WHERE words.number = 1 AND usual.number > 1 AND words.word NOT LIKE '%-%'
ORDER BY words.reference;
