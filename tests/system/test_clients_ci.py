"""The lines of docs/clients.md for somebody's CI, run as a CI runs them."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support import ROOT, SAMPLE
from support.loads import built
from support.processes import listens, until

pytestmark = pytest.mark.usefixtures("only_this_machine")

CLIENTS = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^(?:GitHub Actions|GitLab):\n\n```yaml\n(.*?)^```", CLIENTS, re.S | re.M)
GITHUB, GITLAB = map(yaml.safe_load, BLOCKS)
JOB = GITHUB["jobs"]["test"]
STEPS = [step["run"] for step in JOB["steps"] if "run" in step]

# What somebody's tests rely on.
TESTS = """#!/bin/bash
ask() { curl --silent --output /dev/null --write-out '%{http_code} ' "$1/2023/18/results.json"; }
for count in 1 2 3; do ask "$ERGAST_BASE_URL"; done
for count in 1 2; do ask "$BUSY_URL"; done
"""


@pytest.mark.parametrize(
    ("lines", "variables"),
    [(STEPS, JOB["env"]), (GITLAB["test"]["script"], GITLAB["test"]["variables"])],
    ids=["GitHub Actions", "GitLab"],
)
def test_the_sample_is_served_to_tests_and_a_second_service_is_busy(tmp_path, lines, variables):
    assert re.fullmatch(r"pipx? install ci/racedata_f1-\*\.whl", lines[0])
    (tmp_path / "ci").mkdir()
    built(SAMPLE, tmp_path / "sample.db")
    sums = subprocess.run(["sha256sum", "sample.db"], cwd=tmp_path, capture_output=True, check=True)
    (tmp_path / "ci" / "sample.sha256").write_bytes(sums.stdout)
    (tmp_path / "sample.db").unlink()
    (tmp_path / "run-tests").write_text(TESTS)
    (tmp_path / "run-tests").chmod(0o755)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with (
        (tmp_path / "out").open("w") as out,
        subprocess.Popen(
            ["bash", "-e", "-c", "\n".join(lines[1:])],
            cwd=tmp_path,
            env={**os.environ, **variables, "PATH": path},
            start_new_session=True,
            stdout=out,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        try:
            assert process.wait() == 0
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # both services
            until(lambda: not any(listens(("127.0.0.1", port)) for port in (8000, 8001)))
    said = (tmp_path / "out").read_text()
    assert "sample.db: OK\n" in said
    assert said.endswith("200 200 200 200 429 ")
