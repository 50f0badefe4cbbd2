"""Formula One data from one read-only SQLite file: over HTTP, in the JSON format of Ergast; for AI
assistants; and in Python, with `open_database`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from racedata.direct import open_database as open_database

__version__ = "1.0.0"
__all__ = ["__version__", "open_database"]


def __getattr__(name: str) -> Any:
    # Imported only when it is used: the command and the loader do not need it.
    if name == "open_database":
        from racedata.direct import open_database

        return open_database
    raise AttributeError(f"module 'racedata' has no attribute {name!r}")
