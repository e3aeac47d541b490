"""The cache model against the simulated caches: whatever value the machine sees stale or lost, the check explains; and
programs with every DCCI in place are clean. Random programs, fixed seeds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.registry import entries
from npuscope.npu.core import opcode
from npuscope.npu.layout import contiguous
from npuscope.npu.machine import vector_cores
from npuscope.sanitizer.dcci import DcciCheck
from npuscope.trace.schema import Fault, Pipe, Site, SourceFrame

STORE, LOAD = opcode("copy_ub_to_gm"), opcode("copy_gm_to_ub")
WORDS = 48  # three lines of sixteen
CORES = 3


class Program:
    """Random steps on three cores; each has a line of its own, so that findings tell them apart."""

    def __init__(self, make_device: Callable[..., Any], seed: int, careful: bool) -> None:
        self.random = random.Random(seed)
        self.device = make_device(cores=vector_cores(CORES))
        self.gm = self.device.gm(np.zeros(WORDS, np.int32))
        self.careful = careful
        self.value = 0

    def site(self) -> int:
        """The next line."""
        number = len(self.device.recorder.sites)
        return int(self.device.recorder.add_site(Site("step", (SourceFrame("user.py", number),))))

    def call(self, core: Any, name: str, *operands: Any, **attributes: Any) -> None:
        """A library function on a core."""
        entries()[f"ascendc.{name}"].function(core, self.site(), *operands, **attributes)

    def dcci(self, core: Any, at: int, entire: int = 0) -> None:
        """DataCacheCleanAndInvalid."""
        self.call(core, "data_cache_clean_invalid_global", self.gm.at(at), entire_type=entire, dcci_dst=2)

    def step(self) -> None:
        """One random step."""
        core = self.device.machine.cores[self.random.randrange(CORES)]
        at = self.random.randrange(WORDS)
        kind = self.random.choice(["set", "set", "get", "get", "get", "store", "load", "dcci", "entire"])
        if kind == "set":
            self.value += 0x01010101  # every byte differs from all others of its place
            if self.careful:
                self.dcci(core, at)
            self.call(core, "global_tensor.set_value", self.gm, at, self.value)
        elif kind == "get":
            if self.careful:
                self.dcci(core, at)
            self.call(core, "global_tensor.get_value", self.gm, at)
        elif kind == "store":
            self.value += 0x01010101
            count = self.random.randrange(1, 12)
            core.begin(self.site(), int(Pipe.MTE3), STORE)
            core.store(self.gm.at(at), contiguous(min(count, WORDS - at), 4), self.value)
        elif kind == "load":
            core.begin(self.site(), int(Pipe.MTE2), LOAD)
            core.load(self.gm.at(at), contiguous(min(8, WORDS - at), 4))
        elif not self.careful:
            self.dcci(core, at, int(kind == "entire"))
        if self.careful and kind == "set":
            self.dcci(core, at)

    def run(self, steps: int) -> tuple[list[Any], list[Fault]]:
        """The check's findings and the machine's faults."""
        for _ in range(steps):
            self.step()
        for core in self.device.machine.cores:
            core.end()
        check = DcciCheck()
        self.device.recorder.end()
        for batch in self.device.batches:
            check.check(batch)
        return check.findings, self.device.recorder.faults


@pytest.mark.parametrize("seed", range(80))
def test_everything_the_machine_sees_is_explained(make_device: Any, seed: int) -> None:
    """Lost bytes have a finding about their line; stale values one at their load, unless it is memory that went back to
    an older value by such a loss."""
    findings, faults = Program(make_device, seed, careful=False).run(50)
    loads = {finding.access.site for finding in findings if finding.kind == "dcci-missing"}
    lost = {finding.facts["line"] for finding in findings if finding.kind in ("false-sharing", "stale-write-back")}
    for fault in faults:
        if fault.code == "stale_read":
            assert fault.site in loads or fault.facts["address"] // 64 * 64 in lost
        if fault.code == "lost_write":
            assert fault.facts["address"] // 64 * 64 in lost


def test_the_random_programs_show_something(make_device: Any) -> None:
    """The test above is not empty: over its seeds the machine sees stale reads and lost writes."""
    codes = [fault.code for seed in range(80) for fault in Program(make_device, seed, careful=False).run(50)[1]]
    assert codes.count("stale_read") > 60 and codes.count("lost_write") > 50


@pytest.mark.parametrize("seed", range(20))
def test_every_dcci_in_place_is_clean(make_device: Any, seed: int) -> None:
    """A DCCI before each scalar access and after each store: nothing stale, nothing lost, nothing said."""
    findings, faults = Program(make_device, seed, careful=True).run(50)
    assert findings == [] and faults == []
