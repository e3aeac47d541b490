"""One event that the hardware can count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from npuscope.trace.schema import CoreType

if TYPE_CHECKING:
    from npuscope.profiler.counters.reader import Reader


@dataclass(frozen=True, slots=True)
class Event:
    """`number` is the vendor's; `meaning` what the hardware counts, `rule` how that is read off a timeline, both for
    people; `read` does it: (cores,) float64, NaN where the timeline does not tell. `core` is the kind of core that has
    the counter, None for both (and for all cores of a chip whose cores do everything)."""

    number: int
    meaning: str
    rule: str
    read: Callable[[Reader], np.ndarray]
    core: CoreType | None = None
