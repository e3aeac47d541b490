"""What changed between two runs, launch by launch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

Launch = Mapping[str, Any]
"""One launch of a profile document (see npuscope.report.profile.document)."""


@dataclass(frozen=True, slots=True)
class Change:
    """One figure, before and after; None where one side does not have it."""

    name: str
    old: float | None
    new: float | None

    @property
    def delta(self) -> float | None:
        """How much more the new one is."""
        return None if self.old is None or self.new is None else self.new - self.old

    @property
    def relative(self) -> float | None:
        """`delta` as a share of the old figure; infinite where that was 0."""
        if self.delta is None or self.old is None:
            return None
        if self.old == 0:
            return 0.0 if self.delta == 0 else float("inf") if self.delta > 0 else float("-inf")
        return self.delta / abs(self.old)


@dataclass(frozen=True, slots=True)
class LineChange:
    """One line of source in both runs: `critical` and `cycles` of it. `old_line` and `new_line` are its numbers, None
    where a side does not have the line. Lines are told by their text, so that one that only moved is the same."""

    file: str
    text: str | None
    old_line: int | None
    new_line: int | None
    cycles: Change
    critical: Change

    @property
    def place(self) -> str:
        """For people: ``add.py:33``, or ``add.py:33 -> 35``."""
        numbers = [str(line) for line in dict.fromkeys((self.old_line, self.new_line)) if line is not None]
        return f"{PurePath(self.file).name}:{' -> '.join(numbers)}"


@dataclass(frozen=True, slots=True)
class LaunchChange:
    """One launch in both runs. `metrics` are its figures by name, ``cycles`` first; `lines` those whose cycles changed
    most first."""

    kernel: str
    number: int
    provenance: tuple[str, str]
    chips: tuple[str, str]
    partial: bool
    metrics: dict[str, Change]
    lines: tuple[LineChange, ...]

    @property
    def changed(self) -> bool:
        """Whether any figure differs."""
        changes = [*self.metrics.values(), *(one for line in self.lines for one in (line.cycles, line.critical))]
        return any(change.old != change.new for change in changes)


@dataclass(frozen=True, slots=True)
class Difference:
    """Two runs. Launches are paired by kernel and by how many of that kernel came before; `only_old` and `only_new` are
    the rest, as (kernel, number)."""

    launches: tuple[LaunchChange, ...]
    only_old: tuple[tuple[str, int], ...]
    only_new: tuple[tuple[str, int], ...]

    @property
    def changed(self) -> bool:
        """Whether anything differs."""
        return bool(self.only_old or self.only_new) or any(launch.changed for launch in self.launches)


def compare(old: Sequence[Launch], new: Sequence[Launch]) -> Difference:
    """What changed from `old` to `new`."""
    before, after = _numbered(old), _numbered(new)
    pairs = [(key, before[key], after[key]) for key in after if key in before]
    return Difference(
        tuple(_launch(*key, one, other) for key, one, other in pairs),
        tuple(key for key in before if key not in after),
        tuple(key for key in after if key not in before),
    )


def metrics(launch: Launch) -> dict[str, float | None]:
    """The figures of a launch by name.

    ``cycles``, ``time_us``, ``overhead``; ``critical:MTE2`` and ``busy:MTE2``, ``wait:MTE2``, ``instructions:MTE2`` for
    each pipe, ``overlap:MTE2`` (busy together with computation) for one that copies; ``share:GM`` for each bar of the
    speed of light; ``gm_read`` and so on; and the columns of the tables, ``aiv_vec_ratio``, as the mean over the rows
    that have it.
    """
    found: dict[str, float | None] = {name: launch.get(name) for name in ("cycles", "time_us", "overhead")}
    for name, pipe in launch.get("pipes", {}).items():
        found |= {f"{what}:{name}": pipe[what] for what in OF_PIPES if what in pipe}
    found |= {f"critical:{name}": cycles for name, cycles in launch.get("critical_path", {}).items()}
    found |= {f"share:{bar['name']}": bar.get("share") for bar in launch.get("speed_of_light", ())}
    found |= launch.get("traffic", {})
    for table in launch.get("tables", {}).values():
        for column, name in enumerate(table["columns"]):
            cells = [row[column] for row in table["rows"]]
            numbers = [cell for cell in cells if isinstance(cell, int | float)]
            if numbers and name not in NO_METRICS:
                found.setdefault(name, sum(numbers) / len(numbers))
    return found


OF_PIPES = ("busy", "wait", "overlap", "instructions")
"""Figures of each pipe."""

NO_METRICS = {"block_id", "sub_block_id", "Device Id", "Pid"}
"""Columns of numbers that measure nothing."""


def _numbered(launches: Sequence[Launch]) -> dict[tuple[str, int], Launch]:
    seen: Counter[str] = Counter()
    found = {}
    for launch in launches:
        found[launch["kernel"], seen[launch["kernel"]]] = launch
        seen[launch["kernel"]] += 1
    return found


def _launch(kernel: str, number: int, old: Launch, new: Launch) -> LaunchChange:
    before, after = metrics(old), metrics(new)
    # A pipe that is not on the path or not used has 0 there: that is known, not missing.
    zero = {name for name in {**before, **after} if name.partition(":")[0] in ("critical", *OF_PIPES)}
    names = list(dict.fromkeys((*before, *after)))
    changes = {
        name: Change(name, before.get(name, 0 if name in zero else None), after.get(name, 0 if name in zero else None))
        for name in names
    }

    def both(name: str) -> tuple[str, str]:
        return old.get(name, ""), new.get(name, "")

    lines = sorted(_lines(old, new), key=lambda line: (-abs(line.cycles.delta or 0), line.file, line.new_line or 0))
    return LaunchChange(
        kernel, number, both("provenance"), both("chip"),
        bool(old.get("partial") or new.get("partial")), changes, tuple(lines),
    )  # fmt: skip


def _lines(old: Launch, new: Launch) -> Iterator[LineChange]:
    before, after = old.get("lines", ()), new.get("lines", ())
    partner = _partners(before, after)
    for line in after:
        yield _line(partner.get(id(line)), line)
    taken = {id(one) for one in partner.values()}
    for line in before:
        if id(line) not in taken:
            yield _line(line, None)


def _line(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> LineChange:
    some = new or old or {}

    def change(name: str) -> Change:
        return Change(name, old[name] if old else 0, new[name] if new else 0)

    numbers = (old["line"] if old else None, new["line"] if new else None)
    return LineChange(some["file"], some.get("text"), *numbers, change("cycles"), change("critical"))


def _partners(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """For each new line (by identity) the old one that it is: the same text in a file of that name, the nth of its kind
    to the nth; by number where a text is not known."""
    waiting: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for line in sorted(before, key=lambda one: one["line"]):
        waiting[_key(line)].append(line)
    found = {}
    for line in sorted(after, key=lambda one: one["line"]):
        if same := waiting[_key(line)]:
            found[id(line)] = same.pop(0)
    return found


def _key(line: Mapping[str, Any]) -> tuple[Any, ...]:
    name = PurePath(line["file"]).name
    return (name, line["text"]) if line.get("text") is not None else (name, None, line["line"])
