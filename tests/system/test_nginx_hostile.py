"""nginx with deploy/nginx.conf, and the service behind it: hostile requests and slow clients."""

import asyncio
import os
import re
import signal
from collections import Counter
from contextlib import closing, contextmanager, suppress

import pytest
from support.hostile import (
    GOOD,
    GOOD_KEEP_ALIVE,
    MALFORMED,
    RACE,
    SMUGGLED,
    TRUNCATED,
    UNUSUAL,
    send,
    statuses,
)
from support.processes import OFF, has_ended, site_with_nginx, until
from support.traffic import Client, assert_served

HOSTILE = {**MALFORMED, **TRUNCATED, **UNUSUAL, **SMUGGLED}


@contextmanager
def attacked_site(database, folder):
    """The service behind nginx. Its workers and its log must survive."""
    log = f"--access-logfile {folder}/forwarded --access-logformat '\"%(r)s\" %(s)s'"
    settings = {"WEB_CONCURRENCY": "2", "GUNICORN_CMD_ARGS": log, **OFF}
    with site_with_nginx(database, folder, **settings) as (address, running):
        until(lambda: len(running.workers()) == 2)
        before = running.workers()
        yield address
        assert running.workers() == before
    written = (folder / "log").read_text()
    assert "Traceback" not in written and "[ERROR]" not in written
    assert max(len(line) for line in written.splitlines() if "Listening at:" not in line) <= 200


def test_a_hostile_request_is_refused_and_the_next_good_one_answered(sample_database, tmp_path):
    with attacked_site(sample_database, tmp_path) as site:
        for name, content in HOSTILE.items():
            answer = send(site, content, end=name in TRUNCATED, seconds=1)
            # 501: a transfer coding that the server does not know; 505: such a version of HTTP.
            lowest = 400 if name in MALFORMED else 100
            for status in statuses(answer):
                assert lowest <= status < 500 or status in (501, 505), name
            assert not re.search(b"Traceback|racedata/|racedata.db", answer), name
            assert statuses(send(site, GOOD)) == [200], name


def test_the_service_sees_only_requests_that_nginx_saw_too(sample_database, tmp_path):
    def logged(name):
        return Counter(re.findall(r'"(.*)" [0-9]{3}\b', (tmp_path / name).read_text()))

    with attacked_site(sample_database, tmp_path) as site:
        for content in SMUGGLED.values():
            # A smuggled request would be answered instead of the client's second request on the
            # connection.
            send(site, content + GOOD, seconds=0.5)
        assert statuses(send(site, GOOD)) == [200]
        nginx = int((tmp_path / "nginx.pid").read_text())
        os.kill(nginx, signal.SIGQUIT)  # it ends once it has logged each request
        until(lambda: has_ended(nginx))
    # once both have ended, their logs are complete
    assert logged("forwarded") <= logged("access.log")
    assert logged("forwarded")["GET /ergast/f1/2023/18.json HTTP/1.1"] >= 1


async def send_slowly(connection, content):
    """Sends a byte per second; returns whether the server closed before the end."""
    reader, writer = connection
    with closing(writer), suppress(ConnectionError):
        for byte in content:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(1)
            if reader.at_eof():
                return True
        return False
    return True


async def read_slowly(connection, content):
    """Sends a request for a large answer every second, and reads a byte per second."""
    reader, writer = connection
    with closing(writer), suppress(ConnectionError):
        while True:
            writer.write(content)
            await reader.read(1)
            await asyncio.sleep(1)


@pytest.mark.long
def test_hundreds_of_slow_clients_do_not_delay_a_good_one(sample_database, tmp_path):
    good = Client(RACE, connections=2, pause=0.1, requests=200)
    upload = GOOD.replace(b"\r\n\r\n", b"\r\nContent-Length: 900\r\n\r\n")
    large = GOOD_KEEP_ALIVE.replace(b"18.json", b"18/laps.json?limit=2000")

    async def all_at_once(site):
        opened = [await asyncio.open_connection(*site, limit=1) for _ in range(300)]
        for _, writer in opened[100:200]:
            writer.write(upload)
        tasks = (
            *(send_slowly(each, GOOD) for each in opened[:100]),
            *(send_slowly(each, b"x" * 900) for each in opened[100:200]),
            *(read_slowly(each, large) for each in opened[200:]),
        )
        slow = [asyncio.create_task(task) for task in tasks]
        await good.run(site)
        closed = await asyncio.gather(*slow[:100])
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        return closed

    with attacked_site(sample_database, tmp_path) as site:
        closed = asyncio.run(all_at_once(site))
    assert_served(good)
    assert good.statuses == {200: 200}
    # nginx closes a connection that takes more than 10 s for the headers
    assert closed == [True] * 100
