"""Which files a profile becomes, and who writes each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npuscope.cli.msopprof.inputs import Labels
from npuscope.cli.profile_folder import Place, RunFolder
from npuscope.cli.profile_status import NAME, Status
from npuscope.profiler.profile import Profile
from npuscope.profiler.selection import Selection


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be written of each launch: the groups, the cores that the simulator's files are for (empty: all), the
    pipes of the on-board timeline (empty: all), and whether raw dumps are kept."""

    selection: Selection
    cores: tuple[int, ...] = ()
    pipes: tuple[str, ...] = ()
    dump: bool = False
    labels: Labels | None = None


def write_launch(place: Place, profile: Profile, wanted: Wanted) -> list[str]:
    """Write a launch's files; returns what people should be warned of."""
    return []


def write_report(folder: RunFolder, profiles: Sequence[Profile], status: Status) -> list[str]:
    """Write the files of a whole run; returns what people should be warned of."""
    return []
