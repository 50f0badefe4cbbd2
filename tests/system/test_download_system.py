"""`/racedata.db`: from the service alone, from nginx with deploy/nginx.conf, and through nginx if
that has no file to hand out.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest
from support import ROOT
from support.loads import changed
from support.processes import (
    OFF,
    children_of,
    open_files,
    own_memory,
    service,
    site_with_nginx,
    until,
)
from support.traffic import Client, assert_served, run
from support.traffic import get as ask

ADDRESS = "/racedata.db"
BALLAST = 20_000_000  # bytes: more than all buffers between a service and its client hold
ONE_WORKER = {"WEB_CONCURRENCY": "1", "RACEDATA_DOWNLOAD": "on"}


@pytest.fixture(scope="module")
def large(sample_database, tmp_path_factory):
    """A large database."""
    path = shutil.copy(sample_database, tmp_path_factory.mktemp("large") / "large.db")
    return changed(path, f"CREATE TABLE ballast AS SELECT randomblob({BALLAST})")


@pytest.fixture
def another(large, tmp_path):
    """Another large database, of the same size, written at another time: that is nginx's ETag."""
    path = shutil.copy(large, tmp_path / "another.db")
    changed(path, f"UPDATE ballast SET rowid = 1, [randomblob({BALLAST})] = zeroblob({BALLAST})")
    os.utime(path, (0, 0))
    return path


@contextmanager
def serving(front, database, folder, **settings):
    """The service over `database`: alone, with an nginx that hands out the file, or with an nginx
    that has to ask for it. Yields its address and itself.
    """
    settings = {**ONE_WORKER, **settings}
    if front == "service":
        with service(database, folder / "log", **settings) as running:
            yield running.address, running
    else:
        if front == "nginx":
            (folder / "files").mkdir()
            (folder / "files" / "racedata.db").symlink_to(database)
        with site_with_nginx(database, folder, **settings) as (address, running):
            yield address, running
    assert "Traceback" not in (folder / "log").read_text()


FRONTS = pytest.mark.parametrize("front", ["service", "nginx", "nginx without the file"])


@pytest.fixture
def handed_out(large, tmp_path):
    """An nginx that hands out the file."""
    with serving("nginx", large, tmp_path) as (address, _):
        yield address


CLIENTS = (f"127.1.{number // 250}.{number % 250 + 1}" for number in range(10_000))


def get(site, method="GET", source=None, path=ADDRESS, **headers):
    """The response to a request for the file, and its body. Each request is another client's, if
    `source` names none.
    """
    return ask(site, path, source or next(CLIENTS), method, **headers)


def started(site, stack, source=None):
    """A download of which only the beginning has been read: its stream, and its size."""
    connection = stack.enter_context(socket.socket())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.bind((source or next(CLIENTS), 0))
    connection.connect(site)
    connection.sendall(f"GET {ADDRESS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    stream = stack.enter_context(connection.makefile("rb"))
    assert stream.readline() == b"HTTP/1.1 200 OK\r\n"
    fields = dict(line.lower().split(b": ") for line in iter(stream.readline, b"\r\n"))
    assert int(fields[b"content-length"]) > BALLAST
    return stream, int(fields[b"content-length"])


CONDITIONS = [
    ({"If_None_Match": "{etag}"}, 304),
    ({"If_None_Match": '"other", W/{etag}'}, 304),
    ({"If_None_Match": "*"}, 304),
    ({"If_None_Match": '"other"'}, 200),
    ({"If_None_Match": "{etag}", "Range": "bytes=0-9"}, 304),
]


@FRONTS
def test_a_download_is_the_file_a_head_describes_it_and_conditions_follow_rfc_9110(
    front, large, tmp_path
):
    """The ETag of the service is the checksum, and it has no ranges."""
    content = large.read_bytes()
    with serving(front, large, tmp_path, **OFF) as (site, _):
        response, body = get(site)
        head, nothing = get(site, "HEAD")
        etag = head.headers["ETag"]
        for sent, status in CONDITIONS:
            sent = {name: value.format(etag=etag) for name, value in sent.items()}
            found, again = get(site, **sent)
            assert (found.status, found.headers["ETag"]) == (status, etag), sent
            assert again == (content if status == 200 else b""), sent
        if front != "nginx":
            assert etag == f'"{content[-32:].hex()}"'
            ranged, whole = get(site, Range="bytes=0-9")
            assert (ranged.status, whole) == (200, content)
    assert (response.status, body, nothing) == (200, content, b"")
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["Content-Type"] == "application/vnd.sqlite3"
    assert response.headers["Link"] == '<./data#sources>; rel="license"'
    assert response.headers.get_all("Access-Control-Allow-Origin") == ["*"]
    assert response.headers.get_all("X-Content-Type-Options") == ["nosniff"]
    for name in ("ETag", "Last-Modified", "Content-Length", "Content-Type", "Link"):
        assert head.headers.get_all(name) == response.headers.get_all(name)


@FRONTS
def test_forty_slow_clients_neither_delay_others_nor_take_memory_and_end_with_the_file_they_began(
    front, large, another, tmp_path
):
    database = shutil.copy(large, tmp_path / "racedata.db")
    content = database.read_bytes()
    first, small = (Client("/ergast/f1/2023/18/results.json", requests=100) for _ in range(2))
    with serving(front, database, tmp_path, **OFF) as (site, running), ExitStack() as stack:
        old = get(site)[0].headers["ETag"]
        (worker,) = running.workers()
        run(site, first)
        before = own_memory(worker)
        streams = [started(site, stack) for _ in range(40)]
        run(site, small)
        assert_served(small)
        # one copy of the file would be 20 MB
        assert own_memory(worker) - before < 10
        os.replace(another, database)
        until(lambda: get(site, "HEAD")[0].headers["ETag"] != old)
        for stream, size in streams[:3]:
            assert stream.read(size) == content


@pytest.mark.parametrize("front", ["nginx", "nginx without the file"])
def test_slow_downloads_take_no_space_on_the_disk_of_nginx(front, large, tmp_path):
    with serving(front, large, tmp_path, **OFF) as (site, _), ExitStack() as stack:
        for _ in range(24):
            started(site, stack)
        workers = children_of(int((tmp_path / "nginx.pid").read_text()))
        opened = [name for worker in workers for name in open_files(worker)]
        # nginx deletes its temporary files while they are still open
        assert [name for name in opened if name.startswith(f"{tmp_path}/nginx-proxy")] == []
        assert [path for path in (tmp_path / "nginx-proxy").rglob("*") if path.is_file()] == []
        assert opened.count(str(large)) == (24 if front == "nginx" else 0)


def test_nginx_lets_a_client_download_ten_files_at_once_and_then_a_few_a_minute(handed_out):
    """And two at the same time."""
    answers = [get(handed_out, source="127.0.0.2", Range="bytes=0-9")[0] for _ in range(12)]
    assert [answer.status for answer in answers[:11]] == [206] * 10 + [429]
    assert answers[10].headers["Content-Type"] == "application/problem+json"
    assert answers[10].headers["Retry-After"] == "60"
    # a HEAD counts for nothing, and other clients and addresses have limits of their own
    assert get(handed_out, "HEAD", source="127.0.0.2")[0].status == 200
    assert get(handed_out, source="127.0.0.2", path="/healthz")[0].status == 200
    with ExitStack() as stack:
        for _ in range(2):
            started(handed_out, stack, source="127.0.0.3")
        assert get(handed_out, source="127.0.0.3")[0].status == 429
        assert get(handed_out, source="127.0.0.4")[0].status == 200


def test_nginx_hands_out_the_files_in_its_folder_and_nothing_else(handed_out, large, tmp_path):
    (tmp_path / "files" / "ergast.zip").write_bytes(b"PK")
    (tmp_path / "files" / "notes.txt").write_text("private")
    (tmp_path / "files" / "racedata.sources.db").write_text("private")
    response, body = get(handed_out, path="/ergast.zip")
    assert (response.status, body) == (200, b"PK")
    assert response.headers["Content-Type"] == "application/zip"
    for path in ("/notes.txt", "/racedata.sources.db", "/../nginx.conf", "/none.db", "/a/none.db"):
        assert get(handed_out, path=path)[0].status in (400, 404)
    for method in ("OPTIONS", "POST"):
        assert get(handed_out, method)[0].status == 405
    response, body = get(handed_out, Range="bytes=100-199")
    assert (response.status, body) == (206, large.read_bytes()[100:200])
    response, _ = get(handed_out, Range="bytes=99999999999-")
    assert response.status == 416
    assert response.headers["Content-Type"] == "application/problem+json"


def test_the_commands_of_the_document_offer_the_files_and_fetch_check_and_resume_them(
    sample_database, tmp_path
):
    section = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
    section = section.partition("\n## Offering the database\n")[2].partition("\n## ")[0]
    offer, export = re.findall(r"(?:^    .*\n)+", section, re.M)
    cells = [cell.replace("\\|", "|") for cell in re.findall(r"`((?:[^`])+)`", section)]
    fetch, resume = (cell for cell in cells if cell.startswith("curl"))
    ours, theirs = (cell for cell in cells if cell.startswith(("head", "tail")))
    with serving("nginx without the file", sample_database, tmp_path, **OFF) as (site, _):

        def shell(script):
            for documented, here in [
                ("sudo systemctl restart racedata", ""),
                ("sudo ", ""),
                ("/etc/racedata.env", f"{tmp_path}/env"),
                ("/opt/racedata/data/racedata.db", str(sample_database)),
                ("/var/www/racedata", f"{tmp_path}/files"),
                (".venv/bin/racedata", f"{sys.executable} -m racedata"),
                ("http://127.0.0.1", "http://{}:{}".format(*site)),
            ]:
                script = script.replace(documented, here)
            environ = {**os.environ, "RACEDATA_DATABASE": str(sample_database)}
            ended = subprocess.run(
                ["sh", "-ec", script], cwd=tmp_path, env=environ, capture_output=True, text=True
            )
            assert ended.returncode == 0, ended.stderr
            return ended.stdout

        content, got = sample_database.read_bytes(), tmp_path / "racedata.db"
        shell(offer)
        assert (tmp_path / "env").read_text() == "RACEDATA_DOWNLOAD=on\n"
        assert got.read_bytes() == content
        got.unlink()
        shell(fetch)
        assert got.read_bytes() == content
        got.write_bytes(b"kept")
        shell(fetch)
        assert got.read_bytes() == b"kept"  # a 304
        got.write_bytes(content[:1000])
        shell(resume)
        assert got.read_bytes() == content
        assert shell(ours).split()[0] == shell(theirs)
        shell(export)
        for name in ("ergast.zip", "more.zip"):
            response, body = get(site, path=f"/{name}")
            assert (response.status, body[:2]) == (200, b"PK")
