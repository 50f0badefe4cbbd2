"""OpenF1 as a server answers: rows of recorded sessions, its filters, its 404s and 401s."""

import json
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from support import EXPECTED
from support.apis import Answer

Json = dict[str, Any]
ENDPOINTS = (
    "sessions",
    "drivers",
    "session_result",
    "starting_grid",
    "pit",
    "laps",
    "position",
)
LIVE = {"detail": "Live F1 session in progress. Access is limited."}


def recorded_rows(folder: Path) -> dict[str, list[Json]]:
    """The rows of a season that was recorded, by endpoint."""
    return {
        name: json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        for name in ENDPOINTS
        for path in [folder / f"{name}.json"]
    }


def excerpt() -> dict[str, list[Json]]:
    """The rows of two weekends, by endpoint: Austria and Austin in 2023, and the laps of Austin."""
    found = json.loads((EXPECTED / "openf1" / "2023.json").read_text(encoding="utf-8"))
    laps = found.pop("laps")
    rows = {
        name: [dict(zip(table["columns"], row)) for row in table["rows"]]
        for name, table in found.items()
    }
    # The drivers of a weekend are those of each session.
    rows["drivers"] = [
        {**driver, "session_key": session["session_key"]}
        for session in rows["sessions"]
        for driver in rows["drivers"]
        if driver["meeting_key"] == session["meeting_key"]
    ]
    keys = {name: laps[name] for name in ("session_key", "meeting_key")}
    rows["laps"] = [
        {**keys, "driver_number": int(number), "lap_number": lap, "lap_duration": duration}
        for number, durations in laps["durations"].items()
        for lap, duration in enumerate(durations, 1)
        if duration is not None
    ]
    return rows


class OpenF1Server:
    """What OpenF1 answers from rows by endpoint: the `answer` for `served`.

    `is_live` says whether a session runs: then everything is refused.
    """

    def __init__(
        self,
        rows: Mapping[str, Sequence[Json]],
        is_live: Callable[[], bool] = lambda: False,
        is_published: Callable[[str, Json], bool] = lambda endpoint, row: True,
    ) -> None:
        self.rows, self.is_live, self.is_published = rows, is_live, is_published

    def answer(self, path: str) -> Answer:
        address, _, query = path.partition("?")
        endpoint = address.rpartition("/")[2]
        if self.is_live():
            return json_answer(401, LIVE)
        found = [
            row
            for row in self.rows.get(endpoint, ())
            if all(str(row.get(name)) == value for name, value in urllib.parse.parse_qsl(query))
            and self.is_published(endpoint, row)
        ]
        return (
            json_answer(200, found) if found else json_answer(404, {"detail": "No results found."})
        )


def json_answer(status: int, found: object) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(found).encode()
