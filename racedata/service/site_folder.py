"""The folder of a static copy: writes what changed, deletes what is gone, and touches nothing else.

A manifest in the folder names all files of the copy. It names each file before the file is written,
so whenever an export is killed, the next one knows which files are its own.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from racedata.locks import lock, opened_folder

MANIFEST = ".racedata-site"
TITLE = "The files of a static copy by racedata export site, which deletes those that are gone.\n"
NEW = f"{MANIFEST}.new"  # a file on its way to its place


class FolderError(Exception):
    """The folder cannot be used: one line says why."""


class SiteFolder:
    """An existing folder, locked while it is open."""

    def __init__(self, path: Path) -> None:
        """Raises FolderError if the folder has files that no copy has."""
        self.path = path
        self.known = self.read_manifest()  # the files that may be ours
        self.kept: set[str] = set()  # those that this export has written or left
        self.written = self.size = 0
        self.checked: set[str] = set()  # folders that are no links
        self.made: set[str] = set()  # folders that exist
        for name in self.known:
            self.check(name)
        self.write_manifest(self.known)
        # Each name is in the file as soon as it is written.
        self.manifest = (path / MANIFEST).open("ab", buffering=0)

    def read_manifest(self) -> set[str]:
        manifest = self.path / MANIFEST
        if not os.path.lexists(manifest):
            if any(name != NEW for name in os.listdir(self.path)):
                what = "is neither empty nor a copy that racedata has exported"
                raise FolderError(f"{self.path}: {what}; expected such a folder, or a new one")
            return set()
        if manifest.is_symlink() or not manifest.is_file():
            raise FolderError(f"{manifest}: is not a regular file")
        title, *names = manifest.read_text("utf-8", "replace").splitlines(keepends=True) or [""]
        if title != TITLE:
            raise FolderError(f"{manifest}: is not a list that racedata has written")
        # If an export was stopped while it wrote a name, there is no such file yet.
        return {name.removesuffix("\n") for name in names if name.endswith("\n")}

    def add(self, name: str) -> None:
        """Names a new file in the manifest. Raises FolderError."""
        self.check(name)
        if os.path.lexists(self.path / name):
            what = "is not a file that racedata has exported; move it away"
            raise FolderError(f"{self.path / name}: {what}")
        self.known.add(name)
        self.manifest.write(f"{name}\n".encode())

    def check(self, name: str) -> None:
        """Raises FolderError if a file with this name would be outside."""
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or parts[0] in (MANIFEST, NEW):
            raise FolderError(f"{self.path / MANIFEST}: names {name!r}, which cannot be a file")
        for parent in PurePosixPath(name).parents:
            if str(parent) in self.checked:
                break
            self.checked.add(str(parent))
            if str(parent) != "." and (self.path / parent).is_symlink():
                raise FolderError(f"{self.path / parent}: is a link; expected a folder")

    def write_manifest(self, names: Iterable[str]) -> None:
        (self.path / NEW).unlink(missing_ok=True)  # of an export that was killed
        text = TITLE + "".join(f"{name}\n" for name in sorted(names))
        self.replace(MANIFEST, text.encode(), must_last=True)

    def put(self, name: str, content: bytes) -> None:
        """Writes a file, unless it has this content already. Raises FolderError."""
        if name not in self.known:
            self.add(name)
        self.kept.add(name)
        self.size += len(content)
        if not self.has(name, content):
            self.replace(name, content)
            self.written += 1

    def has(self, name: str, content: bytes) -> bool:
        path = os.path.join(self.path, name)
        with suppress(OSError):
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and status.st_size == len(content):
                with open(path, "rb") as file:
                    return file.read() == content
        return False

    def replace(self, name: str, content: bytes, must_last: bool = False) -> None:
        new, path = os.path.join(self.path, NEW), os.path.join(self.path, name)
        with open(new, "xb") as file:
            file.write(content)
            if must_last:
                file.flush()
                os.fsync(file.fileno())
        folder = os.path.dirname(path)
        if folder not in self.made:
            os.makedirs(folder, exist_ok=True)
            self.made.add(folder)
        os.replace(new, path)

    def finish(self) -> int:
        """Deletes the files that are gone, and then empty folders. Returns how many were there."""
        deleted = 0
        for name in sorted(self.known - self.kept, reverse=True):
            with suppress(FileNotFoundError):
                (self.path / name).unlink()
                deleted += 1
            for parent in PurePosixPath(name).parents[:-1]:
                with suppress(OSError):  # it has other files
                    (self.path / parent).rmdir()
        self.write_manifest(self.kept)
        return deleted


@contextmanager
def site_folder(path: str) -> Iterator[SiteFolder]:
    """The folder at a path, which is made if it is missing. Raises FolderError or OSError."""
    folder = Path(os.path.realpath(path))
    with suppress(FileExistsError):
        folder.mkdir()
    descriptor = opened_folder(folder)
    try:
        try:
            lock(descriptor)
        except BlockingIOError:
            raise FolderError(f"{path}: another export is writing to this folder") from None
        site = SiteFolder(folder)
        with site.manifest:
            yield site
    finally:
        os.close(descriptor)
