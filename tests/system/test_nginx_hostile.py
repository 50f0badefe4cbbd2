"""nginx with deploy/nginx.conf, and the service behind it, under what no decent client sends or does."""

import asyncio
from collections import Counter

import pytest
from hostile import CUT_SHORT, GOOD, KEPT, RACE, REFUSED, SMUGGLED, UNUSUAL, send, statuses
from servers import nginx
from service import OFF, service, until
from traffic import Client

ODD = {**REFUSED, **CUT_SHORT, **UNUSUAL, **SMUGGLED}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def site(sample_database, folder):
    """nginx's (host, port)."""
    settings = {"WEB_CONCURRENCY": "2", "RACEDATA_TRUSTED_PROXIES": "unix", **OFF}
    seen = {"GUNICORN_CMD_ARGS": f"--access-logfile {folder}/forwarded --access-logformat '%(r)s'"}
    with (
        service(sample_database, folder / "log", folder / "gunicorn.sock", **settings, **seen) as running,
        nginx(folder, folder / "gunicorn.sock") as address,
    ):
        until(lambda: len(running.workers()) == 2)
        before = running.workers()
        yield address
        assert running.workers() == before
    said = (folder / "log").read_text()
    assert "Traceback" not in said and "[ERROR]" not in said


@pytest.mark.parametrize("name", ODD)
def test_what_is_wrong_is_refused_and_the_next_request_answered(site, name):
    answer = send(site, ODD[name], cut_short=name in CUT_SHORT, seconds=1)
    if name in REFUSED:
        # 501 and 505 are HTTP's own words for codings and versions that a server does not know.
        assert all(400 <= status < 500 or status in (501, 505) for status in statuses(answer))
    else:
        assert all(status < 500 or status in (501, 505) for status in statuses(answer))
    assert b"Traceback" not in answer and b"racedata" not in answer
    assert statuses(send(site, GOOD)) == [200]


def test_what_reaches_the_service_is_what_nginx_took_for_a_request(site, folder):
    def logged(name):
        return Counter((folder / name).read_text().splitlines())

    (folder / "requests").write_text("")
    (folder / "forwarded").write_text("")
    for content in SMUGGLED.values():
        # A client's second request on the connection is what a smuggled one would be answered to.
        send(site, content + GOOD, seconds=0.5)
    assert statuses(send(site, GOOD)) == [200]
    assert logged("forwarded") - logged("requests") == Counter()
    assert logged("forwarded")["GET /ergast/f1/2023/18.json HTTP/1.1"] >= 1


async def send_slowly(address, first, rest, seconds):
    """Sends `first` at once and a byte of the rest every second; returns whether the server closed before the end."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(first)
        for byte in rest[:seconds]:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(1)
    except ConnectionError:
        return True
    finally:
        writer.close()
    return reader.at_eof()


async def read_slowly(address, content, seconds):
    """Asks for much, again and again, and reads a byte every second."""
    reader, writer = await asyncio.open_connection(*address, limit=1)
    try:
        for _ in range(seconds):
            writer.write(content)
            await reader.read(1)
            await asyncio.sleep(1)
    except ConnectionError:
        pass
    finally:
        writer.close()


def test_hundreds_of_slow_clients_do_not_stop_a_good_one(site):
    seconds = 15
    good = Client(RACE, seconds, connections=2, pause=0.1)
    upload = GOOD.replace(b"\r\n\r\n", b"\r\nContent-Length: 900\r\n\r\n")
    large = KEPT.replace(b"18.json", b"18/laps.json?limit=2000")

    async def all_at_once():
        slow = [
            asyncio.create_task(task)
            for _ in range(100)
            for task in (
                send_slowly(site, b"", GOOD, seconds),
                send_slowly(site, upload, b"x" * 900, seconds),
                read_slowly(site, large, seconds),
            )
        ]
        await asyncio.sleep(1)
        await good.run(site)
        return sum([bool(closed) for closed in await asyncio.gather(*slow)])

    closed = asyncio.run(all_at_once())
    assert set(good.statuses) == {200} and good.broken == 0
    assert good.statuses[200] > 100
    assert closed >= 100  # nginx lets go of who takes more than 10 s for the headers
