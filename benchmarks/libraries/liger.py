"""Liger-Kernel: every function, forward and backward."""

from __future__ import annotations

from libraries.liger_fused import FUSED
from libraries.liger_parts import PARTS

TABLE = [*PARTS, *FUSED]
