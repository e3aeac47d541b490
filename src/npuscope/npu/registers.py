"""The special registers of a core that change how later instructions work."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

NORMAL, COUNTER = 0, 1
FULL_MASK = (0xFFFF_FFFF_FFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF)


@dataclass(slots=True)
class Registers:
    """State that persists from instruction to instruction, as on the device (hardware.md 3.2, 4.1).

    `mask` is (low, high); in counter mode the low word is the element count.
    """

    mask_mode: int = NORMAL
    mask: tuple[int, int] = FULL_MASK
    compare_mask: np.ndarray = field(default_factory=lambda: np.zeros(16, np.uint8))  # 128 bits
    atomic_operation: str | None = None  # None, "add", "max", "min"
    atomic_dtype: str = ""
    saturate: bool = False
    hf32: bool = False
    hf32_toward_zero: bool = False
    values: dict[str, object] = field(default_factory=dict)  # the rarely used ones, by register name
