"""One thing to do about a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from npuscope.trace.schema import SourceFrame


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do. `rule` is a stable id (``F1``, ``OUR-D1``), `text` the sentence; `evidence` the figures that it
    rests on with their names, `threshold` what they were held against; `gain` the share of the task's time that might
    be saved, 0..1, None where it cannot be told, and `estimate` how it was found; `remedy` is what to do; `frames` are
    the lines concerned, the first one to look at first. Gains of several advices do not add up."""

    rule: str
    text: str
    evidence: Mapping[str, float | str] = field(default_factory=dict)
    threshold: str = ""
    gain: float | None = None
    frames: tuple[SourceFrame, ...] = ()
    remedy: str = ""
    estimate: str = ""
