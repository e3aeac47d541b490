"""Lists vector instructions that run under another mask than all lanes: instruction, mode and mask words, a line each
(sanitizer.md 3.10)."""

from __future__ import annotations

import numpy as np

from npuscope.sanitizer.findings import Collector, Finding, Severity, launched
from npuscope.sanitizer.tally import rows_of
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import OPCODES, Origin

LISTED = (
    "vabs", "vadd", "vaddrelu", "vaddreluconv", "vadds", "vand", "vaxpy", "vcadd", "vcgadd", "vcgmax",
    "vcgmin", "vcmax", "vcmin", "vcmp", "vconv", "vcopy", "vcpadd", "vdiv", "vector_dup", "vexp", "vgather",
    "vln", "vlrelu", "vmadd", "vmaddrelu", "vmax", "vmaxs", "vmin", "vmins", "vmla", "vmul", "vmulconv",
    "vmuls", "vnot", "vor", "vrec", "vreduce", "vreducev2", "vrelu", "vrsqrt", "vsel", "vshl", "vshr",
    "vsqrt", "vsub", "vsubrelu", "vsubreluconv",
)
"""Instructions whose mask counts; the vendor's names in small letters."""
MODES = ("Normal", "Counter")
WORD = (1 << 64) - 1
KEY = ("opcode", "site", "b", "c", "d", "core")


class MaskTrace:
    """Adds a finding for every line and mask value to `collector`; `block` chooses the cores of one block."""

    def __init__(self, collector: Collector, block: int | None = None) -> None:
        self.collector = collector
        self._block = block

    def check(self, batch: Batch) -> None:
        """Look at one batch."""
        mode, low, high = (batch.column(name) for name in ("b", "c", "d"))
        masked = rows_of(batch, LISTED) & (batch.column("origin") == Origin.USER)
        masked &= (mode != 0) | (low != -1) | (high != -1)
        rows = np.flatnonzero(masked)
        if not rows.size:
            return
        table = np.stack([batch.column(name)[rows] for name in KEY])
        kinds, first, counts = np.unique(table, axis=1, return_index=True, return_counts=True)
        for at in np.argsort(first):
            self._report(batch, kinds[:, at].tolist(), int(rows[first[at]]), int(counts[at]))

    def _report(self, batch: Batch, kind: list[int], row: int, count: int) -> None:
        opcode, site, mode, low, high, core = kind
        launch = batch.launch
        if self._block is not None and launch.cores[core].block != self._block:
            return
        name = OPCODES.names[opcode].upper()
        words = {"mask_high": f"{high & WORD:#x}", "mask_low": f"{low & WORD:#x}"}
        finding = Finding(
            "non-default-mask", Severity.ADVISORY,
            f"{name} runs under a mask in {MODES[mode].lower()} mode: high word {words['mask_high']}, low word "
            f"{words['mask_low']}" + (f" ({low} elements)" if mode else ""),
            "", launch.kernel, launch.index, (launch.cores[core].name,), count=count, launched=launched(launch),
            launch_frame=launch.frame, facts={"instruction": name, "mode": MODES[mode], **words,
                                              "row": batch.first + row, "site": site},
            frames=batch.sites[site].frames,
        )
        self.collector.add(("mask", launch.kernel, *kind[:5]), finding)
