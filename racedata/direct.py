"""The data in Python, without HTTP: `open_database`.

The service's endpoints make the answers. HTTP, limits and caches are not needed here.
"""

import os
from io import BytesIO
from typing import TYPE_CHECKING, Any, Self, cast

import orjson

from racedata.formats import Json
from racedata.service import serializers, spreadsheets
from racedata.service.addresses import JSON, Address, Grammar, after_base
from racedata.service.catalogue import Catalogue
from racedata.service.content import Served
from racedata.service.endpoints import BY_NAME, RULES
from racedata.service.request import (
    ALL,
    Parameters,
    ParsedRequest,
    accepted_parameters,
    with_parameters,
)
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings, SharedSettings
from racedata.statements import Statements

if TYPE_CHECKING:
    import pandas

# Columns with numbers and other texts. They are texts in a frame, even if all values are numbers.
MIXED = ("positionText", "duration", "value", "oldValue", "sourceId", "sourceValue")


def open_database(path: "str | os.PathLike[str] | None" = None) -> "Database":
    """Opens the database at `path`; by default, the one that the command `racedata` uses.

    Raises racedata.database.DatabaseError if the file cannot be used. Without a path, raises
    racedata.settings.SettingError if a setting in the environment is wrong.
    """
    name = SharedSettings.read(os.environ).database if path is None else os.fspath(path)
    return Database(Snapshot.read(name))


class Answering:
    """Answers as the service does, from a database in memory."""

    def __init__(self, data: Snapshot) -> None:
        self.served = Served(data, Catalogue(data), Settings(database=data.path))
        self.base = self.served.settings.base_address
        self.grammar = Grammar(self.base, RULES)

    def ask(
        self, address: str, *, limit: int | None = None, offset: int = 0, **parameters: int | str
    ) -> Json:
        """The answer of the service, as a dict: `db.ask("/2023/18/results")["MRData"]`.

        `address` is as after the base address, with or without `.json`; `parameters` are those that
        only some endpoints have: `db.ask("/discrepancies", state="open")`. Raises ValueError if the
        service would refuse the request, and if the endpoint does not have a parameter; the service
        would ignore it. Raises LookupError if a season has no last round yet.
        """
        given = {"offset": offset, **parameters}
        if limit is not None:
            given["limit"] = limit
        parsed = self.parse(address)
        return self.answer(parsed, {name: str(value) for name, value in given.items()})

    def answer(self, parsed: Address, given: Parameters) -> Json:
        """Like `ask`, with a parsed address, and with parameters as a query has them."""
        if parsed.ending != JSON:
            address = f"{parsed.path}{parsed.ending}"
            raise ValueError(
                f"{address[-50:]!r} is not JSON; expected an address without an ending"
            )
        endpoint = BY_NAME[parsed.endpoint]
        accepted = accepted_parameters(endpoint.rules, JSON)
        for name in given:
            if name not in accepted:
                expected = f"expected only {', '.join(accepted)}"
                raise ValueError(f"{parsed.endpoint} does not accept {name[:50]}; {expected}")
        request = with_parameters(parsed, endpoint.rules, given, self.served.settings, self.base)
        answer = endpoint.answer(self.served, request)
        # The answer shares objects with others. This copy is the caller's own.
        return cast(Json, orjson.loads(serializers.json_bytes(answer)))

    def parse(self, address: str) -> Address:
        """Parses an address, with or without the base address. Raises AddressError."""
        rest = after_base(address, self.base)
        return self.grammar.parse(f"/{(address if rest is None else rest).lstrip('/')}")


class Database(Answering):
    """A database: the file as it was when it was opened. Open it again to see new data."""

    def __init__(self, data: Snapshot) -> None:
        super().__init__(data)
        self.statements = Statements(data.path, data.file.state)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.statements.close()
        self.served.data.close()

    def frame(
        self,
        endpoint: str,
        season: int | str | None = None,
        round: int | str | None = None,
        **filters: int | str | None,
    ) -> "pandas.DataFrame":
        """All records of an endpoint, with the columns of the service's CSV:
        `db.frame("results", season=2023, drivers="alonso")`.

        Raises ValueError if the service would refuse the request; LookupError if a season has no
        last round yet; ImportError without pandas.
        """
        if round is not None and season is None:
            raise ValueError(f"round={round!r}: expected a season too")
        try:
            import pandas
        except ImportError:
            raise ImportError("frame needs pandas; run: pip install pandas") from None
        front = [each for each in (season, round) if each is not None]
        given = {name: str(value) for name, value in filters.items() if value is not None}
        for name, value in given.items():
            if "/" in value:
                raise ValueError(f"{name}={value!r}: expected one value, without a slash")
        words = [word for name_and_value in given.items() for word in name_and_value]
        parsed = self.parse("/".join(map(str, [*front, *words, endpoint])))
        found = BY_NAME[parsed.endpoint]
        request = ParsedRequest(parsed, ALL, 0, self.base)
        _, _, objects = found.find(self.served, request)
        sources = self.served.catalogue.sources_compared
        text = BytesIO(spreadsheets.write(found, sources, objects))
        said = (f"Sources.{source}" for source in sources)
        return pandas.read_csv(text, dtype=dict.fromkeys([*MIXED, *said], str))

    def sql(self, select: str, *values: Any) -> list[dict[str, Any]]:
        """The rows of one statement that only reads, as dicts. `values` replace its `?`.

        Raises ValueError for any other statement, and for an error in it.
        """
        return self.statements.run(select, values).rows
