"""Several machines: the first loads the sources, the second copies its database, and nginx is in
front of both.
"""

import json
import re
import shutil
from collections import defaultdict
from contextlib import ExitStack
from functools import partial
from itertools import groupby

import pytest
from support import SAMPLE, traffic
from support.apis import refreshed
from support.loads import built, run_loader, without
from support.processes import OFF, balancer, logged, run_racedata, service, site_with_nginx, until

ADDRESS = "/ergast/f1/2023/18/results.json"
ADDRESSES = (
    *(ADDRESS, "/ergast/f1/2023/18/laps.json?limit=5", "/ergast/f1/2023.json"),
    *("/ergast/f1/drivers.csv", "/ergast/f1/current.ics", "/ergast/f1/2023/99x", "/2023/18"),
)
CLIENTS = [f"127.0.0.{number}" for number in range(2, 250)]
PINNED = "hash $remote_addr consistent;"  # as in docs/run.md


get = partial(traffic.get, Host="f1.example.org")


class Machines:
    """Two machines, each with a database of its own, at `sites`. The first loads a dump."""

    def __init__(self, folder):
        self.databases = [folder / "1" / "racedata.db", folder / "2" / "racedata.db"]
        self.dump = without(SAMPLE, folder / "dump", 2023, 18)
        self.sites = []
        for database in self.databases:
            database.parent.mkdir()

    def load(self):
        built(self.dump, self.databases[0])

    def publish(self):
        """The first machine loads the dump, which now has one race more, and serves it."""
        old = self.tag(0)
        shutil.copytree(SAMPLE, self.dump, dirs_exist_ok=True)
        self.load()
        until(lambda: self.tag(0) != old)

    def copy(self):
        """The second machine copies the database of the first."""
        host, port = self.sites[0]
        return refreshed(self.databases[1], f"http://{host}:{port}/racedata.db")[0]

    def tag(self, number):
        return get(self.sites[number], ADDRESS)[0].headers["ETag"]


@pytest.fixture
def machines(tmp_path):
    found = Machines(tmp_path)
    found.load()
    shutil.copy(found.databases[0], found.databases[1])
    settings = {
        **OFF,
        "WEB_CONCURRENCY": "1",
        "RACEDATA_DOWNLOAD": "on",
        "RACEDATA_TRUSTED_PROXIES": "127.0.0.1",
    }
    with ExitStack() as stack:
        for database in found.databases:
            running = service(database, database.with_name("log"), **settings)
            found.sites.append(stack.enter_context(running).address)
        yield found


def clients_of_both(site):
    """Clients of which half are on each machine, if they stay there: the ports decide who is."""
    found = defaultdict(list)
    for source in CLIENTS:
        machine = get(site, ADDRESS, source)[0].headers["X-Machine"]
        found[machine] = [*found[machine], source][:4]
        clients = [client for each in found.values() for client in each]
        if len(clients) == 8:
            return clients
    raise AssertionError(f"these machines have all clients: {[*found]}")


def test_a_copy_gives_the_same_answers_with_the_same_tags(machines):
    machines.publish()
    assert machines.copy()[-1].startswith(f"{machines.databases[1]}: new data at http://")
    assert machines.databases[1].read_bytes() == machines.databases[0].read_bytes()
    until(lambda: machines.tag(0) == machines.tag(1))
    for path in ADDRESSES:
        (one, body), (other, same_body) = (get(site, path) for site in machines.sites)
        assert (one.status, body) == (other.status, same_body), path
        for name in ("ETag", "Last-Modified", "Content-Type"):
            assert one.headers[name] == other.headers[name], (path, name)
    assert machines.copy() == [
        f"{machines.databases[1]}: nothing new at http://127.0.0.1:{machines.sites[0][1]}/racedata.db"
    ]


@pytest.mark.parametrize("has_file", [True, False])
def test_a_database_is_copied_through_nginx_and_the_default_limits(
    sample_database, other_database, tmp_path, has_file
):
    first, second = (tmp_path / name for name in ("racedata.db", "copy.db"))
    shutil.copy(sample_database, first)
    shutil.copy(other_database, second)
    if has_file:
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "racedata.db").symlink_to(first)
    with site_with_nginx(first, tmp_path, RACEDATA_DOWNLOAD="on") as ((host, port), _):
        url = f"http://{host}:{port}/racedata.db"
        loaded = run_loader(url, second, "--replace")
        assert (loaded.returncode, loaded.stderr) == (0, "")
        assert second.read_bytes() == first.read_bytes()
        logged(tmp_path, 1)
        assert refreshed(second, url)[0] == [f"{second}: nothing new at {url}"]
        lines = logged(tmp_path, 2)
    assert [re.search(r'/racedata.db .*?" (\d+)', line)[1] for line in lines] == ["200", "304"]


def test_a_client_that_stays_on_one_machine_never_gets_an_older_answer(machines, tmp_path):
    old = machines.tag(0)
    with balancer(tmp_path, PINNED, machines.sites) as site:
        seen = {client: [] for client in clients_of_both(site)}

        def ask():
            """The tag that each client gets now."""
            for client, answers in seen.items():
                response, _ = get(site, ADDRESS, client)
                answers.append((response.headers["ETag"], response.headers["X-Machine"]))
                assert response.status == 200
            return {answers[-1][0] for answers in seen.values()}

        assert ask() == {old}
        machines.publish()
        new = machines.tag(0)
        assert ask() == {old, new}
        machines.copy()
        until(lambda: ask() == {new})
    for answers in seen.values():
        assert len({machine for _, machine in answers}) == 1
        assert [tag for tag, _ in groupby(tag for tag, _ in answers)] == [old, new]


def test_a_second_machine_becomes_the_first_one_and_keeps_its_records(machines, tmp_path):
    host, port = machines.sites[0]
    settings = {"RACEDATA_DATABASE": str(machines.databases[1])}
    url = f"http://{host}:{port}/racedata.db"
    assert run_racedata("refresh", RACEDATA_SOURCES=url, **settings).returncode == 0
    old = machines.tag(1)
    # as docs/run.md says: without RACEDATA_SOURCES, load the sources
    assert url not in run_racedata("sources", **settings).stdout
    dump = shutil.copytree(SAMPLE, tmp_path / "other")
    loaded = run_racedata("load", str(dump), **settings)
    assert (loaded.returncode, loaded.stderr) == (0, "")
    until(lambda: machines.tag(1) != old)
    _, first = get(machines.sites[0], "/ergast/f1/results.json?limit=0")
    _, second = get(machines.sites[1], "/ergast/f1/results.json?limit=0")
    totals = [int(json.loads(each)["MRData"]["total"]) for each in (first, second)]
    assert totals[1] == totals[0] + 20  # the sample has a race more
    listed = run_racedata("sources", **settings).stdout
    assert f" {dump}: read " in listed and url not in listed
