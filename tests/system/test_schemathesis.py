"""The service against its own description: Schemathesis asks what the description allows, and what it does not.

How many cases it makes up for each operation and way of asking, SCHEMATHESIS_CASES says.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from service import OFF, service

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="Schemathesis needs Python 3.11")


def test_schemathesis_finds_no_answer_outside_the_description(sample_database, tmp_path):
    shutil.copy(Path(__file__).with_name("schemathesis.toml"), tmp_path)  # it reads it from the folder it runs in
    command = [
        Path(sys.executable).with_name("schemathesis"),
        "run",
        "--checks",
        "all",
        "--max-examples",
        os.environ.get("SCHEMATHESIS_CASES", "400"),
    ]
    with service(sample_database, tmp_path / "log", **OFF) as running:
        url = "http://{}:{}/openapi.json".format(*running.address)
        done = subprocess.run([*command, url], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    generated, passed = re.search(r"(\d+) generated, (\d+) passed", done.stdout).groups()
    assert generated == passed
