"""The add-on for Home Assistant in deploy/home-assistant/, without a Supervisor: its configuration,
and the service that its script starts. And the entries in deploy/listing/.
"""

import configparser
import json
import os
import re
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from support import EXPECTED, ROOT, SAMPLE
from support.processes import OFF, free_port, started, until

FOLDER, LISTING = ROOT / "deploy" / "home-assistant", ROOT / "deploy" / "listing"
CONFIG = yaml.safe_load((FOLDER / "config.yaml").read_text())

# From developers.home-assistant.io, "Add-on configuration".
REQUIRED = {"name", "version", "slug", "description", "arch"}


def test_the_configuration_has_the_required_keys_and_describes_its_port():
    assert {*CONFIG} >= REQUIRED
    assert {*CONFIG["ports_description"]} == {*CONFIG["ports"]} == {"8000/tcp"}
    assert sorted(CONFIG["arch"]) == ["aarch64", "amd64"]
    for name in ("webui", "watchdog"):
        assert CONFIG[name].startswith("http://[HOST]:[PORT:8000]/")


def test_each_option_has_a_type_and_a_description_and_a_default_that_fits():
    types = CONFIG["schema"]
    documented = re.findall(r"^\| `(\w+)` \|", (FOLDER / "DOCS.md").read_text(), re.M)
    assert [*CONFIG["options"]] == [*types] == documented
    for name, value in CONFIG["options"].items():
        choices = re.fullmatch(r"list\((.*)\)", types[name])
        if choices:
            assert value in choices[1].split("|")
        else:
            assert isinstance(value, {"str?": str, "bool": bool}[types[name]])


def test_the_image_is_made_of_files_that_exist():
    copied = re.findall(r"^COPY (\S+)", (FOLDER / "Dockerfile").read_text(), re.M)
    assert [name for name in copied if not (FOLDER / name).is_file()] == []


@contextmanager
def served(folder, **options):
    """The answer of /healthz once the service that the script has started says that it is loaded;
    and the file of options.
    """
    file, port = folder / "options.json", free_port()
    file.write_text(json.dumps(CONFIG["options"] | options))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, **OFF, "PATH": path, "PORT": str(port), "WEB_CONCURRENCY": "1"}
    command = [sys.executable, FOLDER / "run.py", file]

    def health():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
            return json.load(answer)

    with started(command, ("127.0.0.1", port), cwd=folder, env=environ):
        until(lambda: "sample" not in health())
        yield health()


@pytest.mark.parametrize(
    ("licence", "source", "follow", "name"),
    [
        ("open", EXPECTED / "f1db", True, "f1db"),
        ("any", SAMPLE, True, "source"),
        ("any", SAMPLE, False, "source"),
    ],
)
def test_the_script_starts_a_service_with_these_options(tmp_path, licence, source, follow, name):
    copy = tmp_path / "source"
    copy.symlink_to(source)
    with served(tmp_path, sources=str(copy), follow=follow, licence=licence) as health:
        assert [each["name"] for each in health["sources"]] == [name]
        assert ("CC BY 4.0" in health["licence"]) == (licence == "open")
    database = "open" if licence == "open" else "racedata"
    assert (tmp_path / f"{database}.db").is_file()


def test_the_entry_in_the_registry_of_mcp_servers_names_the_package_and_its_owner():
    entry = json.loads((LISTING / "server.json").read_text())
    metadata = configparser.ConfigParser()
    metadata.read(ROOT / "setup.cfg")
    (package,) = entry["packages"]
    assert package["identifier"] == metadata["metadata"]["name"]
    # how the registry sees that both are of one owner
    assert f"mcp-name: {entry['name']}" in metadata["metadata"]["long_description"]
    # `uvx racedata-f1 mcp` runs the command with the name of the package
    commands = metadata["options.entry_points"]["console_scripts"]
    assert f"\n{package['identifier']} =" in commands


@pytest.mark.parametrize("name", ["f1db.md", "jolpica.md"])
def test_an_entry_for_a_list_is_one_line_with_a_place_for_the_address(name):
    (line,) = (LISTING / name).read_text().splitlines()
    assert re.fullmatch(r"- (\S+ )?\[racedata\]\(ADDRESS\)( \W|:) .{20,}", line)
    assert f"`{name}`" in (LISTING / "README.md").read_text()
