"""The register check: what a kernel leaves behind in registers that the next kernel on the core starts with
(sanitizer.md 3.10), and, when asked for, every vector instruction that runs under another mask than all lanes.

Only what the program sets with SetMaskCount, SetVectorMask and SetAtomic* counts. The library's own functions leave
masks of their own, which no kernel relies on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.sanitizer.findings import Collector, Finding, Severity, launched
from npuscope.sanitizer.masks import MaskTrace
from npuscope.sanitizer.tally import rows_of
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import OPCODES

ALL_ONES = (1 << 64) - 1
COUNTER_BIT = 1 << 56
"""The bit of CTRL that is counter mode."""
ATOMIC = {0: "off", 1: "float", 2: "half", 3: "int16", 4: "int32", 5: "int8", 6: "bfloat16"}
"""Element types of atomic copies, by operand a of their rows."""
MASK, MODE, ATOMICS = 0, 1, 2
SETTERS = (
    ("set_vector_mask", "reset_mask", "init_soc_state"),
    ("set_mask_count", "set_mask_norm", "init_soc_state"),
    ("set_atomic", "init_soc_state"),
)
"""Instructions that set the mask words, the mask mode and the atomic mode."""
LEAK = "A kernel that runs next on the core and does not set the register itself works with this value."


@dataclass(frozen=True, slots=True)
class Left:
    """A register that is not at its default when the kernel ends."""

    register: str
    expected: int
    current: int
    summary: str
    advice: str


class RegisterCheck:
    """Takes batches in order (`check(batch)`) and keeps `findings`. With `trace_masks` vector instructions under a
    mask are listed; `block` limits everything to the cores of that block."""

    name = "registers"

    def __init__(self, trace_masks: bool = False, block: int | None = None) -> None:
        self.collector = Collector()
        self._masks = MaskTrace(self.collector, block) if trace_masks else None
        self._block = block
        self._last = np.zeros((0, 0, 0), np.int64)

    @property
    def findings(self) -> list[Finding]:
        """What was found so far."""
        return self.collector.findings

    @property
    def limits(self) -> tuple[str, ...]:
        """Nothing is left out."""
        return ()

    def check(self, batch: Batch) -> None:
        """Look at one batch."""
        if batch.first == 0:
            self._last = np.full((len(SETTERS), 6, len(batch.launch.cores)), -1)  # opcode, site, a, c, d, row
        for kind, names in enumerate(SETTERS):
            self._note(batch, kind, names)
        if self._masks is not None:
            self._masks.check(batch)
        for row in np.flatnonzero(rows_of(batch, ("kernel_end",))):
            self._end(batch, int(row))

    def _note(self, batch: Batch, kind: int, names: tuple[str, ...]) -> None:
        """Keep the last setter of each core."""
        rows = np.flatnonzero(rows_of(batch, names))[::-1]
        if rows.size:
            cores, first = np.unique(batch.column("core")[rows], return_index=True)
            rows = rows[first]
            columns = [batch.column(name)[rows] for name in ("opcode", "site", "a", "c", "d")]
            self._last[kind][:, cores] = np.stack([*columns, batch.first + rows])

    def _end(self, batch: Batch, row: int) -> None:
        core, mode, low, high = (int(batch.column(name)[row]) for name in ("core", "b", "c", "d"))
        if self._block is not None and batch.launch.cores[core].block != self._block:
            return
        if (low, high) != (-1, -1) and self._set_by(core, MASK, "set_vector_mask") and (
            self._last[MASK][3:5, core].tolist() == [low, high]
        ):
            for number, word in enumerate((low, high)):
                if word != -1:
                    self._report(batch, core, MASK, _mask_word(number, word))
        if mode and self._set_by(core, MODE, "set_mask_count"):
            self._report(batch, core, MODE, COUNTER_MODE)
        if self._set_by(core, ATOMICS, "set_atomic") and self._last[ATOMICS][2, core]:
            self._report(batch, core, ATOMICS, _atomic(int(self._last[ATOMICS][2, core])))

    def _set_by(self, core: int, kind: int, name: str) -> bool:
        """Whether a register's last setter on a core was the instruction called `name`."""
        return int(self._last[kind][0, core]) == OPCODES.number(name)

    def _report(self, batch: Batch, core: int, kind: int, left: Left) -> None:
        launch = batch.launch
        site, row = int(self._last[kind][1, core]), int(self._last[kind][5, core])
        finding = Finding(
            "register-not-reset", Severity.WARNING, left.summary, left.advice, launch.kernel, launch.index,
            (launch.cores[core].name,), launched=launched(launch), launch_frame=launch.frame, notes=(LEAK,),
            facts={"register": left.register, "expected": left.expected, "current": left.current, "row": row},
            frames=batch.sites[site].frames,
        )
        self.collector.add((launch.kernel, left.register, site, left.current), finding)


COUNTER_MODE = Left(
    "CTRL", 0, COUNTER_BIT, "the mask registers are in counter mode when the kernel ends: SetMaskCount is never undone",
    "Call set_mask_norm, then reset_mask, before the end; reset_mask alone does not leave counter mode.",
)


def _mask_word(number: int, word: int) -> Left:
    current = word & ALL_ONES
    return Left(
        f"VECTOR_MASK_{number}", ALL_ONES, current,
        f"VECTOR_MASK_{number} is {current:#x} when the kernel ends, not all ones: SetVectorMask is never undone",
        "Call reset_mask before the end.",
    )


def _atomic(kind: int) -> Left:
    return Left(
        "ATOMIC", 0, kind,
        f"copies to global memory are still atomic ({ATOMIC.get(kind, kind)}) when the kernel ends",
        "Call set_atomic_none after the last atomic copy.",
    )
