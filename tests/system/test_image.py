"""The image of deploy/Containerfile, built by `make test-image`, run by podman with as few rights as possible."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.processes import OFF, Site, free_port, listens, until
from support.traffic import Client, traffic

from racedata import __version__

# What a sandbox needs, and as few rights as an operator can give.
PODMAN = ["podman", "--log-level=fatal", "--runtime=runc"]
RUN = ["run", "--network=host", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000", "--cap-drop=all"]
RUN += ["--security-opt=no-new-privileges", "--read-only", "--read-only-tmpfs=false"]
RESULTS = "/ergast/f1/2023/18/results.json"


def podman(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PODMAN, *arguments], capture_output=True, text=True)


def in_image(*command: str, options: tuple[str, ...] = ()) -> str:
    """What a command prints in a new container."""
    ended = podman(*RUN, "--rm", *options, "racedata", *command)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def inspect(image: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(podman("image", "inspect", image).stdout)[0]
    return found


class Container(NamedTuple):
    """A container that runs, or has ended. All containers are in the network of this machine."""

    name: str
    port: int

    @property
    def address(self) -> Site:
        return "127.0.0.1", self.port

    def exec(self, *command: str) -> subprocess.CompletedProcess[str]:
        return podman("exec", self.name, *command)

    def says(self) -> list[str]:
        """The lines that it has printed."""
        ended = podman("logs", self.name)
        return [*ended.stdout.splitlines(), *ended.stderr.splitlines()]

    def has_ended(self) -> bool:
        return podman("inspect", "--format={{.State.Running}}", self.name).stdout.strip() == "false"

    def status(self) -> int:
        """The exit status; waits for the end."""
        return int(podman("wait", "--interval=20ms", self.name).stdout)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as answer:
            return json.load(answer)


@contextmanager
def container(
    *command: str, data: str | Path | None = None, user: str = "12345:0", **environ: str
) -> Iterator[Container]:
    """A container with `data`, a folder or the name of a volume. If it serves, it does so when the block begins."""
    port = free_port()
    running = Container(f"racedata-test-{port}", port)
    settings = {"PORT": str(port), "WEB_CONCURRENCY": "2", **OFF, **environ}
    options = [f"--env={name}={value}" for name, value in settings.items()]
    options += [f"--volume={data}:/data"] if data else []
    started = podman(*RUN, "--detach", "--name", running.name, "--user", user, *options, "racedata", *command)
    assert started.returncode == 0, started.stderr
    try:
        if not command:
            until(lambda: listens(running.address) or running.has_ended(), 60)
        yield running
    finally:
        podman("rm", "--force", "--time=0", "--volumes", running.name)


def test_the_image_is_small_and_has_neither_tools_nor_tests() -> None:
    assert inspect("racedata")["Size"] - inspect("racedata-base")["Size"] < 25_000_000
    added = {line.split()[1] for line in podman("diff", "racedata", "racedata-base").stdout.splitlines()}
    folders = ("/opt/racedata", "/data")
    assert {path for path in added if not path.startswith(folders)} == {"/opt"}
    assert not {"pip", "setuptools", "tests"} & {name for path in added for name in path.split("/")}


def test_the_image_says_what_it_is() -> None:
    labels = {name.rpartition(".")[2]: text for name, text in inspect("racedata")["Config"]["Labels"].items()}
    assert (labels["title"], labels["version"]) == ("racedata", __version__)
    assert in_image("racedata", "version") == f"racedata {__version__}\n"


@pytest.mark.parametrize("user", ["10001:0", "0:0", "12345:0", "12345:12345"])
def test_it_serves_the_sample_at_once_as_any_user(user: str) -> None:
    with container(user=user) as running:
        assert running.get(RESULTS)["MRData"]["total"] == "20"
        assert [line for line in running.says() if "rror" in line] == []
        healthy = running.exec("racedata", "healthcheck")
        assert (healthy.returncode, healthy.stdout[:10]) == (0, "ok: sample")
        ill = running.exec("racedata", "healthcheck", "--url", f"http://127.0.0.1:{free_port()}/healthz")
        assert ill.returncode == 1


def test_sigterm_ends_it_without_a_lost_answer() -> None:
    with container() as running:
        busy = Client(RESULTS, connections=4)
        with traffic(running.address, busy) as ended:
            until(lambda: busy.statuses[200] > 100)
            podman("kill", "--signal=TERM", running.name)
            assert running.status() == 0
            busy.requests = 0
            ended.wait(timeout=20)
    assert {*busy.statuses} == {200}
