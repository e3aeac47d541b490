"""Takes the launches of a run one after the other, writes their files, and tells what becomes of each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol

from npuscope.cli.compilation import tell_of_compilation
from npuscope.cli.heap import keep_memory
from npuscope.cli.profile_files import Wanted, write_launch, write_report
from npuscope.cli.profile_folder import RunFolder
from npuscope.cli.profile_launches import STOPPED, Profiled
from npuscope.cli.profile_status import Status
from npuscope.errors import UserError
from npuscope.profiler.profile import Profile
from npuscope.trace.timeline import Loss


class Tell(Protocol):
    """Says lines to people, by how much they matter."""

    def info(self, text: str) -> None:
        """What happens."""

    def warn(self, text: str) -> None:
        """What may not be as it was wanted."""

    def error(self, text: str) -> None:
        """What cannot be done."""


class Writer:
    """`done` are the launches that have a profile and, where there is a folder, their files; `failed` the others."""

    def __init__(self, folder: RunFolder | None, wanted: Wanted, status: Status, tell: Tell) -> None:
        self.folder = folder
        self.wanted = wanted
        self.status = status
        self.tell = tell
        self.done: list[Profiled] = []
        self.failed: list[Profiled] = []
        self._told: set[str] = set()

    @property
    def profiles(self) -> list[Profile]:
        """Of the launches that are done."""
        return [item.profile for item in self.done if item.profile is not None]

    def take(self, launches: Iterable[Profiled]) -> None:
        """Write every launch; one that cannot be written is told, and the others go on."""
        tell_of_compilation("profiler")
        keep_memory()
        for item in launches:
            if item.profile is not None and self._write(item, item.profile):
                self.done.append(item)
                continue
            self.failed.append(item)
            self.status.failed(item)
            self._once(f"{item.launched.kernel}: {item.problem}")

    def finish(self) -> None:
        """Give the files their final names, and write those that belong to the whole run."""
        folder = self.folder
        if folder is None:
            return
        folder.finish()
        for item in self.done:
            self.status.done(item, folder.final(item.launched.device, item.launched.kernel, item.order))
        for line in write_report(folder, self.profiles, self.wanted, self.status):
            self.tell.warn(line)

    def say_files(self) -> None:
        """The inventory."""
        if self.folder is None:
            return
        found: dict[str, list[str]] = {}
        for file in self.folder.files():
            top, name = os.path.split(file)
            found.setdefault(top or ".", []).append(name)
        for top, names in found.items():
            self.tell.info(f"Written in {top}: {', '.join(names)}")

    def _write(self, item: Profiled, profile: Profile) -> bool:
        profile.rules = self.wanted.rules
        launched, warnings = item.launched, []
        if self.folder is not None:
            try:
                with self.folder.launch(launched.device, launched.kernel, item.order) as place:
                    warnings = write_launch(place, profile, self.wanted, launched.process or None)
            except UserError as error:
                item.problem = str(error)
                return False
        for line in warnings:
            self.status.warned(line)
            self._once(line)
        for loss in profile.timeline.losses:
            self._say_loss(launched.kernel, loss)
        return True

    def _say_loss(self, kernel: str, loss: Loss) -> None:
        say = {"error": self.tell.error, "info": self.tell.info}.get(loss.level, self.tell.warn)
        say(loss.text if loss.kind != STOPPED else f"{kernel}: {loss.text}")

    def _once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self.tell.warn(line)
