"""A recorded trace gives the same report as the run itself, for the checks of synchronisation, registers and caches."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from npuscope.cli.session import run_in_session
from npuscope.report.text import findings_text
from npuscope.sanitizer.suite import Settings, Suite
from npuscope.trace.file import TraceWriter, read_batches

SCRIPT = """
import numpy as np
import asc
import asc.runtime.config as config
config.set_platform(config.Backend.Model)

@asc.jit(kernel_type=config.KernelType.MIX_AIC_1_2)
def kernel(x: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    if asc.ascend_is_aiv():
        local = asc.LocalTensor(asc.int32, asc.TPosition.VECIN, 0, 64)
        asc.set_vector_mask(0, 255, dtype=asc.int32, mode=asc.MaskMode.NORMAL)
        asc.set_atomic_add(asc.int32)
        x_gm.set_value(asc.get_block_idx(), 7)
        for i in range(3000):
            asc.set_flag(asc.HardEvent.MTE2_V, 0)
            asc.wait_flag(asc.HardEvent.MTE2_V, 0)
            asc.add(local, local, local, 64)
        asc.data_copy(local, x_gm, 64)
        asc.set_flag(asc.HardEvent.V_MTE2, 1)
        asc.set_flag(asc.HardEvent.V_MTE2, 1)
        asc.cross_core_set_flag(1, 2, asc.PipeID.PIPE_MTE3)
        {wait}
    if asc.ascend_is_aic():
        asc.cross_core_wait_flag(1, 2, asc.PipeID.PIPE_MTE2)

kernel[1](np.zeros(64, np.int32))
"""


@pytest.mark.parametrize("dcci", ["exact", "strict"])
@pytest.mark.parametrize("wait", ["pass", "asc.cross_core_wait_flag(2, 2, asc.PipeID.PIPE_MTE2)"])
def test_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait: str, dcci: str) -> None:
    """Live and from the file: the same text and the same JSON, over several batches, with and without a deadlock."""
    pytest.importorskip("asc")
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    script = tmp_path / "kernel.py"
    script.write_text(textwrap.dedent(SCRIPT.format(wait=wait)))
    settings = Settings(dcci=dcci, trace_masks=True)
    live, replayed = Suite(settings=settings), Suite(settings=settings)
    with TraceWriter(tmp_path / "run.trace") as writer:
        run_in_session((live.check, writer.write), None, str(script), (), False)
    batches = 0
    for batch in read_batches(tmp_path / "run.trace"):
        replayed.check(batch)
        batches += 1
    assert batches > 1
    kinds = {finding.kind for finding in live.findings}
    expected = {"flag-set-twice", "non-default-mask"}
    expected |= {"deadlock"} if wait != "pass" else {"unpaired-flag", "register-not-reset"}
    assert expected <= kinds
    assert findings_text(replayed.findings) == findings_text(live.findings)
    assert [item.to_json() for item in replayed.findings] == [item.to_json() for item in live.findings]
