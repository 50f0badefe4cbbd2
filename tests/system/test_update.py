"""docs/run.md: the commands of an update, and of the way back, in a scratch clone of this
project.

git, make, pip, the loader and the files are real. `sudo` only runs its command. `systemctl` and
`nginx` only note how they were called, because no systemd runs here.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT
from support.loads import changed
from support.processes import service

DOCUMENT = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
# Of different lengths: Python finds a changed module by its size and its time in seconds.
OLD, NEW = "v0.2.9", "v0.10.0"
UNITS = ("racedata.service", "racedata-follow.service")


def commands(heading, with_text):
    """The indented block of a section that has a text."""
    section = DOCUMENT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (block,) = (
        block
        for block in re.findall(r"(?:^    .*\n|(?<=\n)\n(?=    ))+", section, re.M)
        if with_text in block
    )
    return block


class Machine:
    """A machine with racedata in `opt`, a clone of `checkout`. Paths of the document are in its
    folder.
    """

    def __init__(self, folder):
        self.folder, self.checkout = folder, folder / "checkout"
        self.opt = folder / "opt" / "racedata"
        self.units = folder / "etc" / "systemd" / "system"
        self.site = folder / "etc" / "nginx" / "sites-available" / "racedata"
        self.calls = folder / "calls"
        (folder / "bin").mkdir()
        record = f'echo "${{0##*/}} $*" >>{self.calls}'
        for name, script in [("sudo", 'exec "$@"'), ("systemctl", record), ("nginx", record)]:
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / "bin" / name).chmod(0o755)
        for made in (self.units, self.site.parent, folder / "var" / "backups"):
            made.mkdir(parents=True)

    def run(self, script, health=""):
        for path in ("/opt/racedata", "/etc/systemd", "/etc/nginx", "/var/backups"):
            script = script.replace(path, f"{self.folder}{path}")
        script = script.replace("http://127.0.0.1/healthz", health)
        author = {
            f"GIT_{who}_{what}": "a@b"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        kept = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("PIP_", "HOME", "SSL_"))
        }
        path = f"{self.folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        ended = subprocess.run(
            ["bash", "-ec", script],
            env={**kept, **author, "PATH": path},
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def release(self, version):
        """Commits a version in the checkout that differs in all that an update touches."""
        for name, pattern, text in [
            ("racedata/__init__.py", r'(?m)^__version__ = ".*"', f'__version__ = "{version[1:]}"'),
            *((f"deploy/{name}", r"\A", f"# {version}\n") for name in (*UNITS, "nginx.conf")),
        ]:
            path = self.checkout / name
            path.write_text(re.sub(pattern, text, path.read_text(), count=1))
        self.run(
            f"cd checkout && git commit --quiet --all --message {version} && git tag {version}"
        )

    def version(self):
        return self.run("opt/racedata/.venv/bin/racedata --version").split()[1]


@pytest.mark.long
def test_an_update_and_its_rollback_change_all_that_belongs_to_a_version(tmp_path, sample_database):
    machine = Machine(tmp_path)
    machine.run(f"git clone --quiet {ROOT} checkout && git -C checkout checkout --quiet -B main")
    machine.release(OLD)
    machine.run(
        "git clone --quiet checkout opt/racedata && cd /opt/racedata && make install && "
        ".venv/bin/racedata load &&"
        "cp deploy/*.service /etc/systemd/system && cp deploy/nginx.conf "
        "/etc/nginx/sites-available/racedata &&"
        "echo '# of the operator' >>/etc/nginx/sites-available/racedata"
    )
    database = machine.opt / "data" / "racedata.db"
    changed(database, "UPDATE drivers SET surname = 'Before'")
    data, site = database.read_bytes(), machine.site.read_bytes()

    machine.release(NEW)
    update = commands("Update", "git pull")
    with service(sample_database, tmp_path / "log") as running:
        health = "http://{}:{}/healthz".format(*running.address)
        machine.run(update, health)
        machine.run(update, health)  # nothing to pull: what the first one has kept stays
        shown = machine.run(
            f"{update}{commands('Update', 'git diff').replace('${before#*racedata-}', OLD)}", health
        )
    assert machine.version() == NEW[1:]
    assert f"+# {NEW}" in shown
    assert all((machine.units / name).read_text().startswith(f"# {NEW}") for name in UNITS)
    shutil.copy(sample_database, database)
    machine.site.write_text("# of the new version")
    (machine.units / "racedata-new.service").write_text(
        "# a unit that the old version does not have"
    )

    machine.calls.unlink()
    machine.run(commands("Going back", "git reset").replace("v1.0.0", OLD))
    assert machine.version() == OLD[1:]
    assert sorted(path.name for path in machine.units.iterdir()) == sorted(UNITS)
    assert all((machine.units / name).read_text().startswith(f"# {OLD}") for name in UNITS)
    assert (machine.site.read_bytes(), database.read_bytes()) == (site, data)
    assert machine.calls.read_text().splitlines() == [
        "systemctl disable --now racedata-follow",
        "systemctl daemon-reload",
        "systemctl restart racedata",
        "systemctl enable --now racedata-follow",
        "nginx -t",
        "systemctl reload nginx",
    ]
