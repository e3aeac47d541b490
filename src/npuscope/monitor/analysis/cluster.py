"""The whole analysis: from summaries of ranks to who is slow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npuscope.errors import UserError
from npuscope.monitor.analysis.communicators import Waits, incomplete, waits
from npuscope.monitor.analysis.exposition import SUMS
from npuscope.monitor.analysis.files import Found
from npuscope.monitor.analysis.matrices import Matrices, side_by_side
from npuscope.monitor.analysis.peers import Peers, peers_of
from npuscope.monitor.analysis.reduction import Failure, Summary, reduce_file
from npuscope.monitor.analysis.slow_links import LinkLimits, SlowLink, slow_links
from npuscope.monitor.analysis.slow_ranks import Judged, Limits, SlowNode, SlowRank, judge, slow_nodes
from npuscope.monitor.analysis.steps import INFERRED
from npuscope.monitor.analysis.trace_command import trace_commands
from npuscope.monitor.analysis.workers import each

LEAST_RANKS = 2
MOST_LISTED = 20


@dataclass(frozen=True)
class Cluster:
    """What was found. `left_out` are recordings that do not count, a line each; `notes` say what is incomplete."""

    matrices: Matrices
    waits: Waits
    peers: tuple[Peers, ...]
    slow: tuple[SlowRank, ...]
    """The costliest first."""
    nodes: tuple[SlowNode, ...]
    links: tuple[SlowLink, ...]
    compared_links: int
    largest: tuple[int, float, float] | None
    """Of the ranks that are not slow: who deviates most, by which share of the peers' own time, with which
    confidence."""
    limits: Limits
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def partial(self) -> bool:
        """Whether something that belongs to the job was not looked at."""
        return bool(self.left_out or self.notes)

    @property
    def commands(self) -> list[str]:
        """What traces the slow ranks, a command for each host."""
        return trace_commands(self.matrices, [one.rank for one in self.slow])


def analyse_files(
    found: Found,
    *,
    limits: Limits | None = None,
    link_limits: LinkLimits | None = None,
    skip: int = 0,
    processes: int | None = None,
    scheduler: str | None = None,
) -> Cluster:
    """Reduce the files where they lie, then compare. Raises UserError when fewer than two ranks are left."""
    made = each(reduce_file, found.recordings, processes=processes, scheduler=scheduler)
    summaries = [one for one in made if isinstance(one, Summary)]
    failures = [f"rank {one.rank}: {one.path}: {one.reason}" for one in made if isinstance(one, Failure)]
    return analyse(summaries, (*found.left_out, *failures), limits=limits, link_limits=link_limits, skip=skip)


def analyse(
    summaries: Sequence[Summary],
    left_out: Sequence[str] = (),
    *,
    limits: Limits | None = None,
    link_limits: LinkLimits | None = None,
    skip: int = 0,
) -> Cluster:
    """Compare ranks. Raises UserError when there are fewer than two, or no steps."""
    if len(summaries) < LEAST_RANKS:
        reasons = "".join(f"; {line}" for line in left_out[:1])
        raise UserError(f"{len(summaries)} ranks can be read, and it takes two to compare{reasons}")
    limits, link_limits = limits or Limits(), link_limits or LinkLimits()
    matrices = side_by_side(summaries, skip)
    if not len(matrices.label):
        raise UserError(f"no steps are left after the first {skip}")
    waited = waits(matrices)
    peers = peers_of(matrices, waited.communicators)
    compared = [one for one in peers if len(one.rows) >= LEAST_RANKS]
    count = sum(len(one.rows) for one in compared)
    verdicts = [judge(matrices, waited, one, limits, count) for one in compared]
    slow = sorted((one for verdict in verdicts for one in verdict.slow), key=lambda one: -one.cost)
    links, compared_links = slow_links(matrices, waited.communicators, link_limits)
    return Cluster(
        matrices, waited, tuple(peers), tuple(slow), tuple(slow_nodes(matrices, slow)), links, compared_links,
        _largest(verdicts), limits, tuple(left_out), tuple(_notes(matrices, waited, peers, verdicts)),
    )  # fmt: skip


def _largest(verdicts: Sequence[Judged]) -> tuple[int, float, float] | None:
    known = [one.largest for one in verdicts if one.largest is not None]
    return max(known, key=lambda one: one[1], default=None)


def _notes(matrices: Matrices, waited: Waits, peers: Sequence[Peers], verdicts: Sequence[Judged]) -> Iterator[str]:
    for one in matrices.ranks:
        yield from (f"rank {one.rank}: {note}" for note in one.notes)
    needed = [verdict.steps_needed for verdict in verdicts if verdict.steps_needed]
    if needed:
        yield f"{len(matrices.label)} steps are too few to name a steadily slow rank: {max(needed)} are needed"
    for part in peers:
        if len(part.rows) < LEAST_RANKS:
            yield f"rank {matrices.ranks[part.rows[0]].rank} does what no other rank does and is not judged"
    missing = sorted({rank for one in waited.communicators for rank in one.missing})
    if missing:
        yield f"no file of rank {listed(missing)}, which the communicators name"
    bare = [one.rank for one in matrices.ranks if not one.has_kernels]
    if bare:
        yield f"no kernels or operators of rank {listed(bare)}: what its own time went on is not known"
    lacking = np.isnan(matrices.duration).any(1).sum()
    if lacking:
        yield f"{lacking} of {len(matrices.ranks)} ranks lack some of the {len(matrices.label)} steps"
    sources = sorted({one.source for one in matrices.ranks})
    yield from (f"steps are not marked; they are {one}" for one in sources[:1] if one.startswith(INFERRED))
    yield from (f"a step is the time {one}" for one in sources if one == SUMS)
    yield from incomplete(waited.communicators)


def listed(ranks: Sequence[int]) -> str:
    """`3`, or `0-7, 12` for several."""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    words = [f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts]
    more = f" and {len(words) - MOST_LISTED} more" if len(words) > MOST_LISTED else ""
    return ", ".join(words[:MOST_LISTED]) + more
