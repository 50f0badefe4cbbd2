"""racedata.loader.http, exchange: an answer arrives whole, within its limits of time and size, from
http(s) alone.
"""

import base64
import functools
import http.server
import io
import re
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from racedata.loader.errors import LoadError
from racedata.loader.exchange import fetch, target_of_redirect
from racedata.loader.http import NotFetched, Request

REDIRECTS = {"/ftp": "ftp://127.0.0.1/", "/file": "file:///", "/broken": "http://[::1/"}
REDIRECTS |= {"/port": "http://127.0.0.1:99999999999999999999/", "/user": "http://me@127.0.0.1/"}


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and at some paths what a server should not send."""

    protocol_version = "HTTP/1.1"
    asked: list[tuple[int, str, str | None]]  # the client's port, what it asks for, its credentials
    stopped: threading.Event

    def log_message(self, *args):
        pass

    def do_GET(self):
        authorization = self.headers["Authorization"] or self.headers["Proxy-Authorization"]
        self.asked.append((self.client_address[1], self.path, authorization))
        self.close_connection = self.path not in ("/one", "/two")
        if self.path == "/short":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"PK")
        elif self.path == "/endless":
            self.redirect("/data.zip")
            with suppress(OSError):
                while True:
                    self.wfile.write(bytes(1 << 16))
        elif self.path == "/circle":
            self.redirect("/circle")
        elif self.path in REDIRECTS:
            self.redirect(f"{REDIRECTS[self.path]}data.zip?secret")
        elif self.path == "/babble":
            self.wfile.write(b"\0\1\2\x1b[31m not HTTP\r\n\r\n")
        elif self.path in ("/silent", "/dripping", "/dripping-headers"):
            if self.path == "/dripping":
                self.send_response(200)
                self.end_headers()
            with suppress(OSError):
                while not self.stopped.wait(0.01):
                    self.wfile.write(b"" if self.path == "/silent" else b"H")
        else:
            super().do_GET()

    def redirect(self, url):
        self.send_response(302)
        self.send_header("Location", url)
        self.end_headers()


@contextmanager
def serving(folder):
    """Yields the address of a server over a folder, and what it is asked for."""
    facts = {"asked": [], "stopped": threading.Event()}
    handler = functools.partial(type("Handler", (Handler,), facts), directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", facts["asked"]
        facts["stopped"].set()
        httpd.shutdown()
        thread.join()


@pytest.fixture
def server(tmp_path):
    """A web server over a folder of its own. Yields the folder and the server's address."""
    folder = tmp_path / "www"
    folder.mkdir()
    with serving(folder) as (address, _):
        yield folder, address


def fetched(url, **limits):
    """The content of an answer."""
    file = io.BytesIO()
    fetch(Request(url, "the zip of a dump", **limits), file, lambda text: None)
    return file.getvalue()


def refused(*said, fault=LoadError):
    """The block is refused with a message that has these words in this order."""
    return pytest.raises(fault, match="(?s)" + ".*".join(map(re.escape, said)))


def test_a_wrong_answer_is_refused_in_one_line(server):
    _, address = server
    for path, *said in [
        ("none.zip", "status 404 Not Found; expected the zip of a dump"),
        ("short", "the connection ended 998 bytes before the answer did"),
        ("babble", "expected the zip of a dump"),
        ("circle", "more than 10 redirects; expected the zip of a dump"),
    ]:
        with refused(f"{address}/{path}: ", *said, fault=NotFetched) as error:
            fetched(f"{address}/{path}")
        assert "\n" not in str(error.value)
    with refused(":1/data.zip: Connection refused", fault=NotFetched):
        fetched("http://127.0.0.1:1/data.zip")


def test_a_redirect_with_an_endless_body_is_followed_at_once(server):
    folder, address = server
    (folder / "data.zip").write_bytes(b"PK")
    assert fetched(f"{address}/endless") == b"PK"


@pytest.mark.parametrize("path", REDIRECTS)
def test_a_redirect_to_another_kind_of_address_is_refused_without_showing_a_possible_key(
    server, path
):
    _, address = server
    with refused(f"{address}{path}: redirects to ") as error:
        fetched(f"{address}{path}")
    assert "secret" not in str(error.value)


def test_a_redirect_from_https_to_http_is_refused():
    url, target = "https://127.0.0.1/data.zip", "//127.0.0.2/data.zip"
    assert target_of_redirect(url, target, url) == f"https:{target}"
    with refused(f"{url}: redirects to an unusable address; expected https, or http after"):
        target_of_redirect(url, f"http:{target}", url)


def test_a_full_disk_of_temporary_files_is_named(server):
    folder, address = server
    (folder / "data.zip").write_bytes(b"PK")
    with (
        open("/dev/full", "wb", buffering=0) as full,
        refused(": no space left for temporary files; set TMPDIR to an"),
    ):
        fetch(Request(f"{address}/data.zip", "a zip"), full, lambda text: None)


@pytest.mark.parametrize(
    "url",
    [
        "http:///x.zip",
        "ftp://127.0.0.1/",
        "http://[::1/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:65536/",
    ],
)
def test_a_url_that_cannot_be_requested_is_refused(url):
    with refused(
        f"{url}: not the URL of a source; "
        "expected an http(s) URL with a host and, if any, a port from 1 to"
    ):
        fetched(url)


@pytest.mark.parametrize("url", ["http://user:secret@127.0.0.1:1/x.zip", "HTTPS://secret@[::1"])
def test_a_url_with_a_user_or_password_is_refused_without_showing_it(url):
    with refused("the URL of a source has a user or password in it; expected one without") as error:
        fetched(url)
    assert "secret" not in str(error.value)


def test_an_answer_has_a_limit_of_size(server):
    folder, address = server
    (folder / "large").write_bytes(bytes(100_000))
    with refused("more than 99,999 bytes; expected the zip of a dump"):
        fetched(f"{address}/large", size=99_999)
    assert fetched(f"{address}/large", size=100_000) == bytes(100_000)


@pytest.mark.parametrize("path", ["silent", "dripping", "dripping-headers"])
def test_an_answer_has_a_limit_of_time_however_slowly_it_arrives(server, path):
    _, address = server
    with refused("not complete in 0.2 seconds, or no data for 30; got ", fault=NotFetched):
        fetched(f"{address}/{path}", seconds=0.2)


class Ended(BaseException):
    """The program ends."""


@pytest.mark.parametrize("path", ["silent", "dripping"])
def test_a_request_ends_at_once_if_the_program_that_waits_for_it_ends(server, path):
    _, address = server

    def end(text):
        assert re.fullmatch(rf"{address}/{path}: \d+ bytes", text)
        raise Ended

    start = time.monotonic()
    with pytest.raises(Ended):
        fetch(Request(f"{address}/{path}", "a zip"), io.BytesIO(), end)
    assert time.monotonic() - start < 20


def test_requests_to_one_host_share_a_connection(tmp_path):
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    with serving(tmp_path) as (address, asked):
        assert (fetched(f"{address}/one"), fetched(f"{address}/two")) == (b"1", b"2")
    assert len({port for port, _, _ in asked}) == 1


def test_a_proxy_is_asked_as_the_environment_says(tmp_path, monkeypatch):
    (tmp_path / "one").write_text("1")
    with serving(tmp_path) as (proxy, asked):
        host = proxy.removeprefix("http://")
        monkeypatch.setenv("http_proxy", f"http://user:p%40ss@{host}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with refused("http://f1.example.org/x: status 404"):
            fetched("http://f1.example.org/x")
        assert fetched(f"{proxy}/one") == b"1"
        monkeypatch.setenv("http_proxy", host)
        with refused("http://f1.example.org/x: status 404"):
            fetched("http://f1.example.org/x")
    basic = "Basic " + base64.b64encode(b"user:p@ss").decode()
    assert [(path, secret) for _, path, secret in asked] == [
        ("http://f1.example.org/x", basic),
        ("/one", None),
        ("http://f1.example.org/x", None),
    ]
