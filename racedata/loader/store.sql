-- The tables of the store: see store.py. Two programs may make them at the same moment.

-- The state of the store. A database has the id and the revision from which it was built.
CREATE TABLE IF NOT EXISTS store (
    id       TEXT NOT NULL,    -- random: another id is another machine's store
    revision INTEGER NOT NULL, -- how many builds had something new
    readings INTEGER NOT NULL  -- how often a source was read
) STRICT;

-- The sources that were read, those in the list with a place. The list itself, which also has
-- addresses that were never read, is in `memory`, at the source ''.
CREATE TABLE IF NOT EXISTS sources (
    name          TEXT PRIMARY KEY,
    address       TEXT NOT NULL,
    licence       TEXT,
    checksum      TEXT,              -- SHA-256 of a dump; NULL for an API
    readAt        TEXT NOT NULL,     -- when it was last read: UTC, YYYY-MM-DDTHH:MM:SSZ
    reading       INTEGER NOT NULL,  -- the number of that reading
    place         INTEGER,           -- in the list; NULL: its parts are kept, but do not count
    isLoaded      INTEGER NOT NULL,  -- 1 if a load read it whole
    isProvisional INTEGER NOT NULL,  -- 1 if its parts only count until another source has them
    isSample      INTEGER NOT NULL,
    ids           TEXT               -- whose ids its rows have: rows of sources that share them do not clash
) STRICT;

-- The calendar of a season, as JSON. Its races have a `key`, which stays if a race is renamed.
CREATE TABLE IF NOT EXISTS calendars (
    source    TEXT NOT NULL,
    season    INTEGER NOT NULL,
    fetchedAt TEXT,           -- when a refresh read it; NULL: a load did
    races     TEXT NOT NULL,  -- the latest
    counts    TEXT,           -- the latest that may count; NULL if none may
    lacks     TEXT NOT NULL,  -- since when `races` has lacked races, by name
    PRIMARY KEY (source, season)
) STRICT;

-- All rows of a kind of a race, from a source. `rows` is JSON, a list of lists; compressed if long.
CREATE TABLE IF NOT EXISTS parts (
    source      TEXT NOT NULL,
    season      INTEGER NOT NULL,
    race        TEXT NOT NULL,     -- the key in the source's calendar
    kind        TEXT NOT NULL,
    fetchedAt   TEXT,              -- when a refresh first read it; NULL: a load did
    confirmedAt TEXT NOT NULL,     -- when the source last said so
    reading     INTEGER NOT NULL,  -- the number of that reading
    entrants    INTEGER NOT NULL,  -- drivers or constructors
    columns     TEXT NOT NULL,
    rows        BLOB NOT NULL,
    PRIMARY KEY (season, race, kind, source)
) STRICT;

-- The rows of lists such as drivers, as JSON, with the source's ids.
CREATE TABLE IF NOT EXISTS lists (
    source TEXT NOT NULL,
    name   TEXT NOT NULL,
    key    TEXT NOT NULL,
    row    TEXT NOT NULL,
    PRIMARY KEY (source, name, key)
) STRICT;

-- The ids of statuses in the database, which addresses have.
CREATE TABLE IF NOT EXISTS status (
    statusId INTEGER PRIMARY KEY, status TEXT NOT NULL UNIQUE COLLATE NOCASE
) STRICT;

-- The latest values that builds have altered, with references: columns like those of `changes` in
-- schema.sql. The key lacks the race, whose round may change.
CREATE TABLE IF NOT EXISTS changes (
    number      INTEGER PRIMARY KEY,  -- in the order of builds, and then of races
    revision    INTEGER NOT NULL,
    changedAt   TEXT NOT NULL,
    kind        TEXT NOT NULL,
    season      INTEGER,
    round       INTEGER,
    race        TEXT,
    driver      TEXT,
    constructor TEXT,
    circuit     TEXT,
    key         TEXT NOT NULL,
    columnName  TEXT NOT NULL,
    oldValue    TEXT,
    value       TEXT,
    oldSource   TEXT,
    source      TEXT,
    reason      TEXT NOT NULL
) STRICT;

-- What checks of a source have to remember, as JSON. database.refresh_times reads times from it for
-- the service.
CREATE TABLE IF NOT EXISTS memory (
    source TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (source, key)
) STRICT;
