"""The service against its own description: Schemathesis sends requests that the description allows,
and others.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import OFF, service

# Not `stateful`: the description has no links, and those that Schemathesis infers ignore the
# patterns of parameters. It takes `/status.json` for a `/{season}`.
PHASES = "examples,coverage,fuzzing"


@pytest.mark.long(30)
def test_schemathesis_finds_no_answer_outside_the_description(sample_database, tmp_path):
    # it reads it from the folder it runs in
    shutil.copy(Path(__file__).with_name("schemathesis.toml"), tmp_path)
    program = Path(sys.executable).with_name("schemathesis")
    command = [program, "run", "--checks", "all", "--phases", PHASES, "--max-examples", "10"]
    with service(sample_database, tmp_path / "log", **OFF) as running:
        url = "http://{}:{}/openapi.json".format(*running.address)
        done = subprocess.run([*command, url], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    generated, passed = re.search(r"(\d+) generated, (\d+) passed", done.stdout).groups()
    assert generated == passed
