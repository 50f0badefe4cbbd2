"""Formula One data over HTTP, in the JSON of Ergast, from one read-only SQLite file."""

__version__ = "0.3.0"
