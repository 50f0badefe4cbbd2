"""racedata.loader.export and sources.ergast_files: a dump that loads as the same database, and
files that are whole.
"""

import csv
import io
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from support import EXPECTED, SAMPLE
from support.answers import client
from support.loads import (
    ABOUT_SOURCES,
    built,
    changed,
    csv_rows,
    loader_settings,
    racedata,
    run_loader,
    select,
)

from racedata.database import CHECKSUM_BYTES
from racedata.loader.corrections import CORRECTIONS
from racedata.loader.errors import LoadError
from racedata.loader.export import export
from racedata.loader.load import load
from racedata.loader.replacement import replacement
from racedata.loader.sources.ergast_files import ERGAST, OTHERS, REST_TITLE, TITLE

F1DB = EXPECTED / "f1db"
ANSWERS = ("2023/18/results", "2023/qualifying", "2023", "2023/9/driverstandings", "circuits")


def exported(database, target, more=None):
    """The path of what an export has written."""
    export(str(database), str(target), lambda text: None, more and str(more))
    return target


def unpacked(path):
    """A folder with the files of a zip, next to it."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(path.with_suffix(""))
    return path.with_suffix("")


def exported_whole(database, folder):
    """Folders with the files of a dump and of the rest."""
    dump, rest = folder / "dump.zip", folder / "more.zip"
    return [unpacked(exported(database, dump, rest)), unpacked(rest)]


@pytest.fixture(scope="module")
def whole(sample_database, tmp_path_factory):
    """Folders with the files of the dump of the sample and of the rest."""
    return exported_whole(sample_database, tmp_path_factory.mktemp("whole"))


def tables_of(database):
    """All rows of all tables but those about the load, with all ids."""
    tables = select(database, "SELECT name FROM sqlite_schema WHERE type = 'table'")
    return {
        name: select(database, f"SELECT * FROM {name}")
        for (name,) in tables
        if name not in ABOUT_SOURCES - {"corrections", "coverage"}
        and not name.startswith("sqlite_")
    }


def answers_of(database):
    """The answers to a few addresses that need only what Ergast's dump has."""
    return [client(database).get(f"/ergast/f1/{address}.json").body for address in ANSWERS]


def assert_comes_back(database, folder, corrections=None):
    """Asserts that an export, loaded, is the same database and gives the same answers. Returns the
    lines of that load.
    """
    dump, rest, again = (folder / name for name in ("dump.zip", "more.zip", "again.db"))
    sources = [str(exported(database, dump, rest)), str(rest)]
    lines = load(sources, loader_settings(again, corrections), lambda text: None)
    before, after = tables_of(database), tables_of(again)
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == []
    assert answers_of(again) == answers_of(database)
    return lines


@pytest.mark.parametrize("sources", [[SAMPLE, F1DB], [F1DB]])
def test_an_export_loads_as_the_same_database(sources, tmp_path):
    assert_comes_back(built(sources, tmp_path / "racedata.db"), tmp_path)


def test_what_ergast_has_no_columns_for_and_quotes_and_commas_come_back(database, tmp_path):
    race, other = (f"(SELECT raceId FROM races WHERE year = 2023 AND round = {n})" for n in (18, 5))
    changed(
        database,
        f"""INSERT INTO entries SELECT {race}, driverId, constructorId FROM drivers, constructors
            WHERE driverRef = 'bueb' AND constructorRef = 'alpine'""",
        f"INSERT INTO sessions VALUES ({race}, 'fp3', NULL, NULL)",
        f"INSERT INTO sessions VALUES ({other}, 'sq', '2023-05-06', NULL)",
        "UPDATE row_counts SET rows = rows + 1 WHERE name = 'entries'",
        "UPDATE row_counts SET rows = rows + 2 WHERE name = 'sessions'",
        """UPDATE drivers SET surname = 'O"Ward, "P"', forename = '"' WHERE DRIVER(alonso)""",
    )
    assert_comes_back(database, tmp_path)


TEXTS = {
    "results": {"positionText", "time", "fastestLapTime", "fastestLapSpeed"},
    "drivers": {"driverRef", "code", "forename", "surname", "dob", "nationality", "url"},
}


@pytest.mark.parametrize(("file", "texts"), TEXTS.items())
def test_texts_are_quoted_and_numbers_and_missing_values_are_not(whole, file, texts):
    header, *lines = (whole[0] / f"{file}.csv").read_text(encoding="utf-8").splitlines()
    assert '"' not in header
    for line in lines:
        fields = next(csv.reader(io.StringIO(line)))
        assert line == ",".join(
            rf'"{value}"' if name in texts and value != r"\N" else value
            for name, value in zip(header.split(","), fields)
        )


def rows_of_race(folder, file, year, round):
    ids = [
        row["raceId"]
        for row in csv_rows(folder, "races")
        if (row["year"], row["round"]) == (year, round)
    ]
    return [row for row in csv_rows(folder, file) if row["raceId"] in ids]


def test_the_points_of_a_constructor_are_the_sum_of_its_drivers_points_in_the_race_and_the_sprint(
    whole,
):
    points: Counter[str] = Counter()
    for file in ("results", "sprint_results"):
        for row in rows_of_race(whole[0], file, "2023", "18"):
            points[row["constructorId"]] += float(row["points"])
    found = rows_of_race(whole[0], "constructor_results", "2023", "18")
    assert points and {row["constructorId"]: float(row["points"]) for row in found} == points


def test_the_same_database_gives_the_same_zip_with_the_files_of_ergasts_dump(
    sample_database, whole, tmp_path
):
    """Its README begins with its title. The progress names each file."""
    said: list[str] = []
    first, second, more = (tmp_path / name for name in ("a.zip", "b.zip", "more.zip"))
    export(str(sample_database), str(first), said.append, str(more))
    assert {text.partition(".csv: ")[0] for text in said} == {*ERGAST, *OTHERS} - {"entries"}
    assert said[-1].endswith(" rows")
    assert first.read_bytes() == exported(sample_database, second).read_bytes()
    with zipfile.ZipFile(first) as archive:
        names = {name.removesuffix(".csv") for name in archive.namelist()}
    assert names == {"README.txt", "licence.txt", *ERGAST}
    for folder, title in zip(whole, (TITLE, REST_TITLE)):
        text = (folder / "README.txt").read_text(encoding="utf-8")
        assert text.startswith(f"{title}\n") and "issing value is \\N. " in text


def test_a_further_file_without_rows_is_left_out(source, tmp_path):
    (source / "practice.csv").unlink()
    _, rest = exported_whole(built(source, tmp_path / "racedata.db"), tmp_path)
    assert (rest / "sessions.csv").exists()
    assert not (rest / "practice.csv").exists()
    assert "practice.csv" not in (rest / "README.txt").read_text(encoding="utf-8")


def test_the_licences_say_what_is_from_which_source_and_name_no_path_or_key(tmp_path):
    database = built([SAMPLE, F1DB], tmp_path / "racedata.db")
    for address in ("https://example.org/f1db.zip?key=1", "jolpica:https://example.org/x/?key=1"):
        changed(database, f"UPDATE sources SET address = '{address}' WHERE name = 'f1db'")
        folder = unpacked(exported(database, tmp_path / "dump.zip"))
        text = (folder / "licence.txt").read_text(encoding="utf-8")
        assert f"  address: {address.partition('?')[0]}\n" in text
    licence = "CC BY-NC-SA 4.0; name sample, f1db, and say that it was changed"
    assert text.splitlines()[0] == licence
    for row in select(database, "SELECT licence, substr(readAt, 1, 10), gave FROM sources"):
        for said in row:
            assert said in text
    assert str(SAMPLE.parent) not in text
    again = built(folder, tmp_path / "again.db")
    assert select(again, "SELECT licence FROM sources") == [(licence,)]


def test_an_export_replaces_an_earlier_one_or_an_empty_file(
    sample_database, other_database, tmp_path
):
    target = tmp_path / ".ZIP"  # a name that ends with .zip
    target.touch()
    assert zipfile.is_zipfile(exported(sample_database, target))
    target.chmod(0o750)
    exported(other_database, target)
    target = target.rename(tmp_path / "dump.zip")
    assert answers_of(built(target, tmp_path / "x.db")) == answers_of(other_database)
    assert target.stat().st_mode & 0o777 == 0o750
    assert {path.name for path in tmp_path.iterdir()} == {"dump.zip", "x.db", "x.sources.db"}


def test_rows_that_ergasts_tables_cannot_have_and_rows_that_name_them_are_only_in_the_rest(
    database, tmp_path
):
    ((id,),) = select(database, "SELECT driverId FROM drivers WHERE driverRef = 'alonso'")
    stops = select(database, f"SELECT raceId, record FROM pit_stops WHERE driverId <> {id} LIMIT 2")
    unknown = "UPDATE pit_stops SET {} = NULL WHERE raceId = {} AND record = {}"
    changed(
        database,
        f"UPDATE drivers SET url = NULL WHERE driverId = {id}",
        *(unknown.format(name, *stop) for name, stop in zip(("time", "milliseconds"), stops)),
    )
    paths = [str(tmp_path / name) for name in ("dump.zip", "more.zip")]
    lines = export(str(database), paths[0], lambda text: None, paths[1])
    dump, rest = (unpacked(Path(path)) for path in paths)
    for name in ("drivers", "results", "qualifying", "lap_times", "driver_standings"):
        assert not any(row["driverId"] == str(id) for row in csv_rows(dump, name))
        assert {row["driverId"] for row in csv_rows(rest, name)} == {str(id)}
        assert csv_rows(rest, name)[0].keys() == csv_rows(dump, name)[0].keys()
    in_dump = csv_rows(dump, "pit_stops")
    assert in_dump and not any(r"\N" in (row["time"], row["milliseconds"]) for row in in_dump)
    own = select(database, f"SELECT count(*) FROM pit_stops WHERE driverId = {id}")[0][0]
    assert len(csv_rows(rest, "pit_stops")) == own + 2
    alone = export(str(database), paths[0], lambda text: None)
    said, hint = (next(line for line in each if "left out: " in line) for each in (lines, alone))
    assert "1 of drivers" in said and f"{own + 2} of pit_stops" in said
    assert hint == f"{said}; --more MORE writes them" and "--more" not in said
    again = built([dump, rest], tmp_path / "again.db", None)  # a stop without a time comes last
    assert select(again, "SELECT * FROM row_counts") == select(database, "SELECT * FROM row_counts")
    assert_comes_back(again.rename(tmp_path / "numbered.db"), tmp_path)


def test_of_two_drivers_with_one_address_the_second_is_only_in_the_rest(database, tmp_path):
    url = "(SELECT url FROM drivers WHERE driverRef = 'alonso')"
    changed(database, f"UPDATE drivers SET url = {url} WHERE driverRef = 'hamilton'")
    dump, rest = exported_whole(database, tmp_path)
    (left_out,) = csv_rows(rest, "drivers")
    assert left_out["driverRef"] in ("alonso", "hamilton")
    urls = [row["url"] for row in csv_rows(dump, "drivers")]
    assert len(urls) == len(set(urls))


@pytest.mark.parametrize(
    ("name", "more", "fault"),
    [
        ("copy.db", "more.zip", "{}/copy.db: expected a name that ends with .zip"),
        ("dump.zip", "more", "{}/more: expected a name that ends with .zip"),
        ("dump.zip", "dump.zip", "--more {}/dump.zip: is FILE itself; expected another file"),
        ("no/x.zip", None, "{}/no: not a folder; expected an existing folder for x.zip"),
    ],
)
def test_the_dump_and_the_rest_need_a_place_of_their_own(
    sample_database, tmp_path, name, more, fault
):
    words = [tmp_path / name, *(["--more", tmp_path / more] if more else [])]
    done = racedata("export", *words, "--database", sample_database)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"racedata export: {fault.format(tmp_path)}; nothing was changed\n"
    assert list(tmp_path.iterdir()) == []


def test_the_rest_of_an_export_does_not_load_without_its_dump_or_twice(whole, tmp_path):
    dump, rest = whole
    done = run_loader(rest, tmp_path / "x.db")
    assert done.stderr == (
        f"racedata load: {rest}: is the rest of an export; expected its dump before it: "
        "racedata load FILE MORE; nothing was changed\n"
    )
    with pytest.raises(LoadError, match=r"more: \w+\.csv, line 2, columns? .* appears twice; "):
        built([dump, rest, rest], tmp_path / "x.db")


def zip_of_somebody(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(SAMPLE / "races.csv", "races.csv")


FOREIGN = {
    "text": lambda path: path.write_text("not ours"),
    "zip of somebody": zip_of_somebody,
    "dump of somebody": lambda path: shutil.copytree(SAMPLE, path),
    "damaged zip": lambda path: path.write_bytes(b"PK\3\4" + bytes(100)),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_an_export_replaces_only_an_earlier_export(sample_database, tmp_path, make):
    target = tmp_path / "x.zip"
    make(target)
    with pytest.raises(LoadError) as refused:
        exported(sample_database, target)
    assert str(refused.value) == (
        f"{target}: exists and is not a zip that racedata has exported; move it away, or name "
        "another file"
    )


def test_the_command_reports_the_rows_of_each_file(database, tmp_path):
    """A damaged database is not exported."""
    target = tmp_path / "dump.zip"
    done = racedata("export", target, "--database", database)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, last = done.stdout.splitlines()
    rows = {name: int(count.replace(",", "")) for name, count, _ in map(str.split, lines)}
    for name in ("races", "lap_times"):
        assert select(database, f"SELECT count(*) FROM {name}") == [(rows[name],)]
    assert last == f"{target}: {target.stat().st_size:,} bytes"
    before = target.read_bytes()
    database.write_bytes(database.read_bytes()[:-CHECKSUM_BYTES] + bytes(CHECKSUM_BYTES))
    done = racedata("export", target, "--database", database)
    assert done.returncode == 1
    assert done.stderr.startswith(f"racedata export: {database} is damaged")
    assert target.read_bytes() == before


def test_a_full_disk_leaves_the_earlier_export(sample_database, other_database, tmp_path):
    target, more = exported(sample_database, tmp_path / "dump.zip"), tmp_path / "more.zip"
    limited = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from racedata.loader.export import main
main([{str(target)!r}, "--more", {str(more)!r}, "--database", {str(other_database)!r}])
"""
    # coverage.py could not write its file
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, env=env)
    assert done.returncode == 1
    assert done.stderr == f"racedata export: {target}: File too large; nothing was changed\n"
    assert list(tmp_path.iterdir()) == [target]
    assert answers_of(built(target, tmp_path / "x.db")) == answers_of(sample_database)


def test_a_killed_export_leaves_the_earlier_one_and_the_next_cleans_up(
    sample_database, other_database, tmp_path
):
    target = exported(sample_database, tmp_path / "dump.zip")
    killed = f"""
import os, signal
from racedata.loader.export import export
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)  # when the zip is written
export({str(other_database)!r}, {str(target)!r}, lambda text: None)
"""
    done = subprocess.run([sys.executable, "-c", killed], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    assert answers_of(built(target, tmp_path / "x.db")) == answers_of(sample_database)
    exported(other_database, target)
    assert {path.name for path in tmp_path.iterdir()} == {"dump.zip", "x.db", "x.sources.db"}


def test_an_export_is_written_while_a_load_has_locked_the_folder(database, tmp_path):
    with replacement(str(database)):
        exported(database, database.with_name("dump.zip"))


# Columns that the database does not have as the dump does: how many fields differ, of 1,137,998 in
# the full one. All but `points` and `position` are the same facts in other digits, but for 21 of
# its faults.
DIFFERENT = {
    "sample": {"results.time": 23, "results.rank": 21, "results.position": 2},
    "dump": {
        "results.time": 3021,  # `+68.130` is `+1:08.130`, `1:35:39.2` is `1:35:39.200`
        "results.rank": 258,  # 0 is unknown
        "results.position": 50,  # 2025: a number for who was not classified
        "pit_stops.duration": 86,  # `17.84` is `17.840`
        "constructor_results.points": 48,  # 27 of 2025 lack the sprint; 21 before 1973
        "sprint_results.position": 11,  # as in results
        "sprint_results.time": 1,  # its milliseconds say another one
        "drivers.nationality": 1,  # `Argentinian `
    },
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_dump_comes_back_field_by_field_with_its_columns_and_ids(name, request, tmp_path):
    database = request.getfixturevalue(f"{name}_database")
    source = SAMPLE if name == "sample" else request.getfixturevalue(name)
    folder = unpacked(exported(database, tmp_path / "dump.zip"))
    different: Counter[str] = Counter()
    for file in ERGAST:
        if not (source / f"{file}.csv").exists():
            assert (name, file) == ("sample", "constructor_results")
            continue
        old, new = (keyed(file, csv_rows(path, file)) for path in (source, folder))
        if file == "constructor_results":
            assert (len(old.keys() - new.keys()), len(new.keys() - old.keys())) == (7, 10)
        else:
            assert old.keys() == new.keys()
        for key in old.keys() & new.keys():
            # the sample lacks some columns of Ergast's, and has a few more
            common = [column for column in old[key] if column in new[key]]
            assert common == [column for column in new[key] if column in old[key]]
            assert name == "sample" or [*old[key]] == [*new[key]]
            for column in common:
                # 24 races have fewer fields than their header
                same = (old[key][column] or r"\N") == new[key][column]
                if column != "constructorResultsId" and not same:
                    different[f"{file}.{column}"] += 1
    assert different == DIFFERENT[name]


def keyed(table, rows):
    """The rows of a file, by the columns that name one."""
    key = {
        "constructor_results": ["raceId", "constructorId"],
        "lap_times": ["raceId", "driverId", "lap"],
        "pit_stops": ["raceId", "driverId", "stop"],
    }.get(table, list(rows[0])[:1])
    return {tuple(row[name] for name in key): row for row in rows}


def test_a_full_dump_with_f1db_loads_again_and_nothing_is_corrected_twice(full_database, tmp_path):
    assert select(full_database, "SELECT 1 FROM corrections") != []
    lines = assert_comes_back(full_database, tmp_path, CORRECTIONS)
    assert not any(line.startswith(("corrected", "obsolete")) for line in lines)


def test_jolpicas_dump_loads_again_as_the_same_database(jolpica, tmp_path):
    assert_comes_back(built(jolpica, tmp_path / "racedata.db"), tmp_path)
