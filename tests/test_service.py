"""The whole service under real traffic: rate limits over several workers, and over their deaths.

SERVICE_SECONDS makes the floods longer than the few seconds they take here.
"""

import os
import random
import shutil
import signal
import threading

import pytest
from service import service
from traffic import Client, run

SECONDS = float(os.environ.get("SERVICE_SECONDS", "3"))
ADDRESS = "/ergast/f1/2023/18.json"
FOUR_WORKERS = {"WEB_CONCURRENCY": "4", "RACEDATA_TRUSTED_PROXIES": ""}


def assert_limited(client, quota, per_second):
    """As many 200s as a bucket of `quota` allows in the time from the first request to the last answer, or one less."""
    bound = quota + per_second * (client.ended - client.began)
    assert bound - 2 < client.statuses[200] <= bound
    assert set(client.statuses) == {200, 429}
    assert client.statuses[429] > 100


def test_four_workers_allow_a_flooding_client_no_more_than_its_limit_and_others_theirs(sample_database, tmp_path):
    flood = Client(ADDRESS, SECONDS, connections=64)
    others = [Client(ADDRESS, SECONDS, pause=0.26, source=f"127.0.0.{number}") for number in range(2, 16)]
    with service(sample_database, tmp_path / "log", **FOUR_WORKERS) as running:
        run(running.address, flood, *others)
    assert_limited(flood, 4, 4)
    assert flood.broken == 0
    assert len(others) == 14
    for other in others:
        assert set(other.statuses) == {200}
        assert other.statuses[200] >= SECONDS


def test_the_sustained_limit_holds_over_four_workers_too(sample_database, tmp_path):
    flood = Client(ADDRESS, SECONDS + 1, connections=64)
    limits = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "20/minute"}
    with service(sample_database, tmp_path / "log", **FOUR_WORKERS, **limits) as running:
        run(running.address, flood)
    assert_limited(flood, 20, 20 / 60)


def test_workers_killed_under_the_flood_free_no_tokens_and_nothing_hangs(sample_database, tmp_path):
    flood = Client(ADDRESS, 2 * SECONDS, connections=64)
    ended = threading.Event()
    killed = 0
    with service(sample_database, tmp_path / "log", **FOUR_WORKERS) as running:
        thread = threading.Thread(target=lambda: (run(running.address, flood), ended.set()))
        thread.start()
        while not ended.wait(0.5):
            os.kill(random.choice(running.workers()), signal.SIGKILL)
            killed += 1
        thread.join()
    # An answer may be lost with the worker that made it, a token never.
    bound = 4 + 4 * (flood.ended - flood.began)
    assert bound - 2 - killed < flood.statuses[200] <= bound
    assert set(flood.statuses) == {200, 429}
    assert killed >= 2 * SECONDS


@pytest.mark.parametrize("end_workers", ["HUP", "kill"])
def test_new_workers_refill_nobody(sample_database, tmp_path, end_workers):
    limits = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "5/day"}
    with service(sample_database, tmp_path / "log", **FOUR_WORKERS, **limits) as running:
        first = Client(ADDRESS, 0.3)
        run(running.address, first)
        assert first.statuses[200] == 5
        before = set(running.workers())
        assert len(before) == 4
        if end_workers == "HUP":
            running.process.send_signal(signal.SIGHUP)
        else:
            for worker in before:
                os.kill(worker, signal.SIGKILL)
        running.wait_for_new_workers(before)
        second = Client(ADDRESS, 0.3)
        run(running.address, second)
    assert set(second.statuses) == {429}


def test_a_new_database_under_traffic_fails_no_request_and_mixes_no_answer(sample_database, other_database, tmp_path):
    databases = [sample_database, other_database]
    path = shutil.copy(sample_database, tmp_path / "racedata.db")
    clients = [
        Client(f"/ergast/f1/2023/9/results.json{query}", SECONDS + 2, connections=8) for query in ("", "?limit=20")
    ]
    ended = threading.Event()
    off = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "off"}
    with service(path, tmp_path / "log", **FOUR_WORKERS, **off) as running:
        thread = threading.Thread(target=lambda: (run(running.address, *clients), ended.set()))
        thread.start()
        swaps = 0
        while not ended.wait(0.7):
            swaps += 1
            new = shutil.copy(databases[swaps % 2], tmp_path / "new.db")
            os.replace(new, path)
        thread.join()
    for client in clients:
        assert set(client.statuses) == {200}
        assert client.broken == 0
        found = {(b"Zeltweg" in body, b"Leclercq" in body) for body in client.bodies}
        assert found == {(False, False), (True, True)}
        assert len(client.bodies) == 2
    assert swaps >= 5
