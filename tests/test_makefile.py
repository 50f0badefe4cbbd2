"""The Makefile: its targets pass on names with any characters, in a copy of the project. And what
`make lock` wrote.
"""

import configparser
import os
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.request

import pytest
from packaging.requirements import Requirement
from support import ROOT, SAMPLE
from support.processes import free_port

from racedata import __version__

NAME = """-it's "$HOME" $(HOME) ${x} `id` #1; & \\ %d *é"""
WORD = NAME.replace(" ", "")  # several words are several sources, unless there is such a file


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project whose .venv runs the interpreter of the tests, with a dump and its
    database named NAME.
    """
    folder = tmp_path_factory.mktemp("project")
    for name in ("Makefile", "pyproject.toml", "setup.cfg", "racedata", "scripts/load_data.py"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (folder / name).parent.mkdir(exist_ok=True)
        copy(ROOT / name, folder / name)
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name, command in [
        ("python", sys.executable),
        ("racedata", f"{sys.executable} -m racedata"),
    ]:
        path = folder / ".venv" / "bin" / name
        path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        path.chmod(0o755)
    (folder / ".venv" / "installed").touch()
    shutil.copytree(SAMPLE, folder / NAME)
    run(folder, "load-data", f"SOURCE={NAME}", f"DATABASE={NAME}.db").check_returncode()
    return folder


def make(*arguments):
    return ["make", "--no-print-directory", f"PYTHON={sys.executable}", *arguments]


def run(folder, *arguments, **environ):
    """`make` with these arguments, finished."""
    environ = {"PATH": os.environ["PATH"], **environ}
    return subprocess.run(make(*arguments), cwd=folder, env=environ, capture_output=True, text=True)


def test_load_data_reads_a_source_and_writes_a_database_of_any_name(project):
    assert (project / f"{NAME}.db").is_file()
    assert not (project / "data" / "racedata.db").exists()
    again = run(project, "load-data", f"DATABASE={NAME}.db", "CORRECTIONS=none")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.endswith(f" from {project / NAME}\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["load-data", f"SOURCE={WORD}.zip f1db"], f"/{WORD}.zip: not found; "),
        (
            ["load-data", f"SOURCE={NAME}", f"CORRECTIONS={NAME}.csv"],
            f"racedata load: {NAME}.csv: ",
        ),
        (["serve", f"DATABASE={NAME}.none"], f"racedata: {NAME}.none is missing; "),
        (
            ["serve", "WEB_CONCURRENCY=many"],
            "racedata: WEB_CONCURRENCY='many': expected a whole number ",
        ),
    ],
)
def test_a_target_that_fails_says_so_in_one_line_that_names_the_value(project, arguments, line):
    ended = run(project, *arguments)
    assert ended.returncode == 2
    said, of_make = ended.stderr.splitlines()
    assert line in said
    assert of_make.startswith("make: *** [")
    assert not (project / "data" / "racedata.db").exists()


def test_the_lock_and_the_image_have_this_version_and_its_licences():
    lock = (ROOT / "deploy" / "requirements.lock").read_text()
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)", lock, re.M))
    metadata, build = (
        configparser.ConfigParser(),
        tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"],
    )
    metadata.read(ROOT / "setup.cfg")
    installed = (
        metadata["options"]["install_requires"] + metadata["options.extras_require"]["redis"]
    )
    for requirement in map(Requirement, [*installed.split("\n")[1:], *build["requires"]]):
        assert requirement.specifier.contains(pinned.get(requirement.name, "")), (
            f"{requirement}; run: make lock"
        )
    assert lock.count("--hash=sha256:") > len(pinned)
    image = (ROOT / "deploy" / "Containerfile").read_text()
    assert f'image.version="{__version__}"' in image
    assert f'image.licenses="{metadata["metadata"]["license_expression"]}"' in image


def test_serve_builds_a_database_once_and_prints_a_request_that_works(project):
    settings = {"PORT": str(free_port()), "RACEDATA_BASE_PATH": "/api", "WEB_CONCURRENCY": "1"}
    environ = {"PATH": os.environ["PATH"], **settings}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    for is_first in (True, False):
        said = ""
        with subprocess.Popen(make("serve"), cwd=project, env=environ, **pipes) as serve:
            try:
                while "Try: curl" not in said:
                    said += next(serve.stdout)
                with urllib.request.urlopen(said.split("Try: curl '")[1].split("'")[0]) as answer:
                    assert b'"Races":[{' in answer.read()
            finally:
                serve.terminate()
                serve.communicate(timeout=40)
        assert ("building one from the sample" in said) == is_first
        assert "run: .venv/bin/racedata load tracinginsights f1db" in said
    assert (project / "data" / "racedata.db").is_file()
    shutil.rmtree(project / "data")
