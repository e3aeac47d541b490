"""Reports of real bugs (tile DSLs on Ascend) that are not rows of the scenario catalogue, as pyasc kernels under every
check. Their numbers are those of the corpus: A06, A14, A16, A17, and R02 for arguments that share memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from npuscope.sanitizer.suite import CHECKS

Sanitize = Callable[..., Any]
ALL = tuple(CHECKS)


def shown(findings: list[Any]) -> list[Any]:
    """Without what only --strict shows."""
    return [one for one in findings if one.severity.word != "advisory"]


def test_a06_three_tiles_and_a_workspace(sanitize: Sanitize) -> None:
    """Three 128 x 128 float buffers fill UB; the workspace does not fit: a finding with every buffer, no crash."""
    text = """
        @asc.jit
        def kernel(x: asc.GlobalAddress, extra: asc.ConstExpr[int]):
            pipe = asc.TPipe()
            first = asc.TBuf(asc.TPosition.VECCALC)
            second = asc.TBuf(asc.TPosition.VECCALC)
            third = asc.TBuf(asc.TPosition.VECCALC)
            work = asc.TBuf(asc.TPosition.VECCALC)
            pipe.init_buffer(first, 65536)
            pipe.init_buffer(second, 65536)
            pipe.init_buffer(third, 65536 - 512)
            pipe.init_buffer(work, extra)

        kernel[1](np.zeros(64, np.float32), {extra})
        """
    (finding,) = sanitize(text.format(extra=4096), checks=ALL).findings
    assert finding.kind == "over-capacity"
    assert all(size in finding.summary for size in ("65536", "65024", "4096"))
    assert sanitize(text.format(extra=32), checks=ALL).findings == []


def test_a14_control_permuted_tile(sanitize: Sanitize) -> None:
    """maximum, permute, minimum and a product of 16 x 16 halves, four tiles: nothing is wrong with the source."""
    ran = sanitize(
        """
        @asc.jit
        def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress):
            x_gm = asc.GlobalTensor()
            y_gm = asc.GlobalTensor()
            z_gm = asc.GlobalTensor()
            x_gm.set_global_buffer(x)
            y_gm.set_global_buffer(y)
            z_gm.set_global_buffer(z)
            a = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, 256)
            b = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 512, 256)
            c = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, 1024, 256)
            d = asc.LocalTensor(x.dtype, asc.TPosition.VECOUT, 1536, 256)
            for tile in range(4):
                asc.data_copy(a, x_gm[tile * 256:], 256)
                asc.data_copy(b, y_gm[tile * 256:], 256)
                asc.set_flag(asc.HardEvent.MTE2_V, 0)
                asc.wait_flag(asc.HardEvent.MTE2_V, 0)
                asc.max(c, a, b, count=256)
                asc.pipe_barrier(asc.PipeID.PIPE_V)
                asc.transpose(d, c)
                asc.pipe_barrier(asc.PipeID.PIPE_V)
                asc.min(d, d, b, count=256)
                asc.pipe_barrier(asc.PipeID.PIPE_V)
                asc.mul(d, d, a, count=256)
                asc.set_flag(asc.HardEvent.V_MTE3, 0)
                asc.wait_flag(asc.HardEvent.V_MTE3, 0)
                asc.data_copy(z_gm[tile * 256:], d, 256)
                asc.set_flag(asc.HardEvent.MTE3_MTE2, 0)
                asc.wait_flag(asc.HardEvent.MTE3_MTE2, 0)

        rng = np.random.default_rng(1)
        x, y = (rng.random((4, 16, 16)).astype(np.float16) for _ in range(2))
        z = np.zeros_like(x)
        kernel[1](x, y, z)
        assert (z == np.minimum(np.maximum(x, y).transpose(0, 2, 1), y) * x).all()
        """,
        checks=ALL,
    )
    assert (ran.code, ran.findings) == (0, [])


def test_a16_slots_outside_the_cache(sanitize: Sanitize) -> None:
    """Slots -1 and 2**20 of a cache of 1024: one finding over all cores, the good slot is written."""
    ran = sanitize(
        """
        @asc.jit
        def kernel(rows: asc.GlobalAddress, slots: asc.GlobalAddress, cache: asc.GlobalAddress):
            rows_gm = asc.GlobalTensor()
            slots_gm = asc.GlobalTensor()
            cache_gm = asc.GlobalTensor()
            rows_gm.set_global_buffer(rows)
            slots_gm.set_global_buffer(slots)
            cache_gm.set_global_buffer(cache)
            row = asc.LocalTensor(rows.dtype, asc.TPosition.VECIN, 0, 16)
            block = asc.get_block_idx()
            slot = slots_gm.get_value(block)
            asc.data_copy(row, rows_gm[block * 16:], 16)
            asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
            asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
            asc.data_copy(cache_gm[slot * 16:], row, 16)

        rows = np.arange(48, dtype=np.float32).reshape(3, 16)
        cache = np.zeros((1024, 16), np.float32)
        kernel[3](rows, np.array([5, -1, 1 << 20], np.int32), cache)
        assert (cache[5] == rows[0]).all() and (np.delete(cache, 5, 0) == 0).all()
        """,
        checks=ALL,
    )
    (finding,) = shown(ran.findings)
    assert ran.code == 0
    assert (finding.kind, finding.owner.name, finding.access.pipe, finding.size) == ("illegal-write", "cache", "MTE3", 64)
    assert (finding.count, finding.cores, finding.element) == (2, ("AIV 1", "AIV 2"), -16)


def test_a17_stride_in_bytes(sanitize: Sanitize) -> None:
    """A 16 x 16 float tile stored with a row stride four times too large: outside from row 4 on, and the hint."""
    text = """
        @asc.jit
        def kernel(z: asc.GlobalAddress, gap: asc.ConstExpr[int]):
            z_gm = asc.GlobalTensor()
            z_gm.set_global_buffer(z)
            tile = asc.LocalTensor(z.dtype, asc.TPosition.VECOUT, 0, 256)
            asc.duplicate(tile, 1.0, count=256)
            asc.set_flag(asc.HardEvent.V_MTE3, 0)
            asc.wait_flag(asc.HardEvent.V_MTE3, 0)
            asc.data_copy(z_gm, tile, repeat_params=asc.DataCopyParams(16, 2, 0, gap))

        kernel[1](np.zeros((16, 16), np.float32), {gap})
        """
    (finding,) = sanitize(text.format(gap=6), checks=ALL).findings
    assert (finding.kind, finding.element, finding.size) == ("illegal-write", 256, 12 * 64)
    assert any("64 bytes long and 256 bytes apart" in note and "stride in bytes" in note for note in finding.notes)
    assert sanitize(text.format(gap=0), checks=ALL).findings == []


@pytest.mark.parametrize(("source", "kinds"), [("x", {"race-raw", "race-war"}), ("x.copy()", set())])
def test_r02_one_array_for_two_arguments(sanitize: Sanitize, source: str, kinds: set[str]) -> None:
    """Each core writes its part of the reversed blocks; in place, cores read what others write, and it is said that the
    two arguments share memory. With a copy nothing is wrong."""
    ran = sanitize(
        """
        @asc.jit
        def kernel(src: asc.GlobalAddress, dst: asc.GlobalAddress):
            src_gm = asc.GlobalTensor()
            dst_gm = asc.GlobalTensor()
            src_gm.set_global_buffer(src)
            dst_gm.set_global_buffer(dst)
            part = asc.LocalTensor(src.dtype, asc.TPosition.VECIN, 0, 64)
            block = asc.get_block_idx()
            asc.data_copy(part, src_gm[(7 - block) * 64:], 64)
            asc.set_flag(asc.HardEvent.MTE2_MTE3, 0)
            asc.wait_flag(asc.HardEvent.MTE2_MTE3, 0)
            asc.data_copy(dst_gm[block * 64:], part, 64)

        x = np.arange(512, dtype=np.float32)
        kernel[8](SOURCE, x)
        """.replace("SOURCE", source),
        checks=ALL,
    )
    assert {finding.kind for finding in ran.findings} == kinds
    assert all("The arguments" in finding.notes[0] and "share memory" in finding.notes[0] for finding in ran.findings)
