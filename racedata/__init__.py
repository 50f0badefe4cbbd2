"""Formula One data over HTTP, in the JSON format of Ergast, from one read-only SQLite file."""

__version__ = "1.0.0"
