"""docs/clients.md: f1dataR, with the package's own R code."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import requests
from support import ROOT
from support.processes import service

SOURCES = os.environ.get("F1DATAR", "")  # a checkout of f1dataR

pytestmark = pytest.mark.skipif(
    not (SOURCES and shutil.which("R")), reason="needs F1DATAR, R and the R packages it imports"
)

# The number of rows is not enough: a page that is read twice has too many rows that are equal.
COUNT = "count <- function(rows) cat(nrow(unique(as.data.frame(rows))), nrow(rows), '\\n')\n"


@pytest.fixture(scope="module")
def host(sample_database, tmp_path_factory):
    with service(sample_database, tmp_path_factory.mktemp("f1dataR-log") / "log") as running:
        yield "http://{}:{}".format(*running.address)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """An R library with f1dataR, without what loads Python and caches (zzz.R), and with any
    versions of the packages that it imports.
    """
    folder = tmp_path_factory.mktemp("f1dataR")
    package, library = folder / "package", folder / "library"
    shutil.copytree(Path(SOURCES) / "R", package / "R", ignore=shutil.ignore_patterns("zzz.R"))
    shutil.copy(Path(SOURCES) / "NAMESPACE", package)
    description = (Path(SOURCES) / "DESCRIPTION").read_text(encoding="utf-8")
    (package / "DESCRIPTION").write_text(re.sub(r" \(>= [\d.]+\)", "", description))
    library.mkdir()
    run("R", "CMD", "INSTALL", "--no-test-load", f"--library={library}", str(package))
    return library


def run(*command):
    # With `TZ`, R does not ask systemd for the time zone.
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TZ": "UTC"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("call", "address"),
    [
        ("load_results(2023, 18)", "2023/18/results"),
        ("load_sprint(2023, 18)", "2023/18/sprint"),
        ("load_quali(2023, 18)", "2023/18/qualifying"),
        ("load_laps(2023, 18)", "2023/18/laps"),
        ("load_pitstops(2023, 18)", "2023/18/pitstops"),
        ("load_standings(2023, 9)", "2023/9/driverstandings"),
        ("load_schedule(2023)", "2023/races"),
        ("load_circuits(2023)", "2023/circuits"),
        ("load_drivers(2023)", "2023/drivers"),
        ("load_constructors()", "constructors"),
    ],
)
def test_f1datar_reads_every_row_with_the_default_limits(host, library, tmp_path, call, address):
    document = (ROOT / "docs/clients.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"^```r\n(.*?)^```", document, re.DOTALL | re.MULTILINE)
    script = tmp_path / "script.R"
    script.write_text(
        f".libPaths(c('{library}', .libPaths()))\nsuppressMessages(library(f1dataR))\n"
        + lines.replace("http://127.0.0.1:8000", host)
        + f"{COUNT}count({call})\n"
    )
    counted = run("Rscript", str(script)).split()
    total = requests.get(f"{host}/ergast/f1/{address}?limit=0").json()["MRData"]["total"]
    assert counted == [total, total]
