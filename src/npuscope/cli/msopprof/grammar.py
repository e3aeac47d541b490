"""The vendor's grammar (opprof.md 1.1): options are ``--name=value`` only, the first bare word begins the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

SHARED = (
    "application",
    "config",
    "output",
    "kernel-name",
    "launch-count",
    "mstx",
    "mstx-include",
    "aic-metrics",
    "core-id",
    "dump",
    "soc-version",
    "timeout",
    "kill",
)
OP = (*SHARED, "launch-skip-before-match", "replay-mode", "warm-up", "custom-input", "instr-timeline-pipe", "pipe")
SIMULATOR = (*SHARED, "export")
"""Options of each mode. ``soc-version`` and ``timeout`` in `op`, and ``kill`` in the simulator, are ours: there is no
card whose kind would be the chip, and ending a run early is wanted in both."""

FLAGS = {"-h": "help", "--help": "help", "-v": "version", "--version": "version"}


class Refused(Exception):
    """An argument that cannot be followed; the text is the vendor's where there is one."""


@dataclass(slots=True)
class Words:
    """A command line taken apart. `options` are those given with a value, the last one of each name; `shows` is
    "help" or "version" where only that is wanted."""

    simulator: bool
    options: dict[str, str] = field(default_factory=dict)
    application: list[str] = field(default_factory=list)
    shows: str = ""


def take_apart(words: Sequence[str]) -> Words:
    """Read the words after ``msprof op``. Raises Refused."""
    simulator = bool(words) and words[0] == "simulator"
    rest = list(words[simulator:])
    found = Words(simulator)
    names = SIMULATOR if simulator else OP
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word in FLAGS:
            found.shows = found.shows or FLAGS[word]
            continue
        name, equals, value = word.partition("=")
        if not name.startswith("--") or name[2:] not in names:
            raise Refused(f"unexpected argument {name}")
        if not equals:
            raise Refused(f"argument {name} miss value")
        if value:
            found.options[name[2:]] = value
    found.application = rest
    return found


def looks_like_ours(found: Words) -> list[str]:
    """Words of the application that are spelled like options of this command, which stand before it."""
    names = {f"--{name}" for name in (SIMULATOR if found.simulator else OP)}
    return [word for word in found.application[1:] if word.partition("=")[0] in names]
