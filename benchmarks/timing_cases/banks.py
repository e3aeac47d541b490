"""Adds of 4096 floats from places in UB that do or do not conflict, many times over, on one core."""

import asc
import numpy as np

LENGTH = 4096
TIMES = 200


@asc.jit
def banks_kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress, times: int,
                 x_at: asc.ConstExpr[int], y_at: asc.ConstExpr[int], z_at: asc.ConstExpr[int],
                 block_stride: asc.ConstExpr[int], repeat_stride: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    y_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x, 4096)
    y_gm.set_global_buffer(y, 4096)
    z_gm.set_global_buffer(z, 4096)
    x_local = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, x_at, 4096)
    y_local = asc.LocalTensor(y.dtype, asc.TPosition.VECCALC, y_at, 4096)
    z_local = asc.LocalTensor(z.dtype, asc.TPosition.VECCALC, z_at, 4096)
    asc.data_copy(x_local, x_gm, 4096)
    asc.data_copy(y_local, y_gm, 4096)
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)
    for _i in range(times):
        asc.add(z_local, x_local, y_local, 64, 64,
                asc.BinaryRepeatParams(1, block_stride, 1, 8, repeat_stride, 8))
        asc.pipe_barrier(asc.PipeID.PIPE_V)
    asc.pipe_barrier(asc.PipeID.PIPE_ALL)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    asc.data_copy(z_gm, z_local, 4096)


def adds(x_at: int, y_at: int, z_at: int, block_stride: int = 1, repeat_stride: int = 8) -> None:
    """`TIMES` adds with the operands at these byte addresses of UB."""
    x, y, z = (np.zeros(LENGTH, np.float32) for _ in range(3))
    banks_kernel[1](x, y, z, TIMES, x_at, y_at, z_at, block_stride, repeat_stride)
