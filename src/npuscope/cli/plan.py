"""What a checked run is to do, handed from the command to every process that takes part in it."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from npuscope.errors import UserError
from npuscope.frontends.launch import Part
from npuscope.sanitizer.filters import LaunchFilter
from npuscope.sanitizer.findings import Finding
from npuscope.sanitizer.judge import counts_as_error
from npuscope.sanitizer.suite import Settings
from npuscope.sanitizer.suppressions import Rule, allowed_in_source

if TYPE_CHECKING:
    from npuscope.profiler.choice import Choice

SPOOL = "NPUSCOPE_SPOOL"
"""Environment variable: the folder in which the processes of a run leave what they found."""

HOOK = Path(__file__).parent / "hook"
"""The folder whose sitecustomize.py brings every Python process of a run into it."""


ROOT = Path(__file__).resolve().parents[2]
"""Where this npuscope is imported from."""


KNOWN_AT_THE_END = ("leak", "unused-memory")
"""What may still come right while the program runs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The choices that each process needs. `checks` is None for all checks, `save` asks for the trace."""

    checks: tuple[str, ...] | None = None
    settings: Settings = field(default_factory=Settings)
    launches: LaunchFilter = field(default_factory=LaunchFilter)
    chip: str | None = None
    save: bool = False
    fail_fast: bool = False
    strict: bool = False
    rules: tuple[Rule, ...] = ()
    programs: tuple[Part, ...] = ()  # of each Triton launch; all when there are none
    timeout: float | None = None  # seconds that a Triton launch may take
    keep: Choice | None = None  # the launches to keep, each in a file of its own (the profiler's way)

    def stops_at(self, finding: Finding) -> bool:
        """Whether --fail-fast stops the run at this finding."""
        return (
            counts_as_error(finding, self.strict)
            and finding.kind not in KNOWN_AT_THE_END
            and not any(rule.matches(finding) for rule in self.rules)
            and not allowed_in_source(finding)
        )


@contextmanager
def spool_folder(plan: Plan, packages: tuple[str, ...], at: Path | None = None) -> Iterator[Path]:
    """A temporary folder that holds the plan, `at` a place or where such folders are; gone when the block ends.
    `packages` are the imports that matter."""
    owner = os.getpid()
    try:
        if at is None:
            folder = Path(tempfile.mkdtemp(prefix="npuscope-"))
        else:
            (folder := at.absolute()).mkdir(0o700)
    except OSError as error:
        raise UserError(f"cannot make a temporary folder: {error.strerror}") from None
    try:
        (folder / "plan").write_bytes(pickle.dumps(plan))
        (folder / "packages").write_text("\n".join(packages))
        (folder / "root").write_text(f"{sys.version_info[0]}.{sys.version_info[1]}\n{ROOT}")
        yield folder
    finally:
        if os.getpid() == owner:  # a forked script leaves through here as well
            shutil.rmtree(folder, ignore_errors=True)


def read_plan(folder: Path) -> Plan:
    """The plan of a run from its folder."""
    plan: Plan = pickle.loads((folder / "plan").read_bytes())
    return plan


def environment(folder: Path) -> dict[str, str]:
    """What the environment of the run's processes has beside their own."""
    rest = os.environ.get("PYTHONPATH", "")
    return {SPOOL: str(folder), "PYTHONPATH": os.pathsep.join([str(HOOK), *([rest] if rest else [])])}
