"""Shared test benches: a single simulated core that runs library functions, and a session that runs IR or scripts."""

from __future__ import annotations

import inspect
import linecache
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.registry import entries
from npuscope.ascendc.tensor import POSITIONS
from npuscope.cli.session import run_in_session
from npuscope.npu.chip import load_chip
from npuscope.npu.machine import Machine
from npuscope.npu.memory import GlobalMemory
from npuscope.npu.tensor import Tensor
from npuscope.sanitizer.findings import Finding
from npuscope.sanitizer.suite import Settings, Suite
from npuscope.trace.footprint import FOOTPRINTS
from npuscope.trace.names import _assigned
from npuscope.trace.recorder import Batch, Recorder
from npuscope.trace.schema import ACCESS_COLUMNS, OPCODES, Buffer, CoreInfo, CoreType, Launch, Role, Space

VECIN, VECOUT, VECCALC, A1, A2, B1, B2, C1, C2, CO1 = 9, 10, 11, 1, 2, 3, 4, 5, 6, 7


class Device:
    """Cores on which operations of the Ascend C library are called by name; everything is recorded."""

    def __init__(self, chip: str = "910B1", cores: tuple[CoreInfo, ...] = (CoreInfo(CoreType.AIV, 0),)) -> None:
        self.batches: list[Batch] = []
        self.recorder = Recorder(consumers=[self.batches.append])
        self.memory = GlobalMemory()
        self.launch = Launch(0, "kernel", chip, cores, (1,), {}, {})
        self.recorder.begin(self.launch)
        self.machine = Machine(load_chip(chip), self.recorder, self.memory)
        self.machine.build(cores)
        self.core = self.machine.cores[0]
        self._next: dict[Space, int] = {}

    def local(self, values: Any, position: int = VECIN, address: int | None = None, size: int | None = None) -> Tensor:
        """An on-chip tensor holding `values` (its own buffer of `size` bytes), laid after the previous one."""
        array = np.ascontiguousarray(values)
        space = POSITIONS[position]
        if address is None:
            address = self._next.get(space, 0)
        nbytes = array.nbytes if size is None else size
        self._next[space] = max(self._next.get(space, 0), -(-(address + nbytes) // 512) * 512)
        memory = self.core.memories[space]
        memory.bytes[address : address + array.nbytes] = array.reshape(-1).view(np.uint8)
        buffer = self.core.buffer(Buffer(space, 0, address, nbytes, "tensor", f"t{address}", array.dtype.name))
        return Tensor(memory, address, array.dtype, buffer, nbytes // array.dtype.itemsize, position)

    def gm(self, values: np.ndarray, name: str = "x") -> Tensor:
        """A global tensor over `values` itself (shared storage)."""
        region = self.memory.map(values.reshape(-1).view(np.uint8), values)
        buffer = self.recorder.add_buffer(
            Buffer(Space.GM, -1, region.base, values.nbytes, "argument", name, values.dtype.name, values.shape)
        )
        return Tensor(region, region.base, values.dtype, buffer, values.size)

    def run(self, operation: str, *operands: Any, **attributes: Any) -> Any:
        """Call an operation; "add_l2" is short for "ascendc.add_l2". A blocking one is driven to its end."""
        name = operation if operation.startswith("ascendc.") else f"ascendc.{operation}"
        with np.errstate(all="ignore"):
            result = entries()[name].function(self.core, 0, *operands, **attributes)
            if inspect.isgenerator(result):
                while True:
                    try:
                        next(result)
                    except StopIteration as stop:
                        return stop.value
            return result

    def values(self, tensor: Tensor, count: int | None = None) -> np.ndarray:
        """What a tensor holds now (a copy)."""
        offset = tensor.address - tensor.memory.base
        number = tensor.length if count is None else count
        return tensor.memory.bytes[offset : offset + number * tensor.dtype.itemsize].view(tensor.dtype).copy()

    def trace(self) -> Batch:
        """Everything recorded so far, as one batch."""
        self.recorder.flush()
        batch = self.batches[-1]
        return batch

    def opcodes(self) -> list[str]:
        """Names of the instructions since the last `trace`."""
        return [OPCODES.names[number] for number in self.trace().column("opcode")]

    def touched(self, tensor: Tensor, role: Role) -> set[int]:
        """Byte addresses that the instructions since the last flush read or wrote through the tensor's buffer."""
        batch = self.trace()
        found: set[int] = set()
        for row in batch.access.T:
            access = dict(zip(ACCESS_COLUMNS, (int(number) for number in row), strict=True))
            if access["buffer"] == tensor.buffer and access["role"] == role:
                number = access["footprint"]
                shape = FOOTPRINTS[number] if number >= 0 else batch.explicit[-number - 1]
                found.update((access["address"] + shape.offsets()).tolist())
        return found


@pytest.fixture
def device() -> Device:
    """One AIV of a 910B1."""
    return Device()


@pytest.fixture
def cube() -> Device:
    """One AIC of a 910B1."""
    return Device(cores=(CoreInfo(CoreType.AIC, 0),))


@pytest.fixture
def make_device() -> type[Device]:
    """For tests that need another chip or several cores."""
    return Device


@dataclass(frozen=True)
class Checked:
    """What a script did under the sanitizer's checks."""

    code: int
    findings: list[Finding]
    launches: int

    @property
    def kinds(self) -> list[str]:
        """Class ids of the findings, in order."""
        return [finding.kind for finding in self.findings]


KERNEL_SCRIPT = """\
import numpy as np
import asc
import asc.lib.runtime as rt
import asc.runtime.config as config
config.set_platform(config.Backend.Model)
"""


@pytest.fixture
def sanitize(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Checked]:
    """Run program text (the usual pyasc imports come first) under the checks named, in this process."""
    pytest.importorskip("asc")

    def run(
        text: str, *arguments: str, chip: str | None = None, checks: Sequence[str] = ("memory",), **settings: Any
    ) -> Checked:
        monkeypatch.setattr(sys, "argv", list(sys.argv))
        monkeypatch.setattr(sys, "path", list(sys.path))
        script = tmp_path / "kernel.py"
        script.write_text(KERNEL_SCRIPT + textwrap.dedent(text))
        linecache.checkcache(str(script))
        _assigned.cache_clear()
        check = Suite(checks, Settings(**settings))
        code, _ = run_in_session((check.check,), chip, str(script), arguments, False)
        return Checked(code, check.findings, check.launches)

    return run


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the lines that tests left under the property "scoreboard" (they reach here from other processes too)."""
    reports = terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", [])
    for report in reports:
        for name, line in getattr(report, "user_properties", []):
            if name == "scoreboard" and getattr(report, "when", "") == "call":
                terminalreporter.write_line(str(line))
