"""The resource `/healthz`: what is loaded, for people and monitors.

healthcheck.py is the command that asks it.
"""

from collections.abc import Iterator

import falcon
import orjson

from racedata import __version__
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
        health["download"] = settings.root_link.rstrip("/") + download.PATH
    if notice := data.sample_notice(settings.follows):
        health["sample"] = notice
    if data.rejection:
        health["refused"] = f"The database file {data.rejection}."
    return health


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
