"""Softmax of rows of 128 floats on one core, row by row with a vector call for each step. The two steps that spread a
row's maximum and sum over the row spread ones instead: pyasc's Duplicate takes no tensor."""

import asc
import numpy as np

ROWS = 64


@asc.jit
def softmax_kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, rows: int):
    x_gm = asc.GlobalTensor()
    y_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    y_gm.set_global_buffer(y)
    x_local = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, 0, 64 * 128)
    y_local = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, 32768, 64 * 128)
    power = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, 65536, 64 * 128)
    total = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, 98304, 64 * 128)
    asc.data_copy(x_local, x_gm, rows * 128)
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)
    for i in range(rows):
        row = i * 128
        asc.reduce_max(power[row:], x_local[row:], total[row:], 128)
        asc.duplicate(power[row:], 1.0, 128)
        asc.sub(power[row:], x_local[row:], power[row:], 128)
        asc.exp(power[row:], power[row:], 128)
        asc.reduce_sum(total[row:], power[row:], y_local[row:], 128)
        asc.duplicate(total[row:], 1.0, 128)
        asc.div(y_local[row:], power[row:], total[row:], 128)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    asc.data_copy(y_gm, y_local, rows * 128)


def softmax() -> None:
    """`ROWS` rows."""
    x = np.zeros((ROWS, 128), np.float32)
    softmax_kernel[1](x, np.zeros_like(x), ROWS)
