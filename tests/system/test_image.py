"""The image of deploy/Containerfile, built by `make test-image`, run by podman with as few rights
as possible. `ARCH` names another machine, whose image runs in an emulator.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support import ROOT, SAMPLE
from support.answers import client
from support.apis import answers_of, served
from support.loads import without
from support.processes import OFF, free_port, listens, until
from support.traffic import Client, traffic

sys.path.insert(0, str(ROOT / "scripts"))

import release

from racedata import __version__

# What a sandbox needs, and as few rights as an operator can give.
PODMAN = ["podman", "--log-level=fatal", "--runtime=runc"]
RUN = ["run", "--network=host", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000"]
RUN += ["--cap-drop=all", "--security-opt=no-new-privileges"]
RUN += ["--read-only", "--read-only-tmpfs=false"]
# The kernel's name of a machine, and its number in the programs for it.
MACHINES = {"amd64": ("x86_64", 62), "arm64": ("aarch64", 183)}
ARCH = os.environ.get("ARCH", "")
IMAGE, BASE = (f"{name}:{ARCH or 'latest'}" for name in ("racedata", "racedata-base"))
RESULTS = "/ergast/f1/2023/18/results.json"


def podman(*arguments):
    return subprocess.run([*PODMAN, *arguments], capture_output=True, text=True)


def in_image(*command, options=()):
    """What a command prints in a new container."""
    ended = podman(*RUN, "--rm", *options, IMAGE, *command)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def inspect(image):
    found: dict[str, Any] = json.loads(podman("image", "inspect", image).stdout)[0]
    return found


class Container(NamedTuple):
    """A container that runs, or has ended. All containers are in the network of this machine."""

    name: str
    port: int

    @property
    def address(self):
        return "127.0.0.1", self.port

    def exec(self, *command):
        return podman("exec", self.name, *command)

    def says(self):
        """The lines that it has printed."""
        ended = podman("logs", self.name)
        return [*ended.stdout.splitlines(), *ended.stderr.splitlines()]

    def has_ended(self):
        return podman("inspect", "--format={{.State.Running}}", self.name).stdout.strip() == "false"

    def status(self):
        """The exit status; waits for the end."""
        return int(podman("wait", "--interval=20ms", self.name).stdout)

    def get(self, path):
        assert not self.has_ended(), self.says()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as answer:
            return json.load(answer)


@contextmanager
def container(*command, data=None, user="12345:0", **environ):
    """A container with `data`, a folder or the name of a volume. If it serves, it does so when the
    block begins.
    """
    port = free_port()
    running = Container(f"racedata-test-{port}", port)
    settings = {"PORT": str(port), "WEB_CONCURRENCY": "2", **OFF, **environ}
    options = [f"--env={name}={value}" for name, value in settings.items()]
    options += [f"--volume={data}:/data"] if data else []
    started = podman(
        *RUN, "--detach", "--name", running.name, "--user", user, *options, IMAGE, *command
    )
    assert started.returncode == 0, started.stderr
    try:
        if not command:
            until(lambda: listens(running.address) or running.has_ended())
        yield running
    finally:
        podman("rm", "--force", "--time=0", "--volumes", running.name)


def test_the_image_is_small_and_has_neither_tools_nor_tests():
    assert inspect(IMAGE)["Size"] - inspect(BASE)["Size"] < 25_000_000
    added = {line.split()[1] for line in podman("diff", IMAGE, BASE).stdout.splitlines()}
    folders = ("/opt/racedata", "/data", "/socket")
    assert {path for path in added if not path.startswith(folders)} == {"/opt"}
    assert not {"pip", "setuptools", "tests"} & {name for path in added for name in path.split("/")}


# Prints the machines of the programs and libraries in the image, by number.
PROGRAMS = """
import pathlib
files = [each for each in pathlib.Path("/opt/racedata").rglob("*") if each.is_file()]
found = [each.open("rb").read(20) for each in files if not each.is_symlink()]
print({each[18] + 256 * each[19] for each in found if each.startswith(b"\\x7fELF")})
"""


@pytest.mark.emulated
def test_it_says_what_it_is_and_its_programs_and_libraries_are_for_the_machine_that_it_names():
    labels = inspect(IMAGE)["Config"]["Labels"]
    assert labels["org.opencontainers.image.title"] == "racedata"
    assert labels["org.opencontainers.image.version"] == __version__
    assert in_image("racedata", "--version") == f"racedata {__version__}\n"
    architecture = inspect(IMAGE)["Architecture"]
    machine, number = MACHINES[architecture]
    assert ARCH in ("", architecture)
    assert in_image("uname", "-m") == f"{machine}\n"
    assert in_image("python3", "-c", PROGRAMS) == f"{{{number}}}\n"


@pytest.mark.emulated
def test_its_archive_names_the_machine_and_has_the_same_bytes_each_time(tmp_path):
    files = [tmp_path / name for name in ("a.oci.tar", "b.oci.tar")]
    for file in files:
        release.archive_image(IMAGE, file, "localhost/racedata:1", 1700000000)
    assert files[0].read_bytes() == files[1].read_bytes()
    with tarfile.open(files[0]) as archive:

        def blob(of):
            return json.load(archive.extractfile(f"blobs/{of['digest'].replace(':', '/')}"))

        (named,) = json.load(archive.extractfile("index.json"))["manifests"]
        config = blob(blob(named)["config"])
    assert config["architecture"] == inspect(IMAGE)["Architecture"]


@pytest.mark.emulated
@pytest.mark.parametrize("user", ["10001:0", "0:0", "12345:0", "12345:12345"])
def test_it_serves_the_sample_at_once_as_any_user(user):
    with container(user=user) as running:
        assert running.get(RESULTS)["MRData"]["total"] == "20"
        assert [line for line in running.says() if "rror" in line] == []
        healthy = running.exec("racedata", "healthcheck")
        assert (healthy.returncode, healthy.stdout[:10]) == (0, "ok: sample")
        ill = running.exec(
            "racedata", "healthcheck", "--url", f"http://127.0.0.1:{free_port()}/healthz"
        )
        assert ill.returncode == 1


@pytest.mark.emulated
def test_sigterm_ends_it_without_a_lost_answer():
    with container() as running:
        busy = Client(RESULTS, connections=4)
        with traffic(running.address, busy) as ended:
            until(lambda: busy.statuses[200] > 100)
            podman("kill", "--signal=TERM", running.name)
            assert running.status() == 0
            busy.requests = 0
            ended.wait(timeout=20)
    assert {*busy.statuses} == {200}


# The volume: a folder of this machine that the group of the image may write, with a dump beside the
# database.


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    (folder / "racedata").mkdir(parents=True)
    for path in (folder, folder / "racedata"):
        path.chmod(0o775)
    without(SAMPLE, folder / "dump", 2023, 18)
    return folder


def results(serving):
    return str(serving.get(RESULTS)["MRData"]["total"])


def test_a_follower_that_cannot_store_says_what_to_do_and_the_data_from_before_is_served(
    data, sample_database
):
    folder = data / "racedata"
    shutil.copy(sample_database, folder / "racedata.db")
    folder.chmod(0o555)
    with (
        container(data=data) as serving,
        container(
            "racedata", "refresh", "--follow", data=data, RACEDATA_SOURCES="/data/dump"
        ) as follow,
    ):
        until(lambda: follow.says() != [])
        (said,) = follow.says()
        assert ": Permission denied; let user 12345 write to /data/racedata; " in said
        assert results(serving) == "20"
        podman("kill", "--signal=TERM", follow.name)
        assert follow.status() == 0


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (0o755, "/data/racedata: Permission denied; let user 12345 write to /data"),
        (0o700, "/data/racedata/racedata.db cannot be read (Permission denied)"),
    ],
)
def test_it_says_which_permission_it_lacks_on_an_empty_volume(tmp_path, mode, said):
    tmp_path.chmod(mode)
    with container(data=tmp_path) as ended:
        assert ended.status() == 3
        assert said in ended.says()[-1]


# deploy/compose.yaml. In a sandbox, there is only the machine's own network, so both addresses must
# be free on it.


@pytest.fixture
def compose(tmp_path):
    """Runs podman-compose with deploy/compose.yaml; at the end, removes what it has made."""
    changes: dict[str, Any] = {
        name: {"network_mode": "host"} for name in ("serve", "follow", "proxy")
    }
    for name in ("serve", "follow"):
        changes[name]["image"] = IMAGE
    changes["proxy"]["tmpfs"] = ["/var/lib/nginx"]  # where Debian's nginx has its temporary files
    (tmp_path / "changes.json").write_text(json.dumps({"services": changes}))
    limits = 'default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]'
    (tmp_path / "containers.conf").write_text(
        f'[engine]\nruntime = "runc"\n[containers]\n{limits}\n'
    )
    environ = {**os.environ, "CONTAINERS_CONF": str(tmp_path / "containers.conf"), **OFF}
    files = [
        f"--file={path}" for path in (ROOT / "deploy" / "compose.yaml", tmp_path / "changes.json")
    ]

    def compose(*arguments, **more):
        command = [
            Path(sys.executable).with_name("podman-compose"),
            "--project-name=racedata-test",
            *files,
            *arguments,
        ]
        subprocess.run(command, env={**environ, **more}, check=True, capture_output=True)

    try:
        yield compose
    finally:
        compose("--profile=proxy", "down", "--volumes")


def test_one_command_starts_a_service_that_answers_at_once_loads_everything_and_stays_fresh(
    compose, data, sample_database
):
    zipped = Path(shutil.make_archive(str(data / "dump"), "zip", data / "dump")).read_bytes()
    loads = threading.Event()

    def release(path):
        loads.wait(60)
        return 200, {}, zipped

    with served(answers_of(client(sample_database))) as api, served(release) as published:
        names = {"RACEDATA_SOURCES": f"{api.url} {published.url}/dump.zip"}
        compose("--profile=proxy", "up", "--detach", "--no-build", **names)
        service, nginx = Container("", 8000), Container("", 80)
        for each in (service, nginx):
            until(lambda address=each.address: listens(address))
            assert each.get("/healthz")["sources"][0]["name"] == "sample"
        loads.set()
        until(lambda: "dump.zip" in nginx.get("/healthz")["sources"][0]["name"])
        until(lambda: results(nginx) == "20")
        compose("--profile=proxy", "stop", **names)
        until(lambda: not listens(nginx.address))
        compose("--profile=proxy", "start", **names)
        until(lambda: listens(nginx.address) and listens(service.address))
        # first the one that has opened both sockets
        assert results(service) == results(nginx) == "20"
