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
    """`/healthz`: the database, its sources, and whether a new file was refused."""

    def __init__(self, data: Snapshot, settings: Settings) -> None:
        self.data, self.settings = data, settings

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.content_type = falcon.MEDIA_JSON
        resp.data = orjson.dumps(self.report())

    on_head = on_get

    def report(self) -> Json:
        build = self.data.build()
        health: Json = {
            "status": "ok",
            "version": __version__,
            "schemaVersion": build["schemaVersion"],
            "builtAt": build["builtAt"],
            "revision": build["revision"],
            "licence": self.data.licence(),
            "sources": list(self.sources()),
            "coverage": self.data.coverage(),
            "rows": self.data.row_counts(),
        }
        if self.settings.download:
            health["download"] = self.settings.root_link.rstrip("/") + download.PATH
        if notice := self.data.sample_notice(self.settings.follows):
            health["sample"] = notice
        if self.data.rejection:
            health["refused"] = f"The database file {self.data.rejection}."
        return health

    def sources(self) -> Iterator[Json]:
        """The sources in the database, then others that refreshes have asked."""
        for row, name, url, times in self.data.sources_with(self.data.refresh_times(), {}):
            if row is None:
                yield {"name": name, **times}
                continue
            source = {**dict(row), "name": name, "address": url, **times}
            if source.pop("isProvisional"):
                source["provisional"] = True
            yield source
