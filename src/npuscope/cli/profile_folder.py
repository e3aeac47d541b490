"""The folder of a profiled run: written under ``tmp_dump`` first, so that what has its final name is whole.

Everything of a launch lies in ``deviceN/KERNEL/ORDER/``; where there is one launch in all, or one device, the levels
that tell nothing go away at the end (opprof.md 1.10).
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import secrets
import shutil
import string
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO

import orjson

from npuscope.errors import UserError

STAGE, STATUS = "tmp_dump", "status.json"
FOLDER_MODE, FILE_MODE = 0o750, 0o640


@contextmanager
def words_for(path: Path) -> Iterator[None]:
    """What the system says of a path, as one line for people."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


class Place:
    """A folder in the making: one launch's, or a part of it. It is made with its first file."""

    def __init__(self, path: Path, suffix: str = "") -> None:
        self.path = path
        self.suffix = suffix

    def write(self, name: str, data: bytes | Iterable[bytes]) -> None:
        """Write a file, in pieces where it comes so."""
        path = self.file(name)
        with words_for(path), open(path, "wb") as file:
            for piece in (data,) if isinstance(data, bytes) else data:
                file.write(piece)

    def write_table(self, name: str, data: bytes) -> None:
        """Write a CSV file; its name has the moment of the launch's profile in it."""
        self.write(f"{name}{self.suffix}.csv", data)

    def file(self, name: str) -> Path:
        """Where a file of this folder is to be; for writers that open it themselves."""
        with words_for(self.path):
            make_folder(self.path)
        return self.path / name

    def inside(self, name: str) -> Place:
        """A folder in this one."""
        return Place(self.path / name, self.suffix)


class RunFolder:
    """The folder of a run. `root` is its final place, in which only whole launches appear. With `unique` the names of
    a launch's files begin with its kernel and order, ``add_0.trace.json``, so that several can lie side by side."""

    def __init__(self, root: Path, unique: bool = False) -> None:
        self.root = root
        self.unique = unique
        self.stage = root / STAGE
        self._owner = os.getpid()
        self._written: list[str] = []
        self._launches: list[tuple[int, str, int]] = []
        with words_for(root):
            self._made = make_folder(self.stage)
            self._lock = self._alone()

    def _alone(self) -> IO[bytes]:
        """Make sure that no other run is writing here; what one left that was killed goes away."""
        lock = open(self.stage / "lock", "wb")  # noqa: SIM115 - held as long as the run
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another run is writing to {self.root}") from None
        for item in self.stage.iterdir():
            if item.is_dir():
                shutil.rmtree(item)
        return lock

    @contextmanager
    def launch(self, device: int, kernel: str, order: int) -> Iterator[Place]:
        """A launch's folder; where the block fails nothing of it stays."""
        place = Place(self._staged(device, kernel, order), f"_{datetime.now():%Y%m%d%H%M%S%f}"[:18])
        try:
            with words_for(place.path):
                yield place
        except BaseException:
            shutil.rmtree(place.path, ignore_errors=True)
            raise
        self._launches.append((device, kernel, order))

    def _staged(self, device: int, kernel: str, order: int) -> Path:
        return self.stage / f"device{device}" / folder_name(kernel) / str(order)

    def final(self, device: int, kernel: str, order: int) -> Path:
        """Where a launch's files are in the end, relative to the root; known when all launches are written."""
        if len(self._launches) == 1:
            return Path(".")
        one = len({device for device, _, _ in self._launches}) == 1
        return Path(*(() if one else (f"device{device}",)), folder_name(kernel), str(order))

    def finish(self) -> None:
        """Give everything its final name and modes, and remove what was for the time of the run."""
        with words_for(self.root):
            self._clear()
            for device, kernel, order in self._launches:
                begin = f"{folder_name(kernel)}_{order}." if self.unique else ""
                self._settle(self._staged(device, kernel, order), self.root / self.final(device, kernel, order), begin)

    def _clear(self) -> None:
        """Remove what an earlier run wrote here, by its own list, and nothing else."""
        folders = set()
        for name in files_of(self.root / STATUS):
            path = self.root / name
            if self.root.resolve() in path.resolve().parents and path.is_file():
                path.unlink()
                folders |= set(path.relative_to(self.root).parents)
        for folder in sorted(folders, key=lambda path: -len(path.parts)):
            with contextlib.suppress(OSError):  # something else is in it
                if folder != Path("."):
                    (self.root / folder).rmdir()

    def _settle(self, staged: Path, final: Path, begin: str = "") -> None:
        """Move a folder's files to where they stay, with `begin` before their names; the moment in the names goes where
        it tells nothing."""
        alone = final.absolute() == self.root.absolute()
        for file in sorted(path for path in staged.rglob("*") if path.is_file()):
            target = final / file.relative_to(staged)
            if alone:
                target = target.with_name(re.sub(r"_\d{17}(\.csv)$", r"\1", target.name))
            target = target.with_name(begin + target.name)
            file.chmod(FILE_MODE)
            make_folder(target.parent)
            os.replace(file, target)
            self._written.append(str(target.relative_to(self.root)))

    def addition(self, name: str) -> Place:
        """A folder for something that belongs to the whole run; `add` gives it its place."""
        return Place(self.stage / "whole" / name)

    def add(self, place: Place, name: str) -> None:
        """Put the files of an addition into the folder `name` below the root."""
        with words_for(self.root):
            self._settle(place.path, self.root / name)

    def files(self) -> list[str]:
        """Every file that was written, relative to the root."""
        return sorted(self._written)

    def discard(self) -> None:
        """Leave nothing but what has its final name. The files of others stay."""
        if os.getpid() != self._owner:  # a forked script leaves through here as well
            return
        shutil.rmtree(self.stage, ignore_errors=True)
        with contextlib.suppress(OSError):
            for folder in reversed(self._made):
                if folder.exists():
                    folder.rmdir()


def files_of(status: Path) -> list[str]:
    """The files that a ``status.json`` lists; none where it is not there or not ours."""
    try:
        names = orjson.loads(status.read_bytes())["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def opprof_folder(output: Path) -> Path:
    """A name for a run's folder that no other run has."""
    tail = "".join(secrets.choice(string.ascii_uppercase) for _ in range(16))
    return output / f"OPPROF_{datetime.now():%Y%m%d%H%M%S}_{tail}"


def folder_name(kernel: str) -> str:
    """A kernel's name as a folder can have it."""
    name = re.sub(r"[^\w.+-]", "_", kernel)[:200].lstrip(".") or "kernel"
    return f"{name}_" if name == STAGE else name


def make_folder(path: Path) -> list[Path]:
    """Make a folder, and those above it that are missing, for the user and the group; returns what was made."""
    missing = list(itertools.takewhile(lambda folder: not folder.exists(), (path, *path.parents)))
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        folder.chmod(FOLDER_MODE)
    return missing[::-1]
