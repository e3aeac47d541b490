"""What the brute-force model of the order says of a scenario's run, to hold the expectations against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mutations.oracle import Hazard, Row, hazards

from npuscope.trace.recorder import Batch
from scenarios.model import Expect, Scenario
from scenarios.running import Ran, marked


@dataclass(frozen=True)
class Seen:
    """A hazard as a finding would describe it."""

    kind: str
    owner: str
    space: str
    pipes: tuple[str, str]
    later: str
    earlier: str


def launches(batches: Sequence[Batch]) -> Iterator[list[Batch]]:
    """The batches of each launch."""
    group: list[Batch] = []
    for batch in batches:
        group.append(batch)
        if batch.last:
            yield group
            group = []


def seen(ran: Ran) -> set[Seen]:
    """The hazards of a run, each line pair once."""
    return {_described(one, ran, group[-1]) for group in launches(ran.batches) for one in hazards(group)}


def _described(hazard: Hazard, ran: Ran, batch: Batch) -> Seen:
    kind = "relies-on-auto-sync" if hazard.auto else hazard.kind
    pipes = (hazard.later.pipe.name, hazard.earlier.pipe.name)
    lines = (_line(row, ran, batch) for row in (hazard.later, hazard.earlier))
    return Seen(kind, hazard.buffer.name, hazard.buffer.space.name, pipes, next(lines), next(lines))


def _line(row: Row, ran: Ran, batch: Batch) -> str:
    frames = batch.sites[row.site].frames
    return ran.lines[frames[0].line - 1].strip() if frames else ""


def disagreements(row: Scenario, ran: Ran) -> list[str]:
    """Expected races that the model does not know, and hazards of the model that are not expected."""
    found = seen(ran)
    expected = row.expect if row.check == "race" else ()
    required = [one for one in expected if not one.optional]
    missing = [f"the model has no {one}" for one in required if not any(_same(one, hazard) for hazard in found)]
    return missing + [f"not expected: {one}" for one in found if not any(_same(each, one) for each in expected)]


def _same(expect: Expect, hazard: Seen) -> bool:
    given = (expect.kind, expect.owner, expect.space, expect.pipes)
    return given == (hazard.kind, hazard.owner, hazard.space, hazard.pipes) and (
        marked(hazard.later, expect.later) and marked(hazard.earlier, expect.earlier)
    )
