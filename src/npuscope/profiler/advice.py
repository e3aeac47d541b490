"""What to do about a kernel: rules over its figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from npuscope.trace.schema import SourceFrame

if TYPE_CHECKING:
    from npuscope.profiler.profile import Profile


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do. `rule` is a stable id (``F1``, ``OUR-D1``), `text` the sentence; `evidence` the figures that it
    rests on with their names, `threshold` what they were held against; `gain` the share of the task's time that might
    be saved, 0..1, None where it cannot be told; `frames` the lines concerned, the first one to look at first."""

    rule: str
    text: str
    evidence: dict[str, float] = field(default_factory=dict)
    threshold: str = ""
    gain: float | None = None
    frames: tuple[SourceFrame, ...] = ()


def advise(profile: Profile) -> list[Advice]:
    """The rules that fire, the greatest gain first."""
    return []
