"""The resource `/healthz`: what is loaded, for people and monitors. Pages and the log show the same
notice if that is only the sample.

healthcheck.py is the command that asks it.
"""

import os
from collections.abc import Iterator

import falcon
import orjson

from racedata import __version__, database, hints
from racedata.formats import Json
from racedata.service import download
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings


class Health:
    """The resource `/healthz`."""

    def __init__(self, data: Snapshot, settings: Settings) -> None:
        self.data, self.settings = data, settings

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.content_type = falcon.MEDIA_JSON
        resp.data = orjson.dumps(report(self.data, self.settings))

    on_head = on_get


def report(data: Snapshot, settings: Settings) -> Json:
    """The database, its sources, and whether a new file was refused."""
    build = data.build()
    health: Json = {
        "status": "ok",
        "version": __version__,
        "schemaVersion": build["schemaVersion"],
        "builtAt": build["builtAt"],
        "revision": build["revision"],
        "licence": data.licence(),
        "sources": list(sources(data)),
        "coverage": data.coverage(),
        "rows": data.row_counts(),
    }
    if settings.download:
        health["download"] = settings.root_link + download.PATH
    if notice := sample_notice(data, settings.follows):
        health["sample"] = notice
    if data.rejection:
        health["refused"] = f"The database file {data.rejection}."
    return health


def sample_notice(data: Snapshot, follows: bool) -> str | None:
    """A notice for users if this is only the sample; None if it is not.

    `follows` says whether the service loads its sources itself.
    """
    if not data.build()["isSample"]:
        return None
    notice = f"Only a sample, with results up to {data.last_date_with_results()}."
    if follows:
        return f"{notice} This service is loading its sources; if it cannot, its log says why."
    command = f"{hints.IN_CHECKOUT} load tracinginsights f1db"
    if os.path.realpath(data.path) != os.path.realpath(database.default_path(os.environ)):
        command += " --database FILE"  # without its path, because pages show this
    return f"{notice} If no load is running, run: {command}"


def sources(data: Snapshot) -> Iterator[Json]:
    """The sources in the database, then others that refreshes have asked."""
    for row, name, url, times in data.sources_with(data.refresh_times(), {}):
        if row is None:
            yield {"name": name, **times}
            continue
        source = {**dict(row), "name": name, "address": url, **times}
        if source.pop("isProvisional"):
            source["provisional"] = True
        yield source
