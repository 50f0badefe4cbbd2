"""Downloads the dump that Jolpica publishes: finds it in an index, and checks its SHA-256."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from racedata.licences import SHARED_ALIKE
from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.archives import Dump
from racedata.loader.http import Request, Secret, WrongStatus
from racedata.loader.sources.api_client import parsed_json
from racedata.loader.sources.dump import PUBLISHED, DumpSource
from racedata.loader.sources.pace import Pace
from racedata.settings import LoaderSettings

INDEX = "https://api.jolpi.ca/data/dumps/download/"
INDEX_BYTES = 1_000_000


class JolpicaDump(DumpSource):
    """The dump in an index: Jolpica's own, or another one, named by `jolpica:` and its URL."""

    licence = SHARED_ALIKE

    def __init__(self, address: str, pace: Pace) -> None:
        super().__init__(address, pace)
        self.name = PUBLISHED["jolpica"]

    @classmethod
    def accepts(cls, address: str) -> bool:
        return address.partition(":")[0] == PUBLISHED["jolpica"]

    @contextmanager
    def dump(self, progress: Progress) -> Iterator[Dump]:
        """With a token the latest dump, else one 14 days old. Raises LoadError."""
        token = LoaderSettings.read(os.environ).jolpica_token
        index = self.address.partition(":")[2] or INDEX
        secret = Secret(f"Token {token}", index) if token else None
        request = Request(index, "Jolpica's index", size=INDEX_BYTES, secret=secret)
        try:
            content = self.pace.content(request, progress)
        except WrongStatus as error:
            if not (token and error.status in (401, 403)):
                raise
            what = f"does not accept JOLPICA_TOKEN ({error.status})"
            raise LoadError(f"{index}: {what}") from None
        url, checksum = dump_in_index(content, "latest" if token else "delayed", index)
        with self.downloaded(url, progress, (checksum, index), secret) as dump:
            yield dump._replace(address=self.address)  # the URL is of this release only


def dump_in_index(content: bytes, name: str, index: str) -> tuple[str, str]:
    """The URL and SHA-256 of the CSV dump `name` (`latest` or `delayed`) in the JSON of an index.

    Jolpica's serializers name the fields: `{"latest_dumps": {"csv": {"download_url", "file_hash",
    …}}, "delayed_dumps": …}`. An index may lack `delayed_dumps`.
    """
    try:
        entry = parsed_json(content)[f"{name}_dumps"]["csv"]
        return str(entry["download_url"]), str(entry["file_hash"]).lower()
    except (ValueError, LookupError, TypeError):
        what = f"no {name}_dumps.csv with download_url and file_hash"
        raise LoadError(f"{index}: {what}; expected Jolpica's index") from None
