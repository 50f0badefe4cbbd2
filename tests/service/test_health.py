"""racedata.service.health: what `/healthz` says of the database, its sources and a
refused file, and the notice of the sample.
"""

import csv
import os
import sqlite3
from contextlib import closing, contextmanager

import webtest
from support import SAMPLE
from support.answers import client
from support.loads import remember

from racedata import __version__, database
from racedata.database import SCHEMA_VERSION, store_path
from racedata.service.app import create_app
from racedata.service.health import sample_notice
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings


def test_it_says_what_is_served(sample):
    answer = sample.get("/healthz", status=200).json
    assert answer["version"] == __version__
    assert (answer["status"], answer["schemaVersion"]) == ("ok", SCHEMA_VERSION)
    assert answer["builtAt"].endswith("Z")
    rows = {}
    for file in SAMPLE.glob("*.csv"):
        with file.open(newline="", encoding="utf-8") as lines:
            rows[file.stem] = sum(1 for _ in csv.DictReader(lines))
    assert answer["rows"] == rows | {"sessions": 176, "entries": 160}


AT = "2026-11-22T06:00:00Z"


def test_it_has_each_source_with_its_own_licence_and_no_folder_or_key_of_it(several_sources):
    base, *others = client(several_sources).get("/healthz").json["sources"]
    assert len(base.pop("checksum")) == 64 and base.pop("readAt")
    assert "results of 8 races (1957 to 2023), " in base.pop("gave")
    assert base == {"name": "sample", "address": None, "licence": "CC BY-NC-SA 3.0 and 4.0"}
    release, api = "https://example.org/f1db.zip", "https://example.org/f1"
    facts = {"checksum": None, "readAt": AT}
    f1db = {"name": "f1db", "address": release, "licence": "CC BY 4.0", **facts}
    assert others == [
        f1db | {"gave": "practice of 2 races"},
        {"name": api, "address": api, "licence": None, **facts, "gave": ""},
    ]


def test_it_says_of_each_source_when_it_was_asked_and_since_when_it_has_been_followed(
    several_sources,
):
    app = client(several_sources)
    noted = {
        "f1db": {"refreshedAt": AT, "followedSince": AT, "release": "0"},
        "/home/somebody/?": {"refreshedAt": AT},
        "later": {"followedSince": AT},
    }
    remember(several_sources, noted)
    *known, other, later = app.get("/healthz").json["sources"]
    for name in ("refreshedAt", "followedSince"):
        assert [source.get(name) for source in known] == [None, AT, None]
    assert other == {"name": "?", "refreshedAt": AT}
    assert later == {"name": "later", "followedSince": AT}


def test_it_says_what_has_changed_since_the_database_was_read(several_sources):
    data = Snapshot.read(str(several_sources))
    app = webtest.TestApp(create_app(Settings(), data))
    first = app.get("/healthz").json
    remember(several_sources, {"f1db": {"refreshedAt": AT}})
    assert app.get("/healthz").json["sources"][1]["refreshedAt"] == AT
    data.rejection = "is not a database"
    assert app.get("/healthz").json["refused"] == "The database file is not a database."
    data.rejection = None
    store_path(several_sources).unlink()
    assert app.get("/healthz").json == first


def test_the_notice_of_the_sample_names_a_file_only_if_it_is_not_the_default_one(
    sample_database, monkeypatch
):
    data = Snapshot.read(str(sample_database))
    assert sample_notice(data, follows=False).endswith(" f1db --database FILE")
    monkeypatch.setattr(database, "default_path", lambda environ: data.path)
    assert sample_notice(data, follows=False).endswith(" load tracinginsights f1db")
    assert sample_notice(data, follows=True).endswith(
        "loading its sources; if it cannot, its log says why."
    )


@contextmanager
def locked_store(path):
    with closing(sqlite3.connect(store_path(path), isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        os.utime(store_path(path), (0, 0))  # as if some of it were written
        yield


def test_it_answers_while_the_store_cannot_be_read_with_the_last_times_known(several_sources):
    def time(app):
        return app.get("/healthz", status=200).json["sources"][1].get("refreshedAt")

    remember(several_sources, {"f1db": {"refreshedAt": AT}})
    early, late = client(several_sources), client(several_sources)
    assert time(early) == AT
    with locked_store(several_sources):
        assert (time(early), time(late)) == (AT, None)
    assert time(late) == AT
    for content in (b"", b"SQLite format 3"):
        store_path(several_sources).write_bytes(content)
        assert time(client(several_sources)) is None
