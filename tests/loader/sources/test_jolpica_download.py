"""racedata.loader.sources.jolpica_download: the published dump is found, and a token goes to one
host alone.
"""

import hashlib
import io
import json
import re
import zipfile
from contextlib import ExitStack, contextmanager

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

    def index(self, **entries):
        """An index with these dumps, such as `latest`, in the form of Jolpica's serializers."""
        document = {f"{name}_dumps": {"csv": entry} for name, entry in entries.items()}
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


@contextmanager
def published(token, index):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JOLPICA_TOKEN", token or "")
        with JolpicaDump(f"jolpica:{index}", Pace()).dump(lambda text: None) as dump:
            yield dump


def fetched(api, token=None):
    """The names of the files in the dump that the index names."""
    with published(token, f"{api.url}/index/") as dump:
        return [file.name for file in dump.folder.iterdir()]


def entry(url, sha256=SHA256):
    return {
        "dump_type": "csv",
        "file_hash": sha256,
        "file_size": len(ZIP),
        "uploaded_at": "2026-11-23T03:10:44.120000Z",
        "download_url": url,
    }


def refused(api, said, token=None):
    with pytest.raises(LoadError, match=re.escape(said)) as error:
        fetched(api, token)
    assert "\n" not in str(error.value) and TOKEN not in str(error.value)


def test_without_a_token_the_delayed_dump_is_downloaded(api, storage):
    delayed = "/delayed/?dump_type=csv"
    api.index(delayed=entry(f"{api.url}{delayed}"), latest=entry(f"{api.url}/latest"))
    api.redirect(delayed, f"{storage.url}/dump.zip?signature=1")
    for no_token in (None, ""):
        assert fetched(api, no_token) == ["formula_one_round.csv"]
    assert api.requests == [("/index/", None), (delayed, None)] * 2


def test_a_dump_that_is_not_there_is_refused_in_one_line(api):
    """Jolpica answers so if it has no dump (jolpica_api/dumps/views.py)."""
    api.index(delayed=entry(f"{api.url}/delayed/?dump_type=csv"))
    body = b'{"error":"No dumps found older than 14 days of type \'csv\'"}'
    api.serve("/delayed/?dump_type=csv", body, 404)
    refused(api, f"{api.url}/delayed/: status 404 Not Found; expected the zip of a dump")


def test_with_a_token_the_latest_dump_is_downloaded_and_only_the_host_of_the_index_gets_the_token(
    api, storage
):
    api.index(delayed=entry(f"{api.url}/delayed"), latest=entry(f"{api.url}/latest"))
    api.redirect("/latest", f"{api.url}/latest/")
    api.redirect("/latest/", f"{storage.url}/dump.zip?signature=1")
    assert fetched(api, TOKEN) == ["formula_one_round.csv"]
    assert api.requests == [(path, f"Token {TOKEN}") for path in ("/index/", "/latest", "/latest/")]
    assert storage.requests == [("/dump.zip?signature=1", None)]


def test_an_index_that_redirects_to_another_host_does_not_take_the_token_there(api, storage):
    api.redirect("/index/", f"{storage.url}/index/")
    storage.index(latest=entry(f"{storage.url}/dump.zip?signature=1"))
    assert fetched(api, TOKEN) == ["formula_one_round.csv"]
    assert {token for _, token in storage.requests} == {None}


@pytest.mark.parametrize(
    ("url", "gets_it"),
    [
        ("https://api.jolpi.ca/data/", True),
        ("https://API.jolpi.ca/data/", True),
        ("http://api.jolpi.ca/data/", False),
        ("https://api.jolpi.ca:8443/data/", False),
        ("https://jolpi.ca/data/", False),
        ("https://api.jolpi.ca.example.org/data/", False),
        ("https://api.jolpi.ca@example.org/data/", False),
        ("https://example.org/https://api.jolpi.ca/", False),
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
def test_a_wrong_token_is_refused_in_one_line_that_does_not_show_it(api, status, body):
    api.serve("/index/", body, status)
    refused(
        api,
        f"{api.url}/index/: does not accept JOLPICA_TOKEN ({status})",
        TOKEN,
    )
    api.index(latest=entry(f"{api.url}/latest"))
    api.serve("/latest", body, status)
    refused(
        api,
        f"{api.url}/latest: does not accept JOLPICA_TOKEN ({status})",
        TOKEN,
    )


def test_a_storage_that_refuses_a_request_does_not_blame_the_token(api, storage):
    api.index(latest=entry(f"{api.url}/latest"))
    api.redirect("/latest", f"{storage.url}/expired")
    storage.serve("/expired", b"<Error><Code>AccessDenied</Code></Error>", 403)  # as S3 does
    refused(api, f"{api.url}/latest: status 403 Forbidden; expected the zip of a dump", TOKEN)


def test_a_token_that_a_server_repeats_is_not_shown(api):
    api.index(latest=entry(f"{api.url}/{TOKEN}"))
    refused(api, f"{api.url}/…: status 404 Not Found; expected the zip of a dump", TOKEN)
    api.redirect(f"/{TOKEN}", f"ftp://{TOKEN}/")
    refused(api, f"{api.url}/…: redirects to 'ftp'; expected http or https", TOKEN)


def test_a_dump_whose_checksum_differs_is_refused(api):
    api.index(delayed=entry(f"{api.url}/delayed", SHA256.upper()))
    api.serve("/delayed", ZIP)
    assert fetched(api) == ["formula_one_round.csv"]
    api.serve("/delayed", ZIP + b"x")
    actual = hashlib.sha256(ZIP + b"x").hexdigest()
    refused(
        api,
        f"{api.url}/delayed: its SHA-256 is {actual}; expected {SHA256}, as {api.url}/index/ says",
    )


URL = "https://api.jolpi.ca/data/dumps/download/delayed/"


def test_the_fields_of_jolpicas_own_index_are_read_by_their_names(jolpica):
    content = (jolpica / "dump-index.json").read_bytes()
    for name in ("latest", "delayed"):
        facts = json.loads(content)[f"{name}_dumps"]["csv"]
        found = dump_in_index(content, name, INDEX)
        assert found == (facts["download_url"], facts["file_hash"])


NO_ENTRY = "no delayed_dumps.csv; expected the delayed dump in CSV files"


def delayed(**facts):
    """An index with a delayed dump in which some facts are different."""
    return {"delayed_dumps": {"csv": entry(URL) | facts}}


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (b"<!doctype html><title>Down</title>", "not JSON; expected Jolpica's index"),
        (b"\xff{}", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"", "not JSON"),
        ({}, NO_ENTRY),
        ("delayed_dumps", NO_ENTRY),
        ({"latest_dumps": {"csv": entry(URL)}}, NO_ENTRY),
        ({"delayed_dumps": URL}, NO_ENTRY),
        ({"delayed_dumps": {"csv": [entry(URL)]}}, NO_ENTRY),
        (delayed(file_hash=None), "file_hash is 'None'"),
        (delayed(file_hash=SHA256[1:]), "expected a SHA-256"),
        (delayed(download_url="/delayed/"), "download_url is '/delayed/'"),
        (delayed(download_url=URL.replace("https", "http")), "expected an https address"),
    ],
)
def test_an_index_without_the_entry_or_with_a_wrong_one_is_refused(index, said):
    content = index if isinstance(index, bytes) else json.dumps(index).encode()
    with pytest.raises(LoadError, match=re.escape(f"{INDEX}: ") + ".*" + re.escape(said)):
        dump_in_index(content, "delayed", INDEX)


def test_another_index_is_named_by_its_url(api, storage, tmp_path):
    api.index(delayed=entry(f"{api.url}/delayed"))
    api.redirect("/delayed", f"{storage.url}/dump.zip?signature=1")
    run = run_loader(f"jolpica:{api.url}/index/", tmp_path / "x.db")
    assert api.requests == [("/index/", None), ("/delayed", None)]
    assert run.stderr.startswith(f"racedata load: jolpica:{api.url}/index/: ")  # not a whole dump


def test_an_additional_dump_is_downloaded_once(api, storage, tmp_path):
    api.index(delayed=entry(f"{storage.url}/dump.zip?signature=1"))
    run_loader(f"{SAMPLE} jolpica:{api.url}/index/", tmp_path / "x.db")
    assert len(api.requests) == len(storage.requests) == 1


def test_the_loader_does_not_show_the_token(tmp_path):
    """Without a way to the network: the request goes to a proxy that refuses connections."""
    proxy = {
        "https_proxy": "http://127.0.0.1:1",
        "no_proxy": "",
        "JOLPICA_TOKEN": TOKEN,
        "PATH": "/usr/bin:/bin",
    }
    run = run_loader("jolpica", tmp_path / "x.db", env=proxy)
    assert run.returncode == 1 and run.stdout == ""
    said = f"{re.escape(INDEX)}: .*refused; nothing was changed"
    assert re.fullmatch(f"racedata load: {said}\n", run.stderr)
    assert TOKEN not in run.stderr
