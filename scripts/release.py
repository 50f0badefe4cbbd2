#!/usr/bin/env python3
"""The script of `make release`: makes everything that a release needs in dist/.

The same commit, the same release of f1db and the same earlier database give the same bytes. All
times are that of the last commit, and the packages are built from its files, not from the checkout.
With `--check`, it only checks what needs neither the network nor the data.
"""

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from racedata.database import CHECKSUM_BYTES, write_checksum
from racedata.licences import NAMED, SOURCES, licence_of_file
from racedata.loader.sources import PUBLISHED

ROOT = Path(__file__).resolve().parents[1]
DATABASE, SUMS = "racedata-open.db", "SHA256SUMS"
# What setup.cfg has instead of the project's address, and its name in the registry of MCP servers.
PLACEHOLDERS = ("https://project.invalid/", "invalid.project/racedata")
# The files that have the version, and where in them.
VERSIONS = {
    "racedata/__init__.py": r'__version__ = "(.*)"',
    "docs/run.md": r"racedata_f1-([\d.]+)-py3",
    "deploy/Containerfile": r'image\.version="(.*)"',
    "deploy/home-assistant/config.yaml": r'(?m)^version: "(.*)"',
    "deploy/home-assistant/Dockerfile": r"FROM .*racedata:([\d.]+)",
    "deploy/listing/server.json": r'(?:"version": "|==)([\d.]+)',
}
# The image for each architecture, and what the kernel calls it.
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
INTERPRETERS = Path("/proc/sys/fs/binfmt_misc")  # of programs for other machines


class Refused(Exception):
    """Why there is no release, in one line."""


# What must be true of the checkout.


def check_checkout(root: Path) -> None:
    """Raises Refused if a release of this checkout would be wrong."""
    check_committed(root)
    check_versions(root)
    notes(root)
    check_address(root)


def check_committed(root: Path) -> None:
    if lines := git(root, "status", "--porcelain").splitlines():
        raise Refused(f"{lines[0][3:]}: not committed; expected a checkout without changes")


def check_versions(root: Path) -> None:
    expected = version(root)
    for name, pattern in VERSIONS.items():
        for found in re.findall(pattern, (root / name).read_text(encoding="utf-8")) or ["none"]:
            if found != expected:
                what = f"the version is {found}; expected {expected}, as racedata/__init__.py says"
                raise Refused(f"{name}: {what}")


def check_address(root: Path) -> None:
    text = (root / "setup.cfg").read_text(encoding="utf-8")
    for line in text.splitlines():
        if any(placeholder in line for placeholder in PLACEHOLDERS):
            raise Refused(f"setup.cfg: {line.strip()}; expected the address of the project")


def notes(root: Path) -> str:
    """The top section of the changelog, which must be about this version."""
    sections = (root / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")
    head, _, text = sections[min(1, len(sections) - 1)].partition("\n")
    if not re.fullmatch(rf"\[{re.escape(version(root))}\] - \d{{4}}-\d\d-\d\d", head):
        expected = f"expected ## [{version(root)}] and its date"
        raise Refused(f"CHANGELOG.md: the top section is {head!r}; {expected}")
    return f"# racedata {version(root)}\n\n{text.strip()}\n"


def version(root: Path) -> str:
    (found,) = re.findall(
        VERSIONS["racedata/__init__.py"], (root / "racedata/__init__.py").read_text()
    )
    return str(found)


def time_of(root: Path) -> int:
    """The time of the last commit, in seconds since 1970."""
    return int(git(root, "log", "-1", "--format=%ct"))


def git(root: Path, *arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], cwd=root, text=True)


# The packages.


def build_packages(root: Path, dist: Path, seconds: int) -> None:
    """Builds the wheel and the source distribution from the last commit."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        archive = subprocess.check_output(["git", "archive", "HEAD"], cwd=root)
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder / "source", filter="data")
        tools = root / "build" / "dist" / "bin"
        words = ("-m", "build", "--no-isolation", "--outdir", dist, folder / "source")
        run(tools / "python", *words, SOURCE_DATE_EPOCH=str(seconds))
        for path in dist.glob("*.tar.gz"):  # setuptools only makes wheels alike
            normalise_tar(path, seconds)
        run(tools / "twine", "check", "--strict", *dist.iterdir())


def normalise_tar(path: Path, seconds: int) -> None:
    """Gives an archive the same bytes for the same files: their order, times, modes and owners."""
    content = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=content, mode="w") as new:
        for member in sorted(old, key=lambda member: member.name):
            info = tarfile.TarInfo(member.name)
            info.type, info.size, info.mtime = member.type, member.size, seconds
            info.mode = 0o755 if member.isdir() else 0o644
            new.addfile(info, old.extractfile(member))
    files = content.getvalue()
    path.write_bytes(gzip.compress(files, mtime=seconds) if path.suffix == ".gz" else files)


# The data.


def build_database(source: str, path: Path, seconds: int, previous: Path | None) -> None:
    """Builds the database at `path` from a release of f1db and the corrections.

    It replaces `previous`, so that it lists what has changed since then.
    """
    if not source or "/latest/" in source:
        raise Refused(f"F1DB={source!r}: expected the zip of one release, or its URL")
    if previous:
        shutil.copyfile(previous, path)
    environ = {"SOURCE_DATE_EPOCH": str(seconds), "RACEDATA_LICENCE": "open"}
    words = ("load", "--only", "--corrections", "default", "--database", path, source)
    run(sys.executable, "-m", "racedata", *words, RACEDATA_SOURCES="", **environ)
    path.with_suffix(".sources.db").unlink()
    # Whoever refreshes a copy asks where f1db is published, not where this machine had it.
    path.write_bytes(path.read_bytes()[:-CHECKSUM_BYTES])
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE sources SET address = ? WHERE name = 'f1db'", (PUBLISHED["f1db"],))
        db.execute("VACUUM")  # otherwise, the page would still have parts of the other address
    write_checksum(path)


def check_licence(path: Path) -> None:
    """Raises Refused unless everybody may use all of a database for anything, with names."""
    licence = licence_of_file(rows_of(path, SOURCES))
    if not licence.startswith(f"{NAMED};"):
        raise Refused(f"{path.name}: the licence is {licence}; expected {NAMED}")


def check_rows(path: Path, previous: Path) -> None:
    """Raises Refused if a table has fewer rows than in the previous release."""
    rows = dict(rows_of(path, "SELECT name, rows FROM row_counts"))
    for name, least in rows_of(previous, "SELECT name, rows FROM row_counts"):
        if rows.get(name, 0) < least:
            what = f"{rows.get(name, 0):,} rows of {name}; expected {least:,} or more"
            raise Refused(f"{path.name}: {what}, as in {previous}")


def changes_since(path: Path, previous: Path | None) -> str:
    """What has changed in the data since the previous release, by race."""
    if not previous:
        return "# Changes of the data\n\nThis is the first release.\n"
    ((built_at, revision),) = rows_of(previous, "SELECT builtAt, revision FROM build")
    lines = [f"# Changes of the data since {built_at}"]
    found = rows_of(
        path,
        f"""SELECT year, round, raceName, kind, key, columnName, oldValue, value, reason
            FROM changes WHERE revision > {int(revision)} ORDER BY record""",
    )
    for (year, round, name), rows in groupby(found, lambda row: row[:3]):
        about = [str(part) for part in (year, round, name) if part is not None]
        lines.append(f"\n## {' '.join(about) or 'Drivers, constructors, circuits and seasons'}\n")
        for *_, kind, key, column, old, new, reason in rows:
            old, new = (value if value is not None else "nothing" for value in (old, new))
            lines.append(f"- {kind}, `{key}`, {column}: `{old}`, now `{new}`: {reason}")
    if len(lines) == 1:
        lines.append("\nNothing has changed.")
    return "\n".join([*lines, ""])


def export(path: Path, folder: Path) -> None:
    """Writes the database as a dump in Ergast's layout, and what such a dump cannot have.

    f1db has no addresses of pages, which Ergast's tables require, so most is in the second file.
    """
    file, rest = (folder / f"{path.stem}-{name}.zip" for name in ("ergast", "more"))
    words = ("export", "--database", path, file, "--more", rest)
    run(sys.executable, "-m", "racedata", *words)


def write_parquet(path: Path, folder: Path) -> None:
    """Writes a file for each view of a database."""
    import duckdb
    from duckdb_extensions import import_extension

    import_extension("sqlite_scanner")
    with closing(duckdb.connect()) as db:
        db.execute("SET threads = 1")  # several would write in any order
        db.execute(f"ATTACH '{path}' AS racedata (TYPE sqlite, READ_ONLY)")
        db.execute("USE racedata")
        for (view,) in rows_of(path, "SELECT name FROM sqlite_schema WHERE type = 'view'"):
            file = folder / f"{view}.parquet"
            db.execute(f"COPY (FROM {view} ORDER BY ALL) TO '{file}' (COMPRESSION zstd)")


def rows_of(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
        return db.execute(sql).fetchall()


# The images.


def build_images(root: Path, dist: Path, seconds: int, environ: Mapping[str, str]) -> Iterator[str]:
    """Writes an archive for each architecture that it can build. Yields what is missing."""
    for name in ARCHITECTURES:
        file = f"racedata-{version(root)}-{name}.oci.tar"
        if lacks := lacks_for_image(name):
            yield f"{file}: not built; it needs {lacks}"
            continue
        words = (f"ARCH={name}", f"BASE={environ.get('BASE', '')}", f"EPOCH={seconds}")
        run("make", "--no-print-directory", "image", *words)
        tag = f"localhost/racedata:{version(root)}"
        archive_image(f"racedata:{name}", dist / file, tag, seconds)


def archive_image(image: str, file: Path, tag: str, seconds: int) -> None:
    run("buildah", "push", "--quiet", image, f"oci-archive:{file}:{tag}")
    normalise_tar(file, seconds)


def lacks_for_image(name: str) -> str:
    """What this machine lacks to build the image for an architecture; empty if nothing."""
    if not shutil.which("buildah"):
        return "buildah"
    machine = ARCHITECTURES[name]
    if machine == os.uname().machine or (INTERPRETERS / f"qemu-{machine}").exists():
        return ""
    return f"a machine with {machine}, or qemu-user-static and its entry in {INTERPRETERS}"


# The sums.


def write_sums(dist: Path) -> None:
    """Writes the SHA-256 of each file."""
    lines = [f"{sum_of(path)}  {path.name}\n" for path in sorted(dist.iterdir())]
    (dist / SUMS).write_text("".join(lines))


def sum_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run(*command: object, **environ: str) -> None:
    """Runs a command. Raises Refused with the last line that it has written if it fails."""
    words = [str(word) for word in command]
    ended = subprocess.run(
        words,
        cwd=ROOT,
        env={**os.environ, **environ},
        umask=0o022,  # so that files have the same modes everywhere
        capture_output=True,
        text=True,
    )
    if ended.returncode:
        lines = (ended.stderr or ended.stdout).strip().splitlines() or ["no message"]
        raise Refused(f"{words[0]}: {lines[-1]}")


def release(root: Path, dist: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Makes everything. Yields a line for what is missing, and for each file."""
    check_checkout(root)
    seconds = time_of(root)
    previous = Path(environ["PREVIOUS"]) if environ.get("PREVIOUS") else None
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    build_packages(root, dist, seconds)
    add_data(environ.get("F1DB", ""), dist, seconds, previous)
    (dist / "RELEASE-NOTES.md").write_text(notes(root), encoding="utf-8")
    yield from build_images(root, dist, seconds, environ)
    write_sums(dist)
    yield (dist / SUMS).read_text().strip()


def add_data(source: str, dist: Path, seconds: int, previous: Path | None) -> None:
    """Makes the files with data."""
    database = dist / DATABASE
    build_database(source, database, seconds, previous)
    check_licence(database)
    if previous:
        check_rows(database, previous)
    export(database, dist)
    write_parquet(database, dist)
    (dist / "DATA-CHANGES.md").write_text(changes_since(database, previous), encoding="utf-8")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check the checkout")
    try:
        if parser.parse_args(arguments).check:
            check_checkout(ROOT)
        else:
            for line in release(ROOT, ROOT / "dist", os.environ):
                print(line)
    except Refused as error:
        sys.exit(f"release: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
