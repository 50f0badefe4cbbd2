"""scripts/release.py: what a release consists of, and each reason to refuse one. test_wheel.py in
system/ builds the packages, test_export.py there writes the Parquet files.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from support import EXPECTED, ROOT, SAMPLE
from support.loads import changed, csv_rows, edit, select

sys.path.insert(0, str(ROOT / "scripts"))

import release
from release import Refused

from racedata import __version__

SECONDS = 1700000000
AUTHOR = [
    *("-c", "user.name=a", "-c", "user.email=a@b"),
    *("-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"),
]


def git(folder, *arguments):
    environ = {**os.environ, "GIT_COMMITTER_DATE": f"@{SECONDS} +0000"}
    subprocess.run(["git", *AUTHOR, *arguments], cwd=folder, env=environ, check=True)


@pytest.fixture
def checkout(tmp_path):
    """A checkout with the files that the checks read. Its owner has given the addresses."""
    for name in (*release.VERSIONS, "setup.cfg", "CHANGELOG.md"):
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, path)
    folder = tmp_path / "checkout"
    for placeholder in release.PLACEHOLDERS:
        edit(folder / "setup.cfg", placeholder, ADDRESS)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "all")
    return folder


def test_a_checkout_with_everything_is_accepted(checkout):
    release.check_checkout(checkout)
    assert release.time_of(checkout) == SECONDS


VERSION = re.escape(__version__)
HEADS = ["[Unreleased]", f"[{__version__}]", "[0.9.0] - 2026-11-26"]
AS_SAID = f"the version is 0.9.0; expected {__version__}, as racedata/__init__.py says"
ADDRESS = "https://example.org/"
WRONG = [
    *((name, VERSION, "0.9.0", AS_SAID) for name in [*release.VERSIONS][1:]),
    *(("setup.cfg", ADDRESS, new, "expected the address") for new in release.PLACEHOLDERS),
    *(
        ("CHANGELOG.md", "(?m)^## .*", f"## {new}", f"the top section is {new!r}; ")
        for new in HEADS
    ),
]


@pytest.mark.parametrize(("name", "old", "new", "said"), WRONG)
def test_a_checkout_with_a_wrong_file_is_refused_in_one_line(checkout, name, old, new, said):
    path = checkout / name
    path.write_text(re.sub(old, new, path.read_text()))
    git(checkout, "commit", "--quiet", "--all", "--message", "wrong")
    with pytest.raises(Refused, match=rf"^{name}: .*{re.escape(said)}.*$"):
        release.check_checkout(checkout)


@pytest.mark.parametrize(("name", "text"), [("setup.cfg", "# more\n"), ("new.txt", "new\n")])
def test_what_is_not_committed_is_refused(checkout, name, text):
    with (checkout / name).open("a") as file:
        file.write(text)
    with pytest.raises(Refused, match=f"^{name}: not committed; expected a checkout "):
        release.check_checkout(checkout)


def test_the_project_has_its_address_in_one_place():
    files = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    of_release = {"scripts/release.py", "tests/test_release.py"}
    for placeholder in release.PLACEHOLDERS:
        found = {
            name
            for name in files
            if (ROOT / name).is_file()
            and placeholder.encode() in (ROOT / name).read_bytes()
            and name not in of_release
        }
        assert found <= {"setup.cfg", "deploy/listing/server.json"}


def test_the_notes_of_a_release_are_the_top_section_of_the_changelog(checkout):
    text = (
        f"# Changelog\n\n## [{__version__}] - 2026-11-26\n\n### Added\n\n- all\n\n## [0.9.0] - x\n"
    )
    (checkout / "CHANGELOG.md").write_text(text)
    assert release.notes(checkout) == f"# racedata {__version__}\n\n### Added\n\n- all\n"


def test_the_command_checks_the_checkout_and_says_in_one_line_why_it_refuses():
    ended = subprocess.run(
        [sys.executable, ROOT / "scripts" / "release.py", "--check"], capture_output=True, text=True
    )
    # the project's own address is not known
    assert ended.returncode == 1
    assert re.fullmatch(r"release: .*; expected .*\n", ended.stderr)


# The packages.


@pytest.mark.parametrize("name", ["x.tar.gz", "x.oci.tar"])
def test_archives_of_the_same_files_get_the_same_bytes(tmp_path, name):
    path, found = tmp_path / name, []
    for number, names in enumerate([["b", "a", "d/c"], ["a", "d/c", "b"]]):
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
            for member in names:
                info = tarfile.TarInfo(member)
                info.mtime, info.uname, info.mode, info.size = number, f"x{number}", 0o600, 3
                archive.addfile(info, io.BytesIO(b"abc"))
        release.normalise_tar(path, SECONDS)
        found.append(path.read_bytes())
    assert found[0] == found[1]
    with tarfile.open(path) as archive:
        assert archive.extractfile("a").read() == b"abc"
        assert [(info.name, info.mtime) for info in archive] == [
            (name, SECONDS) for name in ("a", "b", "d/c")
        ]


# The data.


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("open") / release.DATABASE
    release.build_database(str(EXPECTED / "f1db"), path, SECONDS, None)
    return path


def test_the_database_has_only_f1db_and_says_where_that_is_published(database):
    release.check_licence(database)
    sources = select(database, "SELECT name, address, licence FROM sources")
    published = release.PUBLISHED["f1db"]
    assert sources == [("f1db", published, "CC BY 4.0")]
    assert [path.name for path in database.parent.iterdir()] == [release.DATABASE]


def test_the_same_release_of_f1db_gives_the_same_bytes_wherever_it_is(database, tmp_path):
    copy = shutil.copytree(EXPECTED / "f1db", tmp_path / "copy")
    release.build_database(str(copy), tmp_path / "x.db", SECONDS, None)
    assert (tmp_path / "x.db").read_bytes() == database.read_bytes()


@pytest.mark.parametrize("source", ["", "https://example.org/releases/latest/download/f1db.zip"])
def test_a_release_of_f1db_that_is_not_pinned_is_refused(source, tmp_path):
    expected = f"F1DB='{source}': expected the zip of one release, or its URL"
    with pytest.raises(Refused, match=f"^{re.escape(expected)}$"):
        release.build_database(source, tmp_path / "x.db", SECONDS, None)


def test_a_source_under_another_licence_is_refused(tmp_path):
    with pytest.raises(Refused, match=r"its licence is CC BY-NC-SA .*; expected CC BY or CC0"):
        release.build_database(str(SAMPLE), tmp_path / "x.db", SECONDS, None)


def test_a_database_under_another_licence_is_refused(database, tmp_path):
    path = Path(shutil.copy(database, tmp_path))
    changed(path, "UPDATE sources SET licence = 'CC BY-NC-SA 4.0'")
    expected = r"^racedata-open.db: the licence is CC BY-NC-SA 4.0; .*; expected CC BY 4.0$"
    with pytest.raises(Refused, match=expected):
        release.check_licence(path)


def test_fewer_rows_than_in_the_last_release_are_refused(database, tmp_path):
    release.check_rows(database, database)
    path = Path(shutil.copy(database, tmp_path / "previous.db"))
    changed(path, "UPDATE row_counts SET rows = rows + 1000 WHERE name = 'qualifying'")
    ((rows,),) = select(database, "SELECT rows FROM row_counts WHERE name = 'qualifying'")
    expected = f"{rows} rows of qualifying; expected 1,0{rows} or more, as in {path}"
    with pytest.raises(Refused, match=f"^{re.escape(f'racedata-open.db: {expected}')}$"):
        release.check_rows(database, path)


def test_the_changes_since_the_last_release_have_old_and_new_values_by_race(database, tmp_path):
    newer = shutil.copytree(EXPECTED / "f1db", tmp_path / "newer")
    (row,) = [row for row in csv_rows(newer, "f1db-drivers") if row["id"] == "alexander-albon"]
    edit(newer / "f1db-drivers.csv", row["dateOfBirth"], "1996-03-24")
    edit(newer / "f1db-races-race-results.csv", ",56,5809360,", ",56,5809361,")
    databases = [tmp_path / name for name in ("x.db", "y.db")]
    for path in databases:
        release.build_database(str(newer), path, SECONDS + 60, database)
    assert databases[0].read_bytes() == databases[1].read_bytes()
    text = release.changes_since(databases[0], database)
    assert text.startswith("# Changes of the data since 2023-11-14T22:13:20Z\n")
    assert "\n## Drivers, constructors, circuits and seasons\n\n- drivers, `albon`, dob: " in text
    assert "\n## 2023 18 United States Grand Prix\n\n- results, `2023/18/sargeant`, " in text
    assert "`5809360`, now `5809361`: " in text
    assert "Nothing has changed." in release.changes_since(databases[0], databases[0])


def test_the_data_is_one_database_and_its_export(database, tmp_path):
    release.export(database, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "racedata-open-ergast.zip",
        "racedata-open-more.zip",
    }


# The images and the sums.


def test_without_what_an_image_needs_a_line_says_what(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(release.build_images(ROOT, tmp_path, SECONDS, {})) == [
        f"racedata-{__version__}-{name}.oci.tar: not built; it needs buildah"
        for name in ("amd64", "arm64")
    ]


def test_the_sums_are_those_of_all_files(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(name)
    release.write_sums(tmp_path)
    assert (tmp_path / release.SUMS).read_text().count("\n") == 2
    check = ["sha256sum", "--quiet", "-c", release.SUMS]
    assert subprocess.run(check, cwd=tmp_path).returncode == 0


def test_a_command_that_fails_is_refused_with_its_last_line():
    with pytest.raises(Refused, match=r"^ls: .*No such file"):
        release.run("ls", "/nowhere", LC_ALL="C")
    with pytest.raises(Refused, match=r"^false: no message$"):
        release.run("false")
