"""Collectives of different ranks that are the same one, and who waits in them.

A collective ends on all its ranks together; who comes first is in it longest. The shortest duration among the ranks is
the transfer, what a rank spends beyond that is waiting. Only durations are compared, so clocks may be apart. The same
collective is found by communicator, step, place in the step and name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.intervals import Cover
from npuscope.monitor.analysis.matrices import Matrices
from npuscope.monitor.analysis.reduction import Occurrences

PAIRED = re.compile(r"send|recv|receive", re.IGNORECASE)
POINT_TO_POINT = "send/receive"
MOST_UNMATCHED = 0.05


@dataclass(frozen=True)
class Communicator:
    """One communicator, by step (NaN where it was not used). Times are nanoseconds summed over the step's collectives;
    `waiting` is summed over the ranks too. `last` is the row of the rank that waited least, -1 for none."""

    name: str
    title: str
    rows: Column
    """Rows of its ranks in the matrices."""
    missing: tuple[int, ...]
    """Ranks that belong to it and have no file."""
    operations: tuple[str, ...]
    transfer: Column
    waiting: Column
    longest: Column
    last: Column
    bytes: Column
    count: int
    """Collectives in a step, the usual number."""
    unmatched: float
    """Share of (rank, step) whose collectives could not be laid beside the others'."""

    @property
    def label(self) -> str:
        """As people are told of it."""
        return f"{self.title} ({self.name})" if self.title else self.name


@dataclass(frozen=True)
class Waits:
    """`waiting` is (ranks, steps) nanoseconds in which a rank waits in any collective and no kernel runs; 0 in a step
    without one, NaN where a rank lacks the step."""

    waiting: Column
    communicators: tuple[Communicator, ...]


@dataclass(frozen=True)
class _Member:
    row: int
    one: Occurrences
    step: Column
    """Index into the common steps."""
    inside: Column
    """Which of the occurrences lie in them."""


def waits(matrices: Matrices) -> Waits:
    """Match all collectives, communicator by communicator."""
    found: dict[tuple[str, tuple[int, ...]], list[_Member]] = {}
    for row, (rank, place) in enumerate(zip(matrices.ranks, matrices.place, strict=True)):
        for one in rank.occurrences:
            step = place[one.step]
            # Two communicators of different ranks may have one name; where the ranks are known they tell.
            found.setdefault((one.comm, one.group.ranks), []).append(_Member(row, one, step, step >= 0))
    spans: list[list[tuple[Column, Column, Column]]] = [[] for _ in matrices.ranks]
    communicators = [_matched(name, members, matrices, spans) for (name, _), members in found.items()]
    waiting = np.where(np.isfinite(matrices.duration), 0.0, np.nan)
    for row, parts in enumerate(spans):
        if parts:
            _add(waiting, row, parts, matrices)
    communicators.sort(key=lambda one: (-len(one.rows), one.name))
    return Waits(waiting, tuple(communicators))


def _add(waiting: Column, row: int, parts: Sequence[tuple[Column, Column, Column]], matrices: Matrices) -> None:
    """Time in which a rank waits in at least one collective; spans are (step, start, end) since the step's start."""
    step, low, high = (np.concatenate([part[at] for part in parts]) for at in range(3))
    if len(parts) == 1:
        waiting[row] += np.bincount(step, high - low, waiting.shape[1])
        return
    # Steps behind each other, far enough apart for what reaches beyond a step's end.
    width = np.int64(np.ceil(max(high.max(initial=0), np.nanmax(matrices.duration[row], initial=0)))) + 1
    base = step.astype(np.int64) * width
    cover = Cover(base + np.maximum(low, 0).astype(np.int64), base + high.astype(np.int64))
    edges = np.arange(waiting.shape[1] + 1, dtype=np.int64) * width
    waiting[row] += np.diff(cover.until(edges))


def _matched(
    name: str, members: Sequence[_Member], matrices: Matrices, spans: list[list[tuple[Column, Column, Column]]]
) -> Communicator:
    steps = len(matrices.label)
    counts = np.stack([np.bincount(one.step[one.inside], minlength=steps) for one in members])
    usual = _usual(counts)
    good = counts == usual
    used = usual > 0
    deepest = int(usual.max(initial=0))
    cells = _Cells(steps, deepest, len(members))
    for member, fine in zip(members, good, strict=True):
        cells.meet(member, fine)
    shortest = cells.shortest()
    waiting = np.zeros(steps)
    longest, least = np.zeros(steps), np.full(steps, np.inf)
    last = np.full(steps, -1)
    for member, fine in zip(members, good, strict=True):
        which, step, place = cells.of(member, fine)
        transfer = shortest[step, place]
        known = np.isfinite(transfer)
        which, step, transfer = which[known], step[known], transfer[known]
        wait = np.maximum(member.one.duration[which] - transfer, 0)
        total = np.bincount(step, wait, steps)
        waiting += total
        longest = np.maximum(longest, total)
        seen = np.bincount(step, minlength=steps) > 0
        better = seen & (total < least)
        least[better], last[better] = total[better], member.row
        alone = np.maximum(wait - member.one.overlap[which], 0)
        until = member.one.at[which] + wait
        spans[member.row].append((step, until - alone, until))
    group = members[0].one.group
    present = {matrices.ranks[member.row].rank for member in members}
    there = usual[used]
    return Communicator(
        name, group.title, np.array([member.row for member in members]),
        tuple(rank for rank in group.ranks if rank not in present),
        tuple(cells.operations), np.where(last >= 0, np.nansum(shortest, 1), np.nan),
        np.where(last >= 0, waiting, np.nan), np.where(last >= 0, longest, np.nan), last,
        cells.bytes(), int(np.median(there)) if len(there) else 0,
        float(1 - good[:, used].mean()) if np.any(used) else 0.0,
    )  # fmt: skip


def _usual(counts: Column) -> Column:
    """How many collectives most ranks have in each step; ranks that lack a step do not count."""
    ranked = np.sort(counts, 0)
    zeros = (ranked == 0).sum(0)
    middle = zeros + (len(ranked) - zeros) // 2
    return np.where(
        zeros == len(ranked), 0, np.take_along_axis(ranked, np.minimum(middle, len(ranked) - 1)[None], 0)[0]
    )


class _Cells:
    """What the ranks of a communicator say of each (step, place in the step)."""

    def __init__(self, steps: int, deepest: int, ranks: int) -> None:
        self.operations: dict[str, int] = {}
        self._pair = ranks == 2
        self._least = np.full((steps, deepest), np.inf)
        self._met = np.zeros((steps, deepest), np.int32)
        self._name = np.full((steps, deepest), -1, np.int32)
        self._bytes = np.zeros((steps, deepest))

    def of(self, member: _Member, fine: Column) -> tuple[Column, Column, Column]:
        """The occurrences of a rank that count: which, their steps, their places in them."""
        step = member.step[member.inside]
        first = np.concatenate([[0], np.flatnonzero(np.diff(step)) + 1]) if len(step) else np.zeros(0, np.int64)
        length = np.diff(np.append(first, len(step)))
        place = np.arange(len(step)) - np.repeat(first, length)
        keep = fine[step] if len(step) else np.zeros(0, bool)
        which = np.flatnonzero(member.inside)[keep]
        step, place = step[keep], place[keep]
        same = self._name[step, place] == self._named(member.one)[which]
        return which[same], step[same], place[same]

    def meet(self, member: _Member, fine: Column) -> None:
        """Take a rank's durations in; the first rank says what stands where."""
        named = self._named(member.one)
        step = member.step[member.inside]
        if not len(step):
            return
        self._open(member, fine, named)
        which, step, place = self.of(member, fine)
        self._least[step, place] = np.minimum(self._least[step, place], member.one.duration[which])
        self._met[step, place] += 1

    def _open(self, member: _Member, fine: Column, named: Column) -> None:
        step = member.step[member.inside]
        first = np.concatenate([[0], np.flatnonzero(np.diff(step)) + 1])
        place = np.arange(len(step)) - np.repeat(first, np.diff(np.append(first, len(step))))
        which = np.flatnonzero(member.inside)
        keep = fine[step]
        which, step, place = which[keep], step[keep], place[keep]
        new = self._name[step, place] < 0
        self._name[step[new], place[new]] = named[which[new]]
        self._bytes[step[new], place[new]] = member.one.bytes[which[new]]

    def shortest(self) -> Column:
        """The transfer of each; NaN where only one rank is known, or what was sent has no partner that is known."""
        unknown = self._met < 2
        if not self._pair and POINT_TO_POINT in self.operations:
            unknown |= self._name == self.operations[POINT_TO_POINT]
        return np.where(unknown, np.nan, self._least)

    def bytes(self) -> Column:
        """Sent in each step, by one rank."""
        return self._bytes.sum(1)

    def _named(self, one: Occurrences) -> Column:
        numbers = [
            self.operations.setdefault(POINT_TO_POINT if PAIRED.search(text) else text, len(self.operations))
            for text in one.names
        ]
        return np.array(numbers, np.int32)[one.name]


def last_share(waiting: Column) -> Column:
    """For each rank the share of its steps in which no other waited less; of those that waited equally little, each."""
    least = np.nanmin(np.where(np.isfinite(waiting), waiting, np.inf), 0)
    known = np.isfinite(waiting)
    return (known & (waiting <= least)).sum(1) / np.maximum(known.sum(1), 1)


def by_rank(communicators: Sequence[Communicator]) -> Mapping[int, list[Communicator]]:
    """The communicators of each row."""
    found: dict[int, list[Communicator]] = {}
    for one in communicators:
        for row in one.rows.tolist():
            found.setdefault(row, []).append(one)
    return found


def incomplete(communicators: Sequence[Communicator]) -> Iterator[str]:
    """A line for each communicator that is not wholly known."""
    for one in communicators:
        if one.unmatched > MOST_UNMATCHED:
            lost = f"{one.unmatched:.0%} of its ranks' steps"
            yield f"communicator {one.label}: {lost} do not match and count as no waiting"
