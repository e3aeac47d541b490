"""GELU of 8192 x 8192 floats by eight vector calls, two buffers."""

import asc
import numpy as np

SIDE = 8192


@asc.jit
def gelu_kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, rows: int, high: int, width: int, most: int,
                wide: asc.ConstExpr[int], tile_rows: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    y_gm = asc.GlobalTensor()
    down = (rows + high - 1) // high
    block = asc.get_block_idx()
    start = block % down * high * width + block // down * wide
    mine = rows - block % down * high
    if mine > high:
        mine = high
    x_gm.set_global_buffer(x + start)
    y_gm.set_global_buffer(y + start)
    asc.set_flag(asc.HardEvent.V_MTE2, 0)
    asc.set_flag(asc.HardEvent.V_MTE2, 1)
    asc.set_flag(asc.HardEvent.MTE3_V, 0)
    asc.set_flag(asc.HardEvent.MTE3_V, 1)
    for i in range((mine + tile_rows - 1) // tile_rows):
        event = i % 2
        lines = mine - i * tile_rows
        if lines > most:
            lines = most
        x_local = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, event * (wide * tile_rows * 4), wide * tile_rows)
        y_local = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, (event + 2) * (wide * tile_rows * 4),
                                  wide * tile_rows)
        count = lines * wide
        asc.wait_flag(asc.HardEvent.V_MTE2, event)
        asc.data_copy_pad(x_local, x_gm[i * tile_rows * width:],
                          asc.DataCopyExtParams(lines, wide * 4, (width - wide) * 4, 0),
                          asc.DataCopyPadExtParams(x.dtype, False, 0, 0, 0))
        asc.set_flag(asc.HardEvent.MTE2_V, event)
        asc.wait_flag(asc.HardEvent.MTE2_V, event)
        asc.wait_flag(asc.HardEvent.MTE3_V, event)
        asc.mul(y_local, x_local, x_local, count)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.mul(y_local, y_local, x_local, count)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.muls(y_local, y_local, 0.044715, count)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.add(y_local, x_local, y_local, count)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.muls(y_local, y_local, -1.595769, count)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.exp(y_local, y_local, count)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.adds(y_local, y_local, 1.0, count)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.div(y_local, x_local, y_local, count)
        asc.set_flag(asc.HardEvent.V_MTE2, event)
        asc.set_flag(asc.HardEvent.V_MTE3, event)
        asc.wait_flag(asc.HardEvent.V_MTE3, event)
        asc.data_copy_pad(y_gm[i * tile_rows * width:], y_local,
                          asc.DataCopyExtParams(lines, wide * 4, 0, (width - wide) * 4))
        asc.set_flag(asc.HardEvent.MTE3_V, event)
    asc.wait_flag(asc.HardEvent.V_MTE2, 0)
    asc.wait_flag(asc.HardEvent.V_MTE2, 1)
    asc.wait_flag(asc.HardEvent.MTE3_V, 0)
    asc.wait_flag(asc.HardEvent.MTE3_V, 1)


def gelu(cores: int, high: int, wide: int, tile_rows: int, rows: int = SIDE) -> None:
    """`rows` of the matrix on `cores` cores, each with `high` rows and `wide` columns, `tile_rows` rows at a time."""
    x = np.zeros((rows, SIDE), np.float32)
    gelu_kernel[cores](x, np.zeros_like(x), rows, high, SIDE, tile_rows, wide, tile_rows)
