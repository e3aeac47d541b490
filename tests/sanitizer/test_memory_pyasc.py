"""The memory rows of the scenario catalogue (sanitizer.md 6.1) and bug corpus, as pyasc kernels with clean twins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Sanitize = Callable[..., Any]

COPY_IN = """
@asc.jit
def kernel(x: asc.GlobalAddress, n: asc.ConstExpr[int], size: asc.ConstExpr[int], at: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    local = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, at, size)
    asc.data_copy(local, x_gm, n)

kernel[1](np.zeros({length}, np.float32), {n}, {size}, {at})
"""


def line_of(finding: Any) -> str:
    """The source line that a finding names."""
    import linecache

    frames = finding.access.frames if finding.access is not None else finding.frames
    return linecache.getline(frames[0].file, frames[0].line).strip()


class TestOutside:
    def test_m01_copy_larger_than_the_local_tensor(self, sanitize: Sanitize) -> None:
        """M01: 64 floats receive 256: 768 bytes too many."""
        found = sanitize(COPY_IN.format(length=256, n=256, size=64, at=0)).findings
        (finding,) = found
        assert (finding.kind, finding.size, finding.element) == ("illegal-write", 768, 64)
        assert (finding.owner.name, finding.owner.space, finding.access.pipe) == ("local", "UB", "MTE2")
        assert line_of(finding) == "asc.data_copy(local, x_gm, n)"
        assert "192" in finding.advice

    def test_m01_clean_twin(self, sanitize: Sanitize) -> None:
        """The same copy into a tensor that holds it."""
        assert sanitize(COPY_IN.format(length=256, n=256, size=256, at=0)).findings == []

    def test_m03_last_tile_past_the_array(self, sanitize: Sanitize) -> None:
        """M03 (as a read): the argument's array ends before the copy does."""
        (finding,) = sanitize(COPY_IN.format(length=200, n=256, size=256, at=0)).findings
        assert (finding.kind, finding.size, finding.element) == ("illegal-read", 224, 200)
        assert (finding.owner.name, finding.owner.space) == ("x", "GM")

    def test_overrun_names_the_neighbour(self, sanitize: Sanitize) -> None:
        """An overrun inside the chip's capacity is found, and the buffer it lands in is named."""
        (finding,) = sanitize(
            """
            @asc.jit
            def kernel(x: asc.GlobalAddress):
                x_gm = asc.GlobalTensor()
                x_gm.set_global_buffer(x)
                first = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, 64)
                second = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 256, 64)
                asc.data_copy(second, x_gm, 64)
                asc.data_copy(first, x_gm, 72)

            kernel[1](np.zeros(128, np.float32))
            """
        ).findings
        assert (finding.kind, finding.size) == ("illegal-write", 32)
        assert any("second" in note for note in finding.notes)

    def test_m02_repeat_stride_reads_past_the_tensor(self, sanitize: Sanitize) -> None:
        """M02: repeat stride 9 walks one block further with every repeat."""
        text = """
            @asc.jit
            def kernel(stride: asc.ConstExpr[int]):
                a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 1024)
                b = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 4096, 1024)
                c = asc.LocalTensor(asc.float32, asc.TPosition.VECOUT, 8192, 1024)
                params = asc.BinaryRepeatParams(1, 1, 1, 8, stride, 8)
                asc.add(c, a, b, mask=64, repeat_times=16, repeat_params=params)

            kernel[1]({stride})
            """
        (finding,) = sanitize(text.format(stride=9)).findings
        assert (finding.kind, finding.owner.name) == ("illegal-read", "a")
        # repeat r reads bytes 288 r .. 288 r + 255; what lies beyond byte 4096 is read in error
        assert finding.size == sum(byte >= 4096 for r in range(16) for byte in range(288 * r, 288 * r + 256))
        assert sanitize(text.format(stride=8)).findings == []

    def test_many_cores_are_one_finding(self, sanitize: Sanitize) -> None:
        """The same line on every core is reported once, with the count and the cores."""
        checked = sanitize(COPY_IN.replace("kernel[1]", "kernel[4]").format(length=256, n=256, size=64, at=0))
        (finding,) = checked.findings
        assert (finding.count, finding.cores) == (4, ("AIV 0", "AIV 1", "AIV 2", "AIV 3"))

    def test_read_only_array_keeps_its_content(self, sanitize: Sanitize) -> None:
        """A write to an array that numpy holds read-only is dropped and reported."""
        checked = sanitize(
            """
            @asc.jit
            def kernel(x: asc.GlobalAddress):
                x_gm = asc.GlobalTensor()
                x_gm.set_global_buffer(x)
                local = asc.LocalTensor(x.dtype, asc.TPosition.VECOUT, 0, 64)
                asc.data_copy(x_gm, local, 64)

            x = np.ones(64, np.float32)
            x.flags.writeable = False
            kernel[1](x)
            assert (x == 1).all()
            """
        )
        assert checked.code == 0
        assert checked.kinds == ["write-to-read-only"]


class TestMisaligned:
    @pytest.mark.parametrize(("at", "kinds"), [(4, ["misaligned"]), (32, [])])
    def test_m12_and_a01_local_tensor(self, sanitize: Sanitize, at: int, kinds: list[str]) -> None:
        """M12 and A01: a UB operand must start on 32 bytes."""
        checked = sanitize(COPY_IN.format(length=64, n=64, size=64, at=at))
        assert checked.kinds == kinds
        for finding in checked.findings:
            assert finding.advice == "local itself was laid at byte 4: lay it at a multiple of 32."

    def test_a01_offset_and_its_clean_twins(self, sanitize: Sanitize) -> None:
        """A01: offset 1 element is 4 bytes; offset 8 and an odd GM address are fine."""
        text = """
            @asc.jit
            def kernel(x: asc.GlobalAddress, ub: asc.ConstExpr[int], gm: asc.ConstExpr[int]):
                x_gm = asc.GlobalTensor()
                x_gm.set_global_buffer(x)
                local = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, 256)
                asc.data_copy(local[ub:], x_gm[gm:], 64)

            kernel[1](np.zeros(256, np.float32), {ub}, {gm})
            """
        (finding,) = sanitize(text.format(ub=1, gm=0)).findings
        assert (finding.kind, finding.element) == ("misaligned", 1)
        assert "byte 4" in finding.summary
        assert "a multiple of 8 float32 elements (it is 1 now)" in finding.advice
        assert sanitize(text.format(ub=8, gm=0)).findings == []
        assert sanitize(text.format(ub=0, gm=3)).findings == []


QUEUE = """
@asc.jit
def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    pipe = asc.TPipe()
    que_in = asc.TQue(asc.TPosition.VECIN, 1)
    que_out = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(que_in, {number}, {nbytes})
    pipe.init_buffer(que_out, {number}, {nbytes})
    a = que_in.alloc_tensor(x.dtype)
    asc.data_copy(a, x_gm, 64)
    {enque}
    b = que_in.deque(x.dtype)
    c = que_out.alloc_tensor(x.dtype)
    {early}
    asc.add(c, b, b, 64)
    {late}
    que_out.enque(c)
    d = que_out.deque(x.dtype)
    asc.data_copy(z_gm, d, 64)
    que_out.free_tensor(d)

kernel[1](np.ones(64, np.float32), np.zeros(64, np.float32))
"""
GOOD = {"number": 1, "nbytes": 256, "enque": "que_in.enque(a)", "early": "asc.pipe_barrier(asc.PipeID.PIPE_ALL)",
        "late": "que_in.free_tensor(b)"}


class TestQueues:
    def test_clean(self, sanitize: Sanitize) -> None:
        """The kernel as it should be."""
        assert sanitize(QUEUE.format(**GOOD)).findings == []

    def test_m31_use_after_free(self, sanitize: Sanitize) -> None:
        """M31: the tensor is freed before its last use."""
        early = {"early": "que_in.free_tensor(b)", "late": "asc.pipe_barrier(asc.PipeID.PIPE_ALL)"}
        (finding,) = sanitize(QUEUE.format(**{**GOOD, **early})).findings
        assert finding.kind == "use-after-free"
        assert line_of(finding) == "asc.add(c, b, b, 64)"

    def test_m31_deque_from_empty_queue(self, sanitize: Sanitize) -> None:
        """M31: nothing was enqueued."""
        kinds = sanitize(QUEUE.format(**{**GOOD, "enque": "asc.pipe_barrier(asc.PipeID.PIPE_ALL)"})).kinds
        assert kinds[0] == "queue-state"

    def test_double_free(self, sanitize: Sanitize) -> None:
        """The second free_tensor of one tensor."""
        found = sanitize(QUEUE.format(**{**GOOD, "late": "que_in.free_tensor(b); que_in.free_tensor(b)"})).findings
        assert [finding.kind for finding in found] == ["queue-state"]
        assert "free already" in found[0].summary

    def test_no_idle_buffer(self, sanitize: Sanitize) -> None:
        """A second alloc_tensor on a queue of one buffer would hang."""
        found = sanitize(QUEUE.format(**{**GOOD, "early": "e = que_in.alloc_tensor(x.dtype)"})).findings
        assert found[0].kind == "queue-state"
        assert "hang" in found[0].summary

    def test_m33_and_a05_over_capacity(self, sanitize: Sanitize) -> None:
        """M33, A05: two queues of two buffers of 48000 floats do not fit in 192 KB; all numbers are named."""
        found = sanitize(QUEUE.format(**{**GOOD, "number": 2, "nbytes": 48000 * 4})).findings
        assert {finding.kind for finding in found} == {"over-capacity"}
        worst = found[-1]
        assert worst.facts["required"] == 2 * 2 * 48000 * 4
        assert worst.facts["available"] == 196608
        assert "que_in 2 x 192000" in worst.summary
        assert "que_out 2 x 192000" in worst.summary


def test_a04_tensor_laid_past_the_capacity(sanitize: Sanitize) -> None:
    """A04: 4 KB at offset 196352 of a UB of 192 KB."""
    (finding,) = sanitize(COPY_IN.format(length=1024, n=1024, size=1024, at=196352)).findings
    assert (finding.kind, finding.size) == ("illegal-write", 4096 - 256)
    assert any("196608" in note for note in finding.notes)


def test_a07_grid_too_large(sanitize: Sanitize) -> None:
    """A07: 384 x 196 blocks are more than 65535."""
    checked = sanitize(COPY_IN.replace("kernel[1]", "kernel[384 * 196]").format(length=64, n=64, size=64, at=0))
    (finding,) = checked.findings
    assert finding.kind == "launch-too-large"
    assert "75264" in finding.summary
    assert "65535" in finding.summary


def test_helper_functions_show_their_caller(sanitize: Sanitize) -> None:
    """A finding inside an inlined asc.jit helper has the helper's line first, then the call."""
    (finding,) = sanitize(
        """
        @asc.jit
        def load(local: asc.LocalTensor, x_gm: asc.GlobalTensor):
            asc.data_copy(local, x_gm, 256)

        @asc.jit(
            always_compile=True,
        )
        def kernel(x: asc.GlobalAddress):
            x_gm = asc.GlobalTensor()
            x_gm.set_global_buffer(x)
            local = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, 64)
            load(local, x_gm)

        kernel[1](np.zeros(256, np.float32))
        """
    ).findings
    import linecache

    lines = [linecache.getline(frame.file, frame.line).strip() for frame in finding.access.frames]
    assert lines == ["asc.data_copy(local, x_gm, 256)", "load(local, x_gm)"]


OVERLAP = """
@asc.jit
def kernel(x: asc.GlobalAddress, step: asc.ConstExpr[int], sync: asc.ConstExpr[bool]):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + asc.get_block_idx() * step)
    local = asc.LocalTensor(x.dtype, asc.TPosition.VECOUT, 0, 64)
    asc.duplicate(local, 1.0, 64)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    late = asc.get_block_idx() % 2
    if sync == 0 or late == 0:
        asc.data_copy(x_gm, local, 64)
    if sync:
        asc.sync_all()
        if late == 1:
            asc.data_copy(x_gm, local, 64)

kernel[4](np.zeros(256, np.float32), {step}, {sync})
"""


class TestOverwrite:
    def test_m22_overlapping_tiles(self, sanitize: Sanitize) -> None:
        """M22: each core writes the first 32 bytes of the next core's part."""
        (finding,) = sanitize(OVERLAP.format(step=56, sync=False)).findings
        assert (finding.kind, finding.severity.word, finding.size, finding.element) == ("overwrite", "warning", 32, 56)
        assert "AIV 0 and by AIV 1" in finding.summary
        assert finding.count == 3

    def test_clean_twins(self, sanitize: Sanitize) -> None:
        """Parts side by side; and neighbours that write one after the other."""
        assert sanitize(OVERLAP.format(step=64, sync=False)).findings == []
        assert sanitize(OVERLAP.format(step=56, sync=True)).findings == []

    def test_m21_two_cores_set_one_element(self, sanitize: Sanitize) -> None:
        """M21: SetValue of the same element by two cores."""
        (finding,) = sanitize(
            """
            @asc.jit
            def kernel(x: asc.GlobalAddress):
                x_gm = asc.GlobalTensor()
                x_gm.set_global_buffer(x)
                x_gm.set_value(0, 1.0)

            kernel[2](np.zeros(64, np.float32))
            """
        ).findings
        assert (finding.kind, finding.size) == ("overwrite", 4)


def test_m06_scalar_read_past_the_end(sanitize: Sanitize) -> None:
    """M06: get_value at index = length reads one element too many; the last element is fine."""
    text = """
        @asc.jit
        def kernel(x: asc.GlobalAddress, at: asc.ConstExpr[int]):
            x_gm = asc.GlobalTensor()
            x_gm.set_global_buffer(x)
            value = x_gm.get_value(at)
            x_gm.set_value(0, value)

        kernel[1](np.zeros(64, np.float32), {at})
        """
    (finding,) = sanitize(text.format(at=64)).findings
    assert (finding.kind, finding.size, finding.element, finding.access.pipe) == ("illegal-read", 4, 64, "S")
    assert sanitize(text.format(at=63)).findings == []


CUBE = """
@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    a1 = asc.LocalTensor(x.dtype, asc.TPosition.A1, {l1}, {l1_size})
    b1 = asc.LocalTensor(x.dtype, asc.TPosition.B1, 65536, 1024)
    a2 = asc.LocalTensor(x.dtype, asc.TPosition.A2, {l0a}, 1024)
    b2 = asc.LocalTensor(x.dtype, asc.TPosition.B2, 0, 1024)
    c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 1024)
    asc.data_copy(a1, x_gm, {copy})
    asc.data_copy(b1, x_gm, 1024)
    asc.set_flag(asc.HardEvent.MTE2_MTE1, 0)
    asc.wait_flag(asc.HardEvent.MTE2_MTE1, 0)
    asc.load_data(a2, a1, asc.LoadData2DParams(0, {repeat}, 1, 0, 0, False, 0))
    asc.load_data(b2, b1, asc.LoadData2DParams(0, 4, 1, 0, 0, False, 0))
    asc.set_flag(asc.HardEvent.MTE1_M, 0)
    asc.wait_flag(asc.HardEvent.MTE1_M, 0)
    asc.mmad(c1, a2, b2, asc.MmadParams(m=32, n={n}, k=32, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))
    asc.set_flag(asc.HardEvent.M_FIX, 0)
    asc.wait_flag(asc.HardEvent.M_FIX, 0)
    asc.fixpipe(z_gm, c1, asc.FixpipeParamsV220(32, 32, 32, {stride}))

kernel[1](np.zeros(1024, np.float16), np.zeros({out}, np.float32))
"""
CUBE_GOOD: dict[str, int] = {
    "l1": 0, "l1_size": 1024, "l0a": 0, "copy": 1024, "repeat": 4, "n": 32, "stride": 32, "out": 1024,
}


class TestCube:
    def test_clean(self, sanitize: Sanitize) -> None:
        """32 x 32 x 32 as it should be."""
        assert sanitize(CUBE.format(**CUBE_GOOD)).findings == []

    def test_m07_l1_past_its_capacity(self, sanitize: Sanitize) -> None:
        """M07: the last 1 KB of 512 KB of L1 receives 2 KB."""
        found = sanitize(CUBE.format(**{**CUBE_GOOD, "l1": 524288 - 1024})).findings
        assert {(finding.kind, finding.owner.space) for finding in found} == {
            ("illegal-write", "L1"), ("illegal-read", "L1")
        }
        assert found[0].size == 1024
        assert found[0].cores == ("AIC 0",)

    def test_m08_one_fractal_too_many_into_l0a(self, sanitize: Sanitize) -> None:
        """M08: five fractals into a tensor of four."""
        found = sanitize(CUBE.format(**{**CUBE_GOOD, "repeat": 5, "l1_size": 2048})).findings
        write = [finding for finding in found if finding.kind == "illegal-write"]
        assert [(finding.owner.space, finding.size, finding.access.pipe) for finding in write] == [("L0A", 512, "MTE1")]

    def test_m09_mmad_wider_than_its_result(self, sanitize: Sanitize) -> None:
        """M09: n = 48 needs 32 x 48 results in a tensor of 1024 floats."""
        found = sanitize(CUBE.format(**{**CUBE_GOOD, "n": 48})).findings
        assert ("illegal-write", "L0C", "M") in {(f.kind, f.owner.space, f.access.pipe) for f in found}

    def test_m10_last_row_past_the_matrix(self, sanitize: Sanitize) -> None:
        """M10: rows 40 apart in an array for rows 32 apart."""
        (finding,) = sanitize(CUBE.format(**{**CUBE_GOOD, "stride": 40})).findings
        assert (finding.kind, finding.owner.name, finding.access.pipe) == ("illegal-write", "z", "FIX")
        assert finding.size == 4 * sum(max(0, 40 * row + 32 - max(1024, 40 * row)) for row in range(32))

    def test_m13_l1_misaligned(self, sanitize: Sanitize) -> None:
        """M13: an L1 copy at byte 4."""
        found = sanitize(CUBE.format(**{**CUBE_GOOD, "l1": 4})).findings
        assert {finding.kind for finding in found} == {"misaligned"}
        assert found[0].owner.space == "L1"

    def test_m14_l0a_misaligned(self, sanitize: Sanitize) -> None:
        """M14: L0A at byte 256 of its 512-byte fractals."""
        found = sanitize(CUBE.format(**{**CUBE_GOOD, "l0a": 256})).findings
        assert {(finding.kind, finding.owner.space) for finding in found} == {("misaligned", "L0A")}


def test_m11_padding_overwrites_the_neighbour(sanitize: Sanitize) -> None:
    """M11: rows of 47 bytes take 64 in UB: a tensor of 2 x 47 bytes is too short; one of 2 x 64 is right."""
    text = """
        @asc.jit
        def kernel(x: asc.GlobalAddress, size: asc.ConstExpr[int], at: asc.ConstExpr[int]):
            x_gm = asc.GlobalTensor()
            x_gm.set_global_buffer(x)
            rows = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, size)
            other = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, at, 64)
            asc.data_copy(other, x_gm, 64)
            asc.data_copy_pad(rows, x_gm, asc.DataCopyExtParams(2, 47, 0, 0, 0),
                              asc.DataCopyPadExtParams(x.dtype, is_pad=False, left_padding=0, right_padding=0, padding_value=0))

        kernel[1](np.zeros(128, np.int8), {size}, {at})
        """
    (finding,) = sanitize(text.format(size=96, at=96)).findings
    assert (finding.kind, finding.size) == ("illegal-write", 32)
    assert any("other" in note for note in finding.notes)
    assert sanitize(text.format(size=128, at=128)).findings == []


def test_m34_operands_that_overlap_in_part(sanitize: Sanitize) -> None:
    """M34: inside one repeat source and destination are the same or apart (hardware.md 2.2)."""
    text = """
        @asc.jit
        def kernel(shift: asc.ConstExpr[int]):
            a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 256)
            b = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 2048, 256)
            asc.duplicate(a, 1.0, 256)
            asc.duplicate(b, 1.0, 256)
            asc.pipe_barrier(asc.PipeID.PIPE_V)
            asc.add(a[shift:], a, b, 64)

        kernel[1]({shift})
        """
    (finding,) = sanitize(text.format(shift=8)).findings
    assert finding.kind == "operand-overlap"
    assert sanitize(text.format(shift=0)).findings == []
    assert sanitize(text.format(shift=64)).findings == []


@pytest.mark.parametrize(("at", "kinds"), [(4, ["misaligned"]), (8, [])])
def test_m15_wide_scalar_at_an_odd_word(sanitize: Sanitize, at: int, kinds: list[str]) -> None:
    """M15: an int64 element in UB starts on 8 bytes."""
    checked = sanitize(
        f"""
        @asc.jit
        def kernel(x: asc.GlobalAddress):
            local = asc.LocalTensor(asc.int64, asc.TPosition.VECCALC, {at}, 8)
            local.set_value(0, 5)

        kernel[1](np.zeros(64, np.float32))
        """
    )
    assert checked.kinds == kinds


def test_a_copy_of_part_of_a_block(sanitize: Sanitize) -> None:
    """DataCopy moves whole blocks of 32 bytes (sanitizer.md 5.2): of 63 floats the last seven stay."""
    (finding,) = sanitize(COPY_IN.format(length=64, n=63, size=64, at=0)).findings
    assert (finding.kind, finding.severity.word) == ("copy-truncated", "warning")
    assert "last 28 bytes" in finding.summary
    assert finding.frames[0].line > 0


M29 = """
@asc.jit
def kernel(z: asc.GlobalAddress, gap: asc.ConstExpr[int], exact: asc.ConstExpr[int]):
    z_gm = asc.GlobalTensor()
    z_gm.set_global_buffer(z)
    tile = asc.LocalTensor(z.dtype, asc.TPosition.VECOUT, 0, 8 * 16)
    asc.duplicate(tile, 1.0, 8 * 16)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    if exact:
        asc.data_copy_pad(z_gm, tile, asc.DataCopyExtParams(8, 64, 0, gap, 0))
    else:
        asc.data_copy(z_gm, tile, repeat_params=asc.DataCopyParams(8, 2, 0, gap))

z = np.zeros((8, 36), np.float32)
kernel[1](z, {gap}, {exact})
if {exact}:
    assert (z[:, :16] == 1).all() and not z[:, 16:].any()
"""


def test_m29_row_stride_that_is_no_multiple_of_32_bytes(sanitize: Sanitize) -> None:
    """M29: rows of 144 bytes cannot be reached with gaps of whole blocks: rounded up, the last row leaves the array
    (8 rows 160 apart end at byte 1184 of 1152); a copy with its gap in bytes is right and silent."""
    (finding,) = sanitize(M29.format(gap=3, exact=0)).findings
    assert (finding.kind, finding.owner.name, finding.size) == ("illegal-write", "z", 7 * 160 + 64 - 8 * 144)
    checked = sanitize(M29.format(gap=80, exact=1))
    assert (checked.code, checked.findings) == (0, [])
