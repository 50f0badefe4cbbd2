"""The data in Python, without HTTP: `open_database`.

The answers are those of the service's endpoints. HTTP, limits and caches are not needed here.
"""

import os
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, Self, cast

import orjson

from racedata.formats import Json
from racedata.service import serializers
from racedata.service.addresses import JSON, Address, Grammar, after_base
from racedata.service.catalogue import Catalogue
from racedata.service.endpoints import BY_NAME, RULES, Endpoint, Served
from racedata.service.request import OWN_PARAMETERS, ParsedRequest
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings, SharedSettings
from racedata.statements import Row, Statements

if TYPE_CHECKING:
    import pandas

ALL = 1_000_000_000  # more records than any answer has


def open_database(path: "str | os.PathLike[str] | None" = None) -> "Database":
    """Opens the database at `path`; by default, the one that the command `racedata` uses.

    Raises racedata.database.DatabaseError if the file cannot be used.
    """
    return Database(SharedSettings.read(os.environ).database if path is None else os.fspath(path))


class Database:
    """A database: the file as it was when it was opened. Open it again to see new data."""

    def __init__(self, path: str) -> None:
        data = Snapshot.read(path)
        self.served = Served(data, Catalogue(data), Settings(database=path))
        self.base = self.served.settings.base_address
        self.grammar = Grammar(self.base, RULES)
        self.statements = Statements(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.statements.close()
        self.served.data.close()

    def ask(
        self, address: str, *, limit: int | None = None, offset: int = 0, **parameters: int | str
    ) -> Json:
        """The answer of the service, as a dict: `db.ask("/2023/18/results")["MRData"]`.

        `address` is as after the base address, with or without `.json`; `parameters` are those that
        only some endpoints have: `db.ask("/discrepancies", state="open")`. Raises ValueError if the
        service would refuse it, and LookupError if a season has no last round yet.
        """
        parsed = self.parse(address)
        if parsed.ending != JSON:
            raise ValueError(f"{address[:50]!r} is not JSON; expected an address without an ending")
        settings = self.served.settings
        if limit is None:
            limit = settings.usual_limit
        if limit < 0 or offset < 0:
            raise ValueError(f"limit is {limit} and offset {offset}; expected 0 or more")
        endpoint = BY_NAME[parsed.endpoint]
        request = ParsedRequest(
            parsed,
            min(limit, settings.max_limit),
            offset,
            self.base,
            parameters=tuple(parsed_parameters(endpoint, parameters)),
        )
        answer = endpoint.answer(self.served, request)
        # The answer shares objects with others. This copy is the caller's own.
        return cast(Json, orjson.loads(serializers.written(answer)))

    def frame(
        self,
        endpoint: str,
        season: int | str | None = None,
        round: int | str | None = None,
        **filters: int | str,
    ) -> "pandas.DataFrame":
        """All records of an endpoint, with the columns of the service's CSV:
        `db.frame("results", season=2023, drivers="alonso")`.

        Raises ValueError if the service would refuse the address, and ImportError without pandas.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("frame needs pandas; run: pip install pandas") from None
        front = [str(each) for each in (season, round) if each is not None]
        words = [str(word) for name_and_value in filters.items() for word in name_and_value]
        parsed = self.parse("/".join(["", *front, *words, endpoint]))
        found = BY_NAME[parsed.endpoint]
        _, _, objects = found.content(self.served, ParsedRequest(parsed, ALL, 0, ""))
        return pandas.read_csv(BytesIO(found.csv(self.served, objects)))

    def sql(self, select: str, *values: Any) -> list[Row]:
        """The rows of one statement that only reads, as dicts. `values` replace its `?`.

        Raises ValueError for any other statement, and for an error in it.
        """
        return self.statements.run(select, values).rows

    def parse(self, address: str) -> Address:
        """Parses an address, with or without the base address. Raises AddressError."""
        rest = after_base(address, self.base)
        return self.grammar.parse(f"/{(address if rest is None else rest).lstrip('/')}")


def parsed_parameters(
    endpoint: Endpoint, parameters: Mapping[str, int | str]
) -> Iterator[tuple[str, str]]:
    """The parameters that only some endpoints have. Raises ValueError."""
    for name, value in parameters.items():
        if name not in endpoint.rules.parameters:
            expected = ", ".join(["limit", "offset", *endpoint.rules.parameters])
            raise ValueError(f"{endpoint.name} does not accept {name}; expected only {expected}")
        parse = OWN_PARAMETERS[name]
        try:
            yield name, str(parse(str(value)))
        except ValueError:
            raise ValueError(f"{name} is {str(value)[:50]!r}; expected {parse.expected}") from None
