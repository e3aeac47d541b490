"""The kernels behind the CAModel rows: small ones, ruled by what the framework and the start of a kernel cost."""

from __future__ import annotations

from collections.abc import Mapping

from timing_cases.queue_kernel import Operand, QueueKernel, Script

CORES, TILES, TILE = 8, 16, 128
F32, F16, I32, U32, I16, U8 = "float32", "float16", "int32", "uint32", "int16", "uint8"
V = "asc.pipe_barrier(asc.PipeID.PIPE_V)"


def tiled(
    body: str,
    inputs: int = 1,
    dtype: str = F32,
    out: str = "",
    scratch: tuple[Operand, ...] = (),
    values: tuple[str, ...] = (),
) -> QueueKernel:
    """8 cores, 16 tiles of 128 elements each, two buffers to a queue."""
    return QueueKernel(
        body, (Operand(dtype, TILE),) * inputs, (Operand(out or dtype, TILE),), scratch, TILES, CORES, 2, values
    )


def reduced(body: str) -> QueueKernel:
    """One core, one tile of 256 elements, a scratch buffer of the same size."""
    wide = Operand(F32, 256)
    return QueueKernel(body, (wide,), (wide,), (wide,))


def single(
    body: str,
    inputs: int = 1,
    count: int = 64,
    dtype: str = F32,
    out: str = "",
    outputs: int = 1,
    scratch: tuple[Operand, ...] = (),
    values: tuple[str, ...] = (),
) -> QueueKernel:
    """One core, one tile of `count` elements."""
    return QueueKernel(
        body, (Operand(dtype, count),) * inputs, (Operand(out or dtype, count),) * outputs, scratch, values=values
    )


def gathering(body: str, offsets: int) -> QueueKernel:
    """One core, 64 elements and as many 32-bit offsets as `offsets`, which count down."""
    step = 4 if offsets == 64 else 32
    return QueueKernel(
        body,
        (Operand(F32, 64), Operand(U32, offsets)),
        (Operand(F32, 64),),
        values=("np.arange(n)", f"np.arange(n)[::-1] * {step}"),
    )


COMPARE = "asc.compare_scalar({mask}, {{x0}}, {value}, asc.CMPMODE.GT, {count})"
SELECT = "asc.select({{z0}}, {mask}, {yes}, {no}, asc.SelMode.VSEL_TENSOR_TENSOR_MODE, {count})"

SYNC_ALL = Script("""
import asc
import numpy as np

ALL = asc.PipeID.PIPE_ALL


@asc.jit
def kernel(flags_at: asc.GlobalAddress, sums_at: asc.GlobalAddress, work_at: asc.GlobalAddress):
    flags = asc.GlobalTensor()
    sums = asc.GlobalTensor()
    work = asc.GlobalTensor()
    flags.set_global_buffer(flags_at, 64)
    sums.set_global_buffer(sums_at, 64)
    work.set_global_buffer(work_at, 64)
    pipe = asc.TPipe()
    one_buffer = asc.TBuf(asc.TPosition.VECCALC)
    all_buffer = asc.TBuf(asc.TPosition.VECCALC)
    work_buffer = asc.TBuf(asc.TPosition.VECCALC)
    pipe.init_buffer(one_buffer, 32)
    pipe.init_buffer(all_buffer, 256)
    pipe.init_buffer(work_buffer, 256)
    block = asc.get_block_idx()
    one = one_buffer.get(asc.int32)
    asc.duplicate(one, block + 1, 8)
    asc.pipe_barrier(ALL)
    asc.data_copy(flags[block * 8:], one, 8)
    asc.pipe_barrier(ALL)
    slots = work_buffer.get(asc.int32)
    asc.sync_all(work, slots, 8)
    everyone = all_buffer.get(asc.int32)
    asc.data_copy(everyone, flags, 64)
    asc.pipe_barrier(ALL)
    total = everyone.get_value(0)
    for other in range(1, 8):
        total = total + everyone.get_value(other * 8)
    asc.pipe_barrier(ALL)
    asc.duplicate(one, total, 8)
    asc.pipe_barrier(ALL)
    asc.data_copy(sums[block * 8:], one, 8)


flags, sums, work = (np.zeros(64, np.int32) for _ in range(3))
kernel[8](flags, sums, work)
assert (sums == 36).all(), sums
""")

MATMUL = Script("""
import asc
import asc.lib.host as host
import numpy as np


@asc.jit
def kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress, tiling: asc.adv.TCubeTiling,
           workspace: asc.GlobalAddress):
    a_gm = asc.GlobalTensor()
    b_gm = asc.GlobalTensor()
    c_gm = asc.GlobalTensor()
    pipe = asc.TPipe()
    matmul = asc.adv.Matmul(
        a=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, a.dtype),
        b=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, b.dtype),
        c=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, c.dtype),
        bias=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, c.dtype),
    )
    asc.adv.register_matmul(pipe, workspace, matmul, tiling)
    a_gm.set_global_buffer(a, 64 * 64)
    b_gm.set_global_buffer(b, 64 * 64)
    c_gm.set_global_buffer(c, 64 * 64)
    matmul.set_tensor_a(a_gm)
    matmul.set_tensor_b(b_gm)
    matmul.iterate_all(c_gm)
    matmul.end()


plan = host.MatmulApiTiling(host.get_ascendc_platform())
plan.set_a_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT16, False)
plan.set_b_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT16, False)
plan.set_c_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT)
plan.set_bias_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT)
plan.set_shape(64, 64, 64)
plan.set_org_shape(64, 64, 64)
plan.enable_bias(False)
plan.set_buffer_space(-1, -1, -1)
tiling = asc.adv.TCubeTiling()
assert plan.get_tiling(tiling) == 0
a = np.ones((64, 64), np.float16)
c = np.zeros((64, 64), np.float32)
kernel[1](a, a, c, tiling, np.zeros(1 << 20, np.uint8))
assert (c == 64).all(), c
""")

KERNELS: Mapping[str, QueueKernel | Script] = {
    "DataCopy": tiled("asc.data_copy({z0}, {x0}, 128)"),
    "Abs": tiled("asc.abs({z0}, {x0}, 128)"),
    "Add": tiled("asc.add({z0}, {x0}, {x1}, 128)", 2),
    "AddRelu": single("asc.add_relu({z0}, {x0}, {x1}, 256)", 2, 256),
    "AtomicAdd": QueueKernel(
        "asc.duplicate({z0}, 1.0, 64)",
        (),
        cores=8,
        around=("asc.set_atomic_add(asc.float32)", "asc.set_atomic_none()"),
    ),
    "Axpy": single(f"asc.duplicate({{z0}}, 1.0, 64)\n{V}\nasc.axpy({{z0}}, {{x0}}, 2.0, 64)"),
    "BlockReduceMin": reduced("asc.block_reduce_min({z0}, {x0}, 4, 64, 1, 1, 8)"),
    "Brcb": QueueKernel("asc.brcb({z0}, {x0}, 1, asc.BrcbRepeatParams(1, 8))", (Operand(F32, 8),)),
    "Cast": tiled("asc.cast({z0}, {x0}, asc.RoundMode.CAST_RINT, 128)", out=I32),
    "CastF2H": single("asc.cast({z0}, {x0}, asc.RoundMode.CAST_NONE, 256)", count=256, out=F16),
    "Compares": single(
        f"asc.duplicate(t0, 1.0, 64)\nasc.duplicate(t1, 0.0, 64)\n{V}\n"
        + COMPARE.format(mask="t2", value=31.5, count=64)
        + f"\n{V}\n"
        + SELECT.format(mask="t2", yes="t0", no="t1", count=64),
        scratch=(Operand(), Operand(), Operand(U8)),
    ),
    "Div": tiled("asc.div({z0}, {x0}, {x1}, 128)", 2),
    "Divs": tiled("asc.muls({z0}, {x0}, 0.5, 128)"),
    "Duplicate": QueueKernel("asc.duplicate({z0}, 3.0, 64)", ()),
    "Exp": tiled("asc.exp({z0}, {x0}, 128)"),
    "FusedMulAdd": single(
        f"asc.duplicate({{z0}}, 1.0, 256)\n{V}\nasc.fused_mul_add({{z0}}, {{x0}}, {{x1}}, 256)", 2, 256
    ),
    "Gather": gathering("asc.gather({z0}, {x0}, {x1}, 0, 64)", 64),
    "GatherMask": single("asc.gather_mask({z0}, {x0}, 1, False, 64, asc.GatherMaskParams(1, 1, 8, 8))"),
    "Gatherb": gathering("asc.gatherb({z0}, {x0}, {x1}, 1, asc.GatherRepeatParams(1, 8))", 8),
    "Max": tiled("asc.max({z0}, {x0}, {x1}, 128)", 2),
    "Mins": tiled("asc.mins({z0}, {x0}, 2.0, 128)"),
    "Muls": tiled("asc.muls({z0}, {x0}, 2.0, 128)"),
    "Neg": tiled("asc.muls({z0}, {x0}, -1.0, 128)"),
    "Not": tiled("asc.bitwise_not({z0}, {x0}, 128)", dtype=I16),
    "Or": tiled("asc.bitwise_or({z0}, {x0}, {x1}, 128)", 2, I16),
    "Ors": single("asc.maxs({z0}, {x0}, 3, 64)", dtype=I16),
    "PairReduceSum": reduced("asc.pair_reduce_sum({z0}, {x0}, 4, 64, 1, 1, 8)"),
    "Reciprocal": tiled("asc.reciprocal({z0}, {x0}, 128)"),
    "ReduceMin": reduced("asc.reduce_min({z0}, {x0}, t0, 256)"),
    "ReduceSum": reduced("asc.reduce_sum({z0}, {x0}, t0, 256)"),
    "Relu": tiled("asc.relu({z0}, {x0}, 128)"),
    "RepeatReduceSum": reduced("asc.repeat_reduce_sum({z0}, {x0}, 4, 64, 1, 1, 1, 8)"),
    "Rsqrt": tiled("asc.rsqrt({z0}, {x0}, 128)"),
    "Scatter": gathering("asc.scatter({z0}, {x0}, {x1}, 0, 64)", 64),
    "Select": tiled(
        COMPARE.format(mask="t0", value=0.0, count=128)
        + "\n"
        + SELECT.format(mask="t0", yes="{x0}", no="{x1}", count=128),
        2,
        scratch=(Operand(U8, TILE),),
    ),
    "ShiftLeft": single("asc.mul({z0}, {x0}, {x1}, 64)", 2, dtype=I32),
    "ShiftRight": single("asc.mul({z0}, {x0}, {x1}, 64)", 2, dtype=I32),
    "Sub": tiled("asc.sub({z0}, {x0}, {x1}, 128)", 2),
    "Subs": tiled("asc.adds({z0}, {x0}, -2.0, 128)"),
    "Transpose": single("asc.transpose({z0}, {x0})", count=256, dtype=F16),
    "WholeReduceMax": reduced("asc.whole_reduce_max({z0}, {x0}, 64, 4, 1, 1, 8)"),
    "WholeReduceMin": reduced("asc.whole_reduce_min({z0}, {x0}, 64, 4, 1, 1, 8)"),
    "Sin": tiled("asc.adv.sin({z0}, {x0}, count=128)"),
    "Interleave": single(
        f"asc.duplicate(t0, 1.0, 64)\nasc.duplicate(t1, 2.0, 64)\n{V}\n"
        "asc.add({z0}, t0, t1, 64)\nasc.add({z1}, t0, t1, 64)",
        0,
        outputs=2,
        scratch=(Operand(), Operand()),
    ),
    "Mull": single("asc.mul({z0}, {x0}, {x1}, 256)\nasc.mul({z1}, {x0}, {x1}, 256)", 2, 256, I32, outputs=2),
    "MulsCast": single("asc.muls({x0}, {x0}, 0.5, 64)\nasc.cast({z0}, {x0}, asc.RoundMode.CAST_NONE, 64)", out=F16),
    "Truncate": single("asc.cast({z0}, {x0}, asc.RoundMode.CAST_TRUNC, 64)"),
    "Sigmoid": tiled("asc.adv.tanh({z0}, {x0}, count=128)"),
    "Gelu": tiled("asc.adv.tanh({z0}, {x0}, count=128)"),
    "Silu": tiled("asc.adv.tanh({z0}, {x0}, count=128)"),
    "SyncAll": SYNC_ALL,
    "Matmul": MATMUL,
}
