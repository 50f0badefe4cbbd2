"""Real servers on free ports: gunicorn, the service, nginx, Redis; a small disk; Linux's view of a
process.

The benchmarks use it too.
"""

import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from unittest import SkipTest

from support import ROOT

SERVE = [sys.executable, "-m", "racedata", "serve"]
SITE = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")

OFF = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "off"}

Site = tuple[str, int]  # host and port
Address = Site | str  # or the path of a unix socket


def serve_with(code: str) -> list[str]:
    """`racedata serve`, after code that changes something in that process."""
    return [sys.executable, "-c", f"{code}\nfrom racedata import cli\ncli.main()", "serve"]


@contextmanager
def following(database: Path, *arguments: str, **environ: str) -> Iterator["subprocess.Popen[str]"]:
    """`racedata refresh --follow` as a process of its own, until the end of the block."""
    words = ["refresh", "--follow", "--database", str(database), *arguments]
    pipes: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-m", "racedata", *words]
    with subprocess.Popen(command, env={**os.environ, **environ}, **pipes, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def run_racedata(
    *arguments: str, stdout: int | IO[str] = subprocess.PIPE, **environ: str
) -> "subprocess.CompletedProcess[str]":
    """`racedata` with these arguments, finished."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "PATH" or name.startswith("COVERAGE")
    }
    return subprocess.run(
        [sys.executable, "-m", "racedata", *arguments],
        cwd=ROOT,
        env={**kept, **environ},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A new folder that takes so many bytes. Skips the test without the right to mount it."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True)
    if mounted.returncode:
        raise SkipTest(f"mount: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def children_of(process: int) -> list[int]:
    """The ids of the processes that a process has started."""
    found: list[int] = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # this thread has ended
            found += map(int, children.read_text().split())
    return found


def has_ended(process: int) -> bool:
    """Whether a process has ended, even if nobody has waited for it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def free_port() -> int:
    """A port that Linux gives to no other process until this one ends.

    This process binds it, but does not listen: a server with SO_REUSEADDR, as all set it, may. It
    binds it at all addresses: on one alone, Linux may choose the port of a connection from
    another address of this machine, and then no server can listen at 0.0.0.0.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("0.0.0.0", 0))
    port: int = held.getsockname()[1]
    held.detach()  # never closed
    return port


def until(condition: Callable[[], bool]) -> None:
    """Polls until `condition`, which depends on another process, is true.

    How long that takes depends on what else the machine is doing. So there is no limit but that of
    every test (setup.cfg).
    """
    while not condition():
        time.sleep(0.005)


def listens(address: Address) -> bool:
    """Whether a server accepts connections at `address`."""
    with socket.socket(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX) as tried:
        try:
            tried.connect(address)
        except (ConnectionError, FileNotFoundError):
            return False
        return True


def wait_for_start(
    process: "subprocess.Popen[Any]",
    address: Address,
    ready: Callable[[Address], bool] = listens,
) -> None:
    """Waits until a server listens at `address`. Raises RuntimeError if it ends before that."""
    until(lambda: process.poll() is not None or ready(address))
    if process.poll() is not None:
        raise RuntimeError(f"{process.args!r} has ended with status {process.returncode}")


@contextmanager
def started(
    command: Sequence[Path | str],
    address: Address,
    ready: Callable[[Address], bool] = listens,
    **options: Any,
) -> Iterator["subprocess.Popen[Any]"]:
    """A server as a process of its own, in a block that begins once `ready` is true of its address.

    Raises RuntimeError if it ends before that.
    """
    process = subprocess.Popen(command, **options)
    try:
        wait_for_start(process, address, ready)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=40)
        finally:
            process.kill()


@contextmanager
def running_nginx(name: str, http: str, folder: Path) -> Iterator[Site]:
    """An nginx with this `http` block, in which LISTEN is its address; yields its (host, port). Its
    configuration, log and temporary files in the folder have a name.
    """
    site = ("127.0.0.1", free_port())
    conf, log = folder / f"{name}.conf", folder / f"{name}.log"
    # If nginx is started by root, its workers become another user, who may not enter the folder.
    user = "user root;" if os.geteuid() == 0 else ""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{name}-{kind};" for kind in kinds)
    conf.write_text(
        f"daemon off; pid {folder}/{name}.pid; error_log {log}; {user} worker_processes 2;"
        f"events {{ worker_connections 2000; }} http {{ include /etc/nginx/mime.types; {temporary}"
        f"{http.replace('LISTEN', '{}:{}'.format(*site))} }}",
        encoding="utf-8",
    )
    with started(["nginx", "-c", conf, "-e", log], site):
        yield site


def open_files(process: int | str) -> list[str]:
    """The names of the files that a process has open; for sockets and pipes, `socket:[…]`."""
    names = []
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            names.append(os.readlink(link))
    return names


def memory(process: int | str) -> float:
    """The memory of a process in megabytes, with its share of shared memory (PSS)."""
    return shares(process)["Pss"]


def own_memory(process: int | str) -> float:
    """The same without the files that it has mapped, such as its libraries: its share of them
    rises whenever another program ends that has them too.
    """
    found = shares(process)
    return found["Pss"] - found["Pss_File"]


def shares(process: int | str) -> dict[str, float]:
    """What Linux counts of the memory of a process, in megabytes."""
    _, *lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    fields = (line.split() for line in lines)
    return {name.rstrip(":"): int(kilobytes) / 1024 for name, kilobytes, _ in fields}


class Gunicorn:
    """A running gunicorn: its master `process`, and the `seconds` from its start until ready."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", address: Address, seconds: float
    ) -> None:
        self.process, self.address, self.seconds = process, address, seconds

    def workers(self) -> list[int]:
        """The ids of the worker processes."""
        return children_of(self.process.pid)

    def wait_for_new_workers(self, before: set[int]) -> None:
        """Waits until there are as many workers as in `before`, and none of those."""
        until(lambda: len(now := set(self.workers())) == len(before) and not now & before)


@contextmanager
def gunicorn(
    *options: str,
    environ: Mapping[str, str],
    ready: Callable[[Address], bool] = listens,
    sockets: Sequence[Path] = (),
    output: IO[str] | None = None,
    command: Sequence[str] = SERVE,
) -> Iterator[Gunicorn]:
    """`racedata serve` with these options of gunicorn during the block.

    It listens on a free port or on unix sockets.
    """
    address: Address = str(sockets[0]) if sockets else ("127.0.0.1", free_port())
    place = {"PORT": str(address[1])} if isinstance(address, tuple) else {}
    bind = [option for path in sockets for option in ("--bind", f"unix:{path}")]
    environ = {"PATH": os.environ["PATH"], **place, **environ}
    begin = time.perf_counter()
    command = [*command, "--", *bind, *options]
    out = {"stdout": output, "stderr": output}
    with started(command, address, ready, cwd=ROOT, env=environ, **out) as process:
        yield Gunicorn(process, address, time.perf_counter() - begin)


@contextmanager
def service(
    database: Path,
    log: Path,
    sockets: Sequence[Path] = (),
    command: Sequence[str] = SERVE,
    **settings: str,
) -> Iterator[Gunicorn]:
    """The service over `database`, on a free port or unix sockets, with its output in `log`."""
    environ = {"RACEDATA_DATABASE": str(database), **settings}
    with (
        open(log, "w") as output,
        gunicorn(environ=environ, sockets=sockets, output=output, command=command) as running,
    ):
        yield running


@contextmanager
def limited(what: int, most: int) -> Iterator[None]:
    """This process with a lower limit of `resource`, such as of open files."""
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (soft, hard))


def nginx_sockets(folder: Path) -> list[Path]:
    """The sockets that deploy/nginx.conf names, in another folder."""
    return [folder / name for name in sorted({*re.findall("unix:/run/racedata/([^ ;]+)", SITE)})]


def replaced(configuration: str, *changes: tuple[str, str]) -> str:
    """A configuration of nginx in which each text that it must have is replaced."""
    for deployed, here in changes:
        if deployed not in configuration:
            raise ValueError(f"the configuration lacks {deployed}")
        configuration = configuration.replace(deployed, here)
    return configuration


def moved(site: str, *changes: tuple[str, str]) -> str:
    """A configuration for LISTEN instead of port 80, with these texts replaced by others."""
    listen = ("listen 80 default_server", "listen LISTEN default_server")
    return replaced(site, *changes, listen, ("listen [::]:80 default_server;", ""))


@contextmanager
def nginx(folder: Path, *changes: tuple[str, str]) -> Iterator[Site]:
    """nginx with deploy/nginx.conf, in front of `nginx_sockets(folder)`; yields its (host, port).

    Each of the changes has a text of the configuration and its replacement. The logs are
    `access.log` and `nginx.log` in the folder.
    """
    site = moved(
        SITE,
        *changes,
        ("unix:/run/racedata/", f"unix:{folder}/"),
        ("/var/log/nginx/racedata.log", f"{folder}/access.log"),
        ("/var/www/racedata", f"{folder}/files"),
    )
    with running_nginx("nginx", site, folder) as address:
        yield address


def logged(folder: Path, requests: int) -> list[str]:
    """The lines of nginx's `access.log` in a folder, once it has this number of requests.

    nginx logs a request after its answer, and each of its processes for itself: wait for one line
    before the next request, if the order counts.
    """
    log = folder / "access.log"
    until(lambda: len(log.read_text().splitlines()) >= requests)
    return log.read_text().splitlines()


@contextmanager
def nginx_with_copy(folder: Path, copy: Path) -> Iterator[Site]:
    """nginx with deploy/nginx-static.conf over a static copy; yields its (host, port)."""
    deployed = (ROOT / "deploy" / "nginx-static.conf").read_text(encoding="utf-8")
    site = moved(deployed, ("root /var/www/f1;", f"root {copy};"))
    with running_nginx("static", f"access_log off; {site}", folder) as address:
        yield address


@contextmanager
def site_with_nginx(
    database: Path, folder: Path, *changes: tuple[str, str], **settings: str
) -> Iterator[tuple[Site, Gunicorn]]:
    """The service behind nginx with deploy/nginx.conf, in which these texts are replaced.

    The folder has its logs: `log`, `access.log`, `nginx.log`.
    """
    settings = {"RACEDATA_TRUSTED_PROXIES": "unix", **settings}
    with (
        service(database, folder / "log", nginx_sockets(folder), **settings) as running,
        nginx(folder, *changes) as site,
    ):
        yield site, running


def make_certificate(folder: Path) -> None:
    """Makes a certificate for localhost and its key: `certificate` and `key` in the folder."""
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out certificate "
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)


class Redis:
    """A Redis server at `url`. It can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.port, self.folder = free_port(), folder
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        place = ["--port", str(self.port), "--dir", str(self.folder)]
        command = ["redis-server", *place, "--save", ""]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_for_start(self.process, ("127.0.0.1", self.port))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def balancer(folder: Path, method: str, machines: Sequence[Site]) -> Iterator[Site]:
    """An nginx that passes requests on to machines; yields its (host, port).

    `method` is how it chooses one: a directive of nginx. `X-Machine` in an answer names it. It
    appends the client's address to X-Forwarded-For.
    """
    servers = " ".join(f"server {host}:{port};" for host, port in machines)
    http = (
        f"access_log off; upstream machines {{ {method} {servers} }}"
        "server { listen LISTEN; location / { proxy_pass http://machines;"
        "proxy_set_header Host $http_host; proxy_bind 127.0.0.1;"
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"
        "add_header X-Machine $upstream_addr; } }"
    )
    with running_nginx("balancer", http, folder) as site:
        yield site
