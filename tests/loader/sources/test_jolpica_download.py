"""racedata.loader.sources.jolpica_download: the published dump is found, and a token goes to one
host alone.
"""

import hashlib
import io
import json
import re
import zipfile
from contextlib import ExitStack

import pytest
from support import SAMPLE
from support.apis import served
from support.loads import run_loader

from racedata.loader.errors import LoadError
from racedata.loader.exchange import is_for
from racedata.loader.http import Secret
from racedata.loader.sources.jolpica_download import INDEX, JolpicaDump, dump_in_index
from racedata.loader.sources.pace import Pace

TOKEN = "s3cret-t0ken"


def zipped():
    """A zip that only has to be recognised."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("formula_one_round.csv", "id\n")
    return file.getvalue()


ZIP = zipped()
SHA256 = hashlib.sha256(ZIP).hexdigest()


class Host:
    """A web server: `answers` has (status, headers, body) by path, `requests` the requests."""

    def __init__(self, stack):
        self.answers = {}
        server = stack.enter_context(served(lambda path: self.answers.get(path, (404, {}, b""))))
        self.url, self.requests = server.url.removesuffix("/ergast/f1"), server.requests

    def serve(self, path, body, status=200, **headers):
        self.answers[path] = (status, headers, body)

    def redirect(self, path, url):
        self.serve(path, b"", 302, Location=url)

    def index(self, **urls):
        """An index with these dumps, such as `latest`, in the form of Jolpica's serializers."""
        document = {
            f"{name}_dumps": {"csv": {"download_url": url, "file_hash": SHA256.upper()}}
            for name, url in urls.items()
        }
        self.serve("/index/", json.dumps({"available_types": ["csv"], **document}).encode())


@pytest.fixture
def api():
    """The host of the index."""
    with ExitStack() as stack:
        yield Host(stack)


@pytest.fixture
def storage():
    """The host that the dump's address redirects to."""
    with ExitStack() as stack:
        host = Host(stack)
        host.serve("/dump.zip?signature=1", ZIP)
        yield host


@pytest.fixture
def fetched(api, monkeypatch):
    """Returns the names of the files in the dump that the index names."""

    def fetched(token=""):
        monkeypatch.setenv("JOLPICA_TOKEN", token)
        with JolpicaDump(f"jolpica:{api.url}/index/", Pace()).dump(lambda text: None) as dump:
            return [file.name for file in dump.folder.iterdir()]

    return fetched


def test_without_a_token_the_delayed_dump_is_downloaded(api, storage, fetched):
    delayed = "/delayed/?dump_type=csv"
    api.index(delayed=f"{api.url}{delayed}", latest=f"{api.url}/latest")
    api.redirect(delayed, f"{storage.url}/dump.zip?signature=1")
    assert fetched() == ["formula_one_round.csv"]
    assert api.requests == [("/index/", None), (delayed, None)]


def test_with_a_token_the_latest_dump_is_downloaded_and_only_the_host_of_the_index_gets_the_token(
    api, storage, fetched
):
    api.index(delayed=f"{api.url}/delayed", latest=f"{api.url}/latest")
    api.redirect("/latest", f"{api.url}/latest/")
    api.redirect("/latest/", f"{storage.url}/dump.zip?signature=1")
    assert fetched(TOKEN) == ["formula_one_round.csv"]
    assert api.requests == [(path, f"Token {TOKEN}") for path in ("/index/", "/latest", "/latest/")]
    assert storage.requests == [("/dump.zip?signature=1", None)]


@pytest.mark.parametrize(
    ("url", "gets_it"),
    [
        ("https://API.jolpi.ca/data/", True),
        ("http://api.jolpi.ca/data/", False),
        ("https://api.jolpi.ca:8443/data/", False),
        ("https://api.jolpi.ca.example.org/data/", False),
        ("https://api.jolpi.ca@example.org/data/", False),
    ],
)
def test_the_token_is_for_one_scheme_host_and_port(url, gets_it):
    assert is_for(Secret(TOKEN, INDEX), url) == gets_it


# As Django REST framework answers, with which Jolpica-F1 is written.
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, b'{"detail":"Invalid token."}'),
        (403, b'{"detail":"You do not have permission to perform this action."}'),
    ],
)
def test_a_wrong_token_is_refused_in_one_line_that_does_not_show_it(api, fetched, status, body):
    api.serve("/index/", body, status)
    with pytest.raises(LoadError) as error:
        fetched(TOKEN)
    assert str(error.value) == f"{api.url}/index/: does not accept JOLPICA_TOKEN ({status})"


def test_a_dump_whose_checksum_differs_is_refused(api, fetched):
    api.index(delayed=f"{api.url}/delayed")
    api.serve("/delayed", ZIP + b"x")
    actual = hashlib.sha256(ZIP + b"x").hexdigest()
    said = f"its SHA-256 is {actual}; expected {SHA256}, as {api.url}/index/ says"
    with pytest.raises(LoadError, match=re.escape(f"{api.url}/delayed: {said}")):
        fetched()


def test_the_fields_of_jolpicas_own_index_are_read_by_their_names(jolpica):
    content = (jolpica / "dump-index.json").read_bytes()
    for name in ("latest", "delayed"):
        facts = json.loads(content)[f"{name}_dumps"]["csv"]
        found = dump_in_index(content, name, INDEX)
        assert found == (facts["download_url"], facts["file_hash"])


@pytest.mark.parametrize(
    "index",
    [
        b"<!doctype html><title>Down</title>",
        b"[]",
        b"[" * 100_000,
        b'{"latest_dumps": {"csv": {}}}',
        b'{"delayed_dumps": "none"}',
        b'{"delayed_dumps": {"csv": {"download_url": "https://example.org/"}}}',
    ],
)
def test_an_index_without_the_dump_is_refused(index):
    said = f"{INDEX}: no delayed_dumps.csv with download_url and file_hash; expected Jolpica's"
    with pytest.raises(LoadError, match=re.escape(said)):
        dump_in_index(index, "delayed", INDEX)


def test_an_additional_dump_is_downloaded_once(api, storage, tmp_path):
    api.index(delayed=f"{storage.url}/dump.zip?signature=1")
    run = run_loader(f"{SAMPLE} jolpica:{api.url}/index/", tmp_path / "x.db")
    assert run.stderr.startswith(f"racedata load: jolpica:{api.url}/index/: ")  # not a whole dump
    assert len(api.requests) == len(storage.requests) == 1
