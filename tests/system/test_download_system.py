"""racedata.service.download: `/racedata.db` from a real gunicorn, and through nginx with
deploy/nginx.conf.
"""

import http.client
import os
import shutil
import socket
from contextlib import ExitStack, contextmanager

import pytest
from support.loads import changed
from support.processes import (
    OFF,
    memory,
    nginx,
    nginx_sockets,
    service,
    site_with_nginx,
    until,
)
from support.traffic import Client, assert_served, run, traffic

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
    """Another large database, of the same size."""
    path = shutil.copy(large, tmp_path / "another.db")
    return changed(
        path, f"UPDATE ballast SET rowid = 1, [randomblob({BALLAST})] = zeroblob({BALLAST})"
    )


@contextmanager
def serving(front, database, folder, **settings):
    """The service over `database`, without nginx or behind it. Yields its address and itself."""
    settings = {**ONE_WORKER, **settings}
    if front == "nginx":
        with site_with_nginx(database, folder, **settings) as (address, running):
            yield address, running
    else:
        with service(database, folder / "log", **settings) as running:
            yield running.address, running
    assert "Traceback" not in (folder / "log").read_text()


FRONTS = ["gunicorn", "nginx"]


@pytest.fixture(scope="module", params=[*FRONTS, "threads"])
def site(request, large, tmp_path_factory):
    """A service without rate limits that offers its database."""
    settings = {**OFF, "GUNICORN_CMD_ARGS": "--threads=4" if request.param == "threads" else ""}
    with serving(request.param, large, tmp_path_factory.mktemp("site"), **settings) as (address, _):
        yield address


@pytest.fixture(params=FRONTS)
def replaceable(request, large, tmp_path):
    """A service without rate limits over a database that a test may replace."""
    database = shutil.copy(large, tmp_path / "racedata.db")
    with serving(request.param, database, tmp_path, **OFF) as (address, running):
        yield address, running, database


def get(site, method="GET", source="127.0.0.1", **headers):
    """The response to a request for the file, and its body; `_` in names means `-`."""
    connection = http.client.HTTPConnection(*site, source_address=(source, 0), timeout=60)
    connection.request(
        method, ADDRESS, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def etag_of(database):
    """The ETag of a database: its checksum, which is at its end."""
    return f'"{database.read_bytes()[-32:].hex()}"'


def started(site, stack):
    """A download of which only the beginning has been read: the connection, and its stream."""
    connection = stack.enter_context(socket.socket())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.connect(site)
    connection.sendall(f"GET {ADDRESS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    stream = stack.enter_context(connection.makefile("rb"))
    assert stream.readline() == b"HTTP/1.1 200 OK\r\n"
    fields = dict(line.lower().split(b": ") for line in iter(stream.readline, b"\r\n"))
    assert int(fields[b"content-length"]) > BALLAST
    return stream, int(fields[b"content-length"])


def test_a_download_is_the_file_and_its_etag_is_the_checksum(site, large):
    response, body = get(site)
    assert response.status == 200
    assert body == large.read_bytes()
    assert response.headers["ETag"] == etag_of(large)
    assert response.headers["Accept-Ranges"] == "bytes"
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["Content-Type"] == "application/vnd.sqlite3"
    assert response.headers["Link"].startswith('<./#sources>; rel="license"; title*=')
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    head, nothing = get(site, "HEAD")
    assert nothing == b""
    for name in ("ETag", "Last-Modified", "Content-Length", "Content-Type", "Link"):
        assert head.headers.get_all(name) == response.headers.get_all(name)


OTHER = f'"{"0" * 64}"'


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If-None-Match": "{etag}"}, 304),
        ({"If-None-Match": f"{OTHER}, W/{{etag}}"}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": OTHER}, 200),
        ({"If-None-Match": OTHER, "If-Modified-Since": "{date}"}, 200),
        ({"If-Modified-Since": "{date}"}, 304),
        ({"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"}, 200),
        ({"If-None-Match": "{etag}", "Range": "bytes=0-9"}, 304),
        ({"If-Match": "{etag}"}, 200),
        ({"If-Match": f"{OTHER}, {{etag}}"}, 200),
        ({"If-Match": "*"}, 200),
        ({"If-Match": OTHER}, 412),
        ({"If-Match": "W/{etag}"}, 412),
        ({"If-Match": OTHER, "If-None-Match": "{etag}"}, 412),
        ({"If-Unmodified-Since": "{date}"}, 200),
        ({"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"}, 412),
        ({"If-Unmodified-Since": "yesterday"}, 200),
    ],
)
def test_conditions_follow_rfc_9110(site, large, headers, status):
    head, _ = get(site, "HEAD")
    facts = {"etag": head.headers["ETag"], "date": head.headers["Last-Modified"]}
    response, body = get(
        site, **{name.replace("-", "_"): value.format(**facts) for name, value in headers.items()}
    )
    assert response.status == status
    assert response.headers["ETag"] == facts["etag"]
    assert (body == large.read_bytes()) == (status == 200)


@pytest.mark.parametrize(
    ("field", "part"),
    [
        ("bytes=0-0", slice(0, 1)),
        ("bytes=100-199", slice(100, 200)),
        ("Bytes=19999999-", slice(19_999_999, None)),
        ("bytes=19999999-99999999999", slice(19_999_999, None)),
        ("bytes=-32", slice(-32, None)),
        ("bytes=-99999999999", slice(0, None)),
        ("bytes=0-", slice(0, None)),
        ("bytes=0-9,20-29", None),  # several
        ("rows=0-9", None),  # another unit
        ("bytes=99999999999-", 416),
        ("bytes=-0", 416),
        ("bytes=9-0", 416),
        ("bytes=x", 416),
    ],
)
def test_a_range_is_a_part_of_the_file(site, large, field, part):
    content = large.read_bytes()
    response, body = get(site, Range=field)
    if part == 416:
        assert response.status == 416
        assert response.headers["Content-Range"] == f"bytes */{len(content)}"
        assert response.headers["Content-Type"] == "application/problem+json"
        return
    assert body == content[part or slice(None)]
    assert response.status == (206 if response.headers["Content-Range"] else 200)
    assert response.headers["ETag"] == etag_of(large)
    if part:
        start, end, _ = part.indices(len(content))
        if (start, end) != (0, len(content)):
            assert response.status == 206
            assert response.headers["Content-Range"] == f"bytes {start}-{end - 1}/{len(content)}"
    else:
        assert response.status == 200


def test_only_the_etag_of_the_file_makes_a_range_count(site, large):
    content, etag = large.read_bytes(), etag_of(large)
    date = get(site, "HEAD")[0].headers["Last-Modified"]
    assert get(site, Range="bytes=5-9", If_Range=etag)[1] == content[5:10]
    for other in (OTHER, f"W/{etag}", date):
        response, body = get(site, Range="bytes=5-9", If_Range=other)
        assert (response.status, body == content) == (200, True)


def test_a_download_that_is_resumed_after_a_replacement_is_refused_or_a_whole_new_file(
    replaceable, another
):
    site, _, database = replaceable
    old, new = etag_of(database), etag_of(another)
    response, _ = get(site, Range="bytes=0-9999999")
    assert (response.status, response.headers["ETag"]) == (206, old)
    content = another.read_bytes()
    os.replace(another, database)
    until(lambda: get(site, "HEAD")[0].headers["ETag"] == new)
    response, body = get(site, Range="bytes=10000000-", If_Range=old)
    assert (response.status, response.headers["ETag"]) == (200, new)
    assert body == content
    assert get(site, Range="bytes=10000000-", If_Match=old)[0].status == 412
    response, body = get(site, Range="bytes=10000000-", If_Match=new)
    assert (response.status, body) == (206, content[10_000_000:])


def test_a_download_continues_with_the_file_that_it_began_with(replaceable, another):
    site, _, database = replaceable
    content, new = database.read_bytes(), etag_of(another)
    with ExitStack() as stack:
        stream, size = started(site, stack)
        os.replace(another, database)
        until(lambda: get(site, "HEAD")[0].headers["ETag"] == new)
        assert stream.read(size) == content


def test_a_file_that_is_overwritten_breaks_a_download_rather_than_being_mixed_into_it(
    large, another, tmp_path
):
    database = shutil.copy(large, tmp_path / "racedata.db")
    with serving("gunicorn", database, tmp_path, **OFF) as (site, _), ExitStack() as stack:
        stream, size = started(site, stack)
        with database.open("r+b") as file:
            file.write(another.read_bytes())
        assert len(stream.read(size)) < size
        new = etag_of(another)
        until(lambda: get(site, "HEAD")[0].headers["ETag"] == new)
        assert get(site)[1] == another.read_bytes()


def test_forty_slow_clients_neither_delay_others_nor_take_memory(replaceable):
    site, running, database = replaceable
    content = database.read_bytes()
    small = Client("/ergast/f1/2023/18/results.json", requests=100)
    assert get(site)[0].status == 200
    (worker,) = running.workers()
    run(site, Client("/ergast/f1/2023/18/results.json", requests=100))
    before = memory(worker)
    with ExitStack() as stack:
        streams = [started(site, stack)[0] for _ in range(40)]
        run(site, small)
        assert_served(small)
        # one copy of the file would be 20 MB
        assert memory(worker) - before < 10
        for stream in streams[:3]:
            assert stream.read(len(content)) == content


def test_forty_clients_at_once_get_the_whole_file_and_others_their_answers(replaceable):
    site, running, database = replaceable
    downloads = Client(ADDRESS, connections=40, requests=40)
    small = Client("/ergast/f1/2023/18/results.json", requests=100)
    assert get(site, "HEAD")[0].status == 200
    (worker,) = running.workers()
    with traffic(site, downloads, small) as ended:
        most = memory(worker)
        while not ended.wait(0.1):
            most = max(most, memory(worker))
    assert_served(downloads, small)
    assert downloads.bodies == {database.read_bytes()}
    assert most < 200  # forty copies would be 800 MB


def test_nginx_fetches_a_file_once_and_a_new_one_once_more(large, another, tmp_path):
    database = shutil.copy(large, tmp_path / "racedata.db")

    def cached():
        return [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]

    with serving("nginx", database, tmp_path, **OFF) as (site, _):
        run(site, Client(ADDRESS, connections=10, requests=10))
        (first,) = cached()
        before = first.stat()
        assert get(site, Range="bytes=1-2")[0].status == 206
        assert first.stat() == before
        new = etag_of(another)
        os.replace(another, database)
        until(lambda: get(site, "HEAD")[0].headers["ETag"] == new)
        run(site, Client(ADDRESS, connections=10, requests=10))
        assert len(cached()) == 2


def test_nginx_sends_no_other_file_than_the_one_that_was_checked(large, tmp_path):
    settings = {**ONE_WORKER, **OFF, "RACEDATA_TRUSTED_PROXIES": "unix"}
    # as if another worker, with a newer file, answered
    newer = ("If-Match $racedata_etag", "If-Match '\"newer\"'")
    with (
        service(large, tmp_path / "log", nginx_sockets(tmp_path), **settings),
        nginx(tmp_path, newer) as site,
    ):
        response, _ = get(site)
        assert response.status == 503
        assert response.headers["Retry-After"] == "10"
        assert response.headers["Content-Type"] == "application/problem+json"


def test_a_client_cannot_pretend_to_be_nginx(site, large):
    response, body = get(site, X_Sendfile_Type="X-Accel-Redirect")
    assert (response.status, len(body)) == (200, large.stat().st_size)


def test_a_client_cannot_reach_what_nginx_fetches(site):
    connection = http.client.HTTPConnection(*site, timeout=10)
    connection.request("GET", "/racedata-download")
    assert connection.getresponse().status == 404
    connection.close()


@pytest.mark.parametrize("front", FRONTS)
def test_the_limits_count_a_download_by_its_size(front, large, tmp_path):
    limits = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "400/day"}
    whole = -(-large.stat().st_size // 262_144)  # 78
    with serving(front, large, tmp_path, **limits) as (site, _):
        left = 400
        for headers, tokens in [
            ({}, whole),
            ({}, whole),  # now nginx has it
            ({"method": "HEAD"}, 1),
            ({"If_None_Match": etag_of(large)}, 1),
            ({"If_Match": OTHER}, 1),
            ({"Range": "bytes=0-99"}, 1),
            ({"Range": "bytes=0-262144"}, 2),
            ({"Range": "bytes=99999999999-"}, 1),
            ({"Range": "bytes=0-99", "If_Range": OTHER}, whole),
        ]:
            response, _ = get(site, **headers)
            left -= tokens
            assert response.headers.get_all("RateLimit") == [response.headers["RateLimit"]]
            assert response.headers["RateLimit"].startswith(f'"sustained";r={left};'), headers


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize(
    "headers",
    [
        {"Range": "bytes=0-0", "If_Range": ""},
        {"Range": "\tbytes=0-0"},
        {"Range": " bytes=0-0\t"},
        {"Range": "bytes= 0-0", "If_Range": ""},
    ],
)
def test_no_form_of_a_range_gets_more_bytes_than_were_counted(front, headers, large, tmp_path):
    limits = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "400/day"}
    with serving(front, large, tmp_path, **limits) as (site, _):
        response, body = get(site, **headers)
        counted = 400 - int(response.headers["RateLimit"].split(";")[1].removeprefix("r="))
        assert len(body) <= counted * 262_144


@pytest.mark.parametrize("front", FRONTS)
def test_a_client_gets_as_many_downloads_as_a_limit_allows(front, large, tmp_path):
    limits = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "12/day"}
    with serving(front, large, tmp_path, **limits, WEB_CONCURRENCY="2") as (site, _):
        # a download counts as three, a quarter of the limit
        client = Client(ADDRESS, connections=5, requests=15, source="127.0.0.2")
        other = Client(ADDRESS, connections=1, requests=5, source="127.0.0.3")
        run(site, client, other)
        assert client.statuses == {200: 4, 429: 11}
        assert other.statuses == {200: 4, 429: 1}


def test_files_that_nginx_fetches_count_for_nobody_and_their_folder_may_be_emptied(large, tmp_path):
    limits = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "2/day"}
    with serving("nginx", large, tmp_path, **limits) as (site, _):
        for client in range(2, 6):
            response, body = get(site, source=f"127.0.0.{client}")
            assert (response.status, body == large.read_bytes()) == (200, True)
            for path in (tmp_path / "cache").iterdir():
                path.unlink()
