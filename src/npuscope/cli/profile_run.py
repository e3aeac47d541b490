"""Runs an application for its launches: the wanted ones are kept on disk, whatever becomes of the application."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from npuscope.cli.attend import Ended, Limit
from npuscope.cli.keeping import CLOSED, STOP
from npuscope.cli.launched import Launched, read_launches
from npuscope.cli.plan import Plan, spool_folder
from npuscope.cli.spool import read_parts
from npuscope.errors import UserError
from npuscope.frontends import packages

SPOOL = "spool"

Start = Callable[[Path, Callable[[], None], Limit], Ended]
"""Starts the application with its folder, what to do at Ctrl-C and its limit."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a run left: in `folder` the kept launches, how it `ended`, all its launches, the mistake that ended a script
    (None: none), and the Pythons whose launches could not be seen."""

    folder: Path
    ended: Ended
    launched: list[Launched]
    trouble: UserError | None = None
    outside: tuple[str, ...] = ()

    @property
    def kept(self) -> list[Launched]:
        """The launches that a file was begun for."""
        return [item for item in self.launched if item.kept >= 0]


@contextmanager
def gathered(
    plan: Plan,
    start: Start,
    at: Path | None,
    seconds: float | None,
    interrupted: Callable[[], None],
    timed_out: Callable[[], None],
) -> Iterator[Gathered]:
    """Run the application to its end, or to the limit of `seconds`, and give what it left as long as the block lasts;
    `at` is where the folder is to be (None: where temporary folders are). Raises Quit at a second Ctrl-C."""
    with spool_folder(plan, packages(), at) as folder:

        def close() -> None:
            (folder / CLOSED).touch()
            interrupted()

        ended = start(folder, close, Limit(seconds, (folder / STOP).exists, timed_out))
        trouble = next((part.found.trouble for part in read_parts(folder) if part.found.trouble is not None), None)
        outside = folder / "outside"
        names = tuple(dict.fromkeys(outside.read_text().splitlines())) if outside.exists() else ()
        yield Gathered(folder, ended, read_launches(folder), trouble, names)
