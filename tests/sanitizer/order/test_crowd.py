"""Bytes that very many cores read: none of the reads is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npuscope.sanitizer.suite import CHECKS

BLOCKS = 400
TEXT = """
    @asc.jit
    def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, writer: asc.ConstExpr[int]):
        x_gm = asc.GlobalTensor()
        z_gm = asc.GlobalTensor()
        x_gm.set_global_buffer(x)
        z_gm.set_global_buffer(z)
        a = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, 8)
        block = asc.get_block_idx()
        for turn in range(2):
            asc.data_copy(a, x_gm, 8)
            asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
            asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
            asc.data_copy(z_gm[block * 16 + turn * 8:], a, 8)
            asc.set_flag(asc.HardEvent.MTE3_MTE2, 0)
            asc.wait_flag(asc.HardEvent.MTE3_MTE2, 0)
        if block == writer:
            asc.data_copy(x_gm, a, 8)

    kernel[BLOCKS](np.ones(8, np.float32), np.zeros(16 * BLOCKS, np.float32), WRITER)
    """


def test_hundreds_of_readers(sanitize: Callable[..., Any]) -> None:
    """Alone they are fine; a block that writes what all have read races with each of the others."""
    text = TEXT.replace("BLOCKS", str(BLOCKS))
    assert sanitize(text.replace("WRITER", "-1"), checks=tuple(CHECKS)).findings == []
    (finding,) = sanitize(text.replace("WRITER", str(BLOCKS - 1)), checks=("race",)).findings
    assert (finding.kind, finding.owner.name, finding.count) == ("race-war", "x", BLOCKS - 1)
