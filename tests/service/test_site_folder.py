"""racedata.service.site_folder: what it writes, deletes and refuses, and what a kill leaves."""

import fcntl
import os
import shutil

import pytest
from support.loads import racedata

from racedata.database import file_state
from racedata.service.site_folder import MANIFEST, NEW, TITLE, FolderError, site_folder


def exported(path, **files):
    """Exports these files, whose names have `_` for a dot. Returns how many were deleted."""
    contents = {name.replace("_", "."): text.encode() for name, text in files.items()}
    with site_folder(str(path)) as folder:
        for name, content in contents.items():
            folder.put(name, content)
        return folder.finish()


def content_of(path):
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and file.name != MANIFEST
    }


@pytest.fixture
def copied(tmp_path):
    exported(tmp_path / "copy", **{"a/b/one_json": "1", "two_csv": "2"})
    return tmp_path / "copy"


def test_files_that_are_gone_are_deleted_with_their_folders_and_no_others(copied):
    (copied / "a" / "own.txt").write_text("mine")
    assert exported(copied, two_csv="2", three_csv="3") == 1
    assert content_of(copied) == {"a/own.txt": b"mine", "two.csv": b"2", "three.csv": b"3"}
    (copied / "a" / "own.txt").unlink()
    (copied / "a").rmdir()
    assert exported(copied) == 2
    assert [*copied.iterdir()] == [copied / MANIFEST]


def test_a_file_with_the_same_content_is_left_and_a_changed_one_replaced(copied):
    before = file_state(str(copied / "two.csv"))
    (copied / "a/b/one.json").write_text("spoilt")
    exported(copied, **{"a/b/one_json": "1", "two_csv": "2"})
    assert file_state(str(copied / "two.csv")) == before
    assert (copied / "a/b/one.json").read_text() == "1"
    (copied / "two.csv").unlink()
    exported(copied, **{"a/b/one_json": "1", "two_csv": "2"})
    assert (copied / "two.csv").read_text() == "2"


@pytest.mark.parametrize(
    "line",
    ["../outside.txt", "/etc/hostname", "a/../../outside.txt", "", MANIFEST, NEW, "a/../two.csv"],
)
def test_a_manifest_that_names_other_places_is_refused(copied, line):
    (copied.parent / "outside.txt").write_text("mine")
    (copied / MANIFEST).write_text(f"{TITLE}{line}\ntwo.csv\n")
    with pytest.raises(FolderError, match="which cannot be a file"):
        exported(copied)
    assert (copied.parent / "outside.txt").exists() and (copied / "two.csv").exists()


def test_a_link_to_another_folder_is_refused(copied):
    (copied / "a").rename(copied.parent / "elsewhere")
    (copied / "a").symlink_to(copied.parent / "elsewhere")
    for files in ({"a/b/one_json": "9"}, {"two_csv": "2"}):
        with pytest.raises(FolderError, match="is a link; expected a folder"):
            exported(copied, **files)
    assert (copied.parent / "elsewhere/b/one.json").read_text() == "1"


def test_a_link_in_place_of_a_file_is_replaced_and_what_it_names_stays(copied):
    other = copied.parent / "other.txt"
    other.write_text("2")
    (copied / "two.csv").unlink()
    (copied / "two.csv").symlink_to(other)
    (copied / NEW).symlink_to(other)
    exported(copied, two_csv="3")
    assert other.read_text() == "2" and not (copied / "two.csv").is_symlink()


@pytest.mark.parametrize("replaced", range(5))
def test_an_export_that_was_killed_is_mended_by_the_next_one(copied, monkeypatch, replaced):
    """It ends before it puts a file into its place; the first of them is the manifest."""
    moved = []

    def replace(source, target):
        if len(moved) == replaced:
            raise KeyboardInterrupt
        moved.append(target)
        rename(source, target)

    rename = os.replace
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, "replace", replace)
        exported(copied, one_csv="1", two_csv="new", **{"a/b/three_json": "3"})
    exported(copied, two_csv="newer")
    assert content_of(copied) == {"two.csv": b"newer"}


def test_half_a_name_at_the_end_of_the_manifest_is_no_file(copied):
    with (copied / MANIFEST).open("a") as manifest:
        manifest.write("a/b")  # a folder by that name exists
    exported(copied, two_csv="newer")
    assert content_of(copied) == {"two.csv": b"newer"}


def nothing(folder):
    shutil.rmtree(folder)


def no_list(folder):
    (folder / MANIFEST).unlink()


def other_list(folder):
    (folder / MANIFEST).write_text("mine")


def empty_list(folder):
    (folder / MANIFEST).write_text("")


def linked_list(folder):
    (folder / MANIFEST).rename(folder.parent / "list")
    (folder / MANIFEST).symlink_to(folder.parent / "list")


def another_file(folder):
    (folder / "data.html").write_text("mine")


def folder_for_a_file(folder):
    (folder / MANIFEST).write_text(f"{TITLE}data.html\n")
    (folder / "data.html").mkdir()


def file_for_the_folder(folder):
    nothing(folder)
    folder.write_text("mine")


def no_parent(folder):
    shutil.rmtree(folder.parent)


def locked(folder):
    fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)  # until the process ends


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (no_list, ": is neither empty nor"),
        (other_list, "is not a list that racedata has written"),
        (empty_list, "is not a list that racedata has written"),
        (linked_list, "is not a regular file"),
        (another_file, "data.html: is not a file that racedata has exported"),
        (folder_for_a_file, "data.html: Is a directory"),
        (file_for_the_folder, ""),
        (no_parent, ""),
        (locked, "another export is writing to this folder"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused_in_one_line_and_stays(
    copied, sample_database, spoil, said
):
    spoil(copied)
    before = content_of(copied)
    ended = racedata("export", "site", copied, "--database", sample_database)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"racedata export site: {copied}") and said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert before.items() <= content_of(copied).items()
