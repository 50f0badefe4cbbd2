"""The types of sources, their names, and which type an address belongs to.

The rest of the loader knows this package, and no module in it.
"""

import os
from collections.abc import Iterable, Sequence

from racedata.formats import in_utf8, without_query
from racedata.loader.errors import LoadError
from racedata.loader.same_bytes import SAMPLE, SAMPLE_NAME
from racedata.loader.sources import ergast_files
from racedata.loader.sources.api import ApiSource
from racedata.loader.sources.api_client import JOLPICA_URL
from racedata.loader.sources.database import DatabaseSource
from racedata.loader.sources.dump import PUBLISHED as PUBLISHED
from racedata.loader.sources.dump import DumpSource
from racedata.loader.sources.ergast_files import write_dump as write_dump
from racedata.loader.sources.f1db_release import F1dbRelease
from racedata.loader.sources.history import History as History
from racedata.loader.sources.history import history_in as history_in
from racedata.loader.sources.jolpica_download import JolpicaDump
from racedata.loader.sources.openf1 import NAME as OPENF1
from racedata.loader.sources.openf1 import OpenF1
from racedata.loader.sources.pace import Pace as Pace
from racedata.loader.sources.source import Source as Source
from racedata.loader.sources.source import Task as Task

EXPORT_LAYOUT, EXPORT_TITLES = ergast_files.LAYOUT, ergast_files.TITLES

# The types of sources. The first that accepts an address is used.
SOURCE_TYPES: tuple[type[Source], ...] = (
    JolpicaDump,
    F1dbRelease,
    OpenF1,
    DatabaseSource,
    ApiSource,
    DumpSource,
)

NAMES = (*PUBLISHED, OPENF1)  # never the address of a file, which is an absolute path

# The default list of sources, the most trusted first.
DEFAULT_LIST = (JOLPICA_URL, PUBLISHED["tracinginsights"], PUBLISHED["f1db"], OPENF1)

# The sources whose facts do not descend from Ergast's.
INDEPENDENT = ("f1db", OPENF1)


def family(name: str) -> str:
    """The family of a source, by its name. Sources of one family are one witness.

    Dumps in Ergast's layout, and APIs in its format, descend from Ergast.
    """
    return name if name in INDEPENDENT else "ergast"


def addresses_in(text: str) -> list[str]:
    """The addresses of sources in an argument. `make` passes several as one, with spaces."""
    path = os.path.abspath(os.path.expanduser(text))  # the next load may run in another folder
    words = text.split()
    is_name = text in (*NAMES, SAMPLE_NAME)
    if text and (os.path.exists(path) or (words == [text] and not is_name and "://" not in text)):
        return [SAMPLE_NAME if path == SAMPLE else path]
    return (
        [PUBLISHED.get(text, text)]
        if words == [text]
        else [each for word in words for each in addresses_in(word)]
    )


def each_once(named: Iterable[Sequence[str]]) -> list[str]:
    """The addresses in several arguments, none of them twice."""
    return [*dict.fromkeys(address for addresses in named for address in addresses)]


def sources_named(text: str) -> list[str]:
    """The addresses of sources in an argument of a command, which must name one.

    Raises a ValueError that says what was expected.
    """
    if addresses := addresses_in(text):
        return addresses
    raise ValueError("the name, the path or the URL of a source")


def source_at(address: str, pace: Pace | None = None) -> Source:
    """The source at an address. Raises LoadError for one that the store cannot have."""
    if address != (shown := in_utf8(address)):
        raise LoadError(f"{shown}: not in UTF-8; expected a path or URL that is")
    type = next(type for type in SOURCE_TYPES if type.accepts(address))
    return type(address, pace or Pace())


def whole_database(addresses: Sequence[str]) -> Source | None:
    """The whole database at the only one of these addresses; None if they are other sources.

    Raises LoadError for one that is named beside other sources.
    """
    whole = next((source for source in map(source_at, addresses) if source.is_whole), None)
    if whole and len(addresses) > 1:
        what = "is a whole database, which replaces the existing one"
        raise LoadError(f"{without_query(whole.address)} {what}; expected no other source")
    return whole
