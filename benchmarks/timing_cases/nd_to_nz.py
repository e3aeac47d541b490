"""8192 x 8192 halves from ND to NZ by vector copies, tile by tile, with rows of UB that conflict in banks or do not."""

import asc
import numpy as np

SIDE, HIGH, WIDE = 8192, 144, 128


@asc.jit
def nz_kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, high: int, most: int, stride: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    z_gm.set_global_buffer(z)
    block = asc.get_block_idx()
    row_tiles = (high + 143) // 144
    first = block // 8 * (row_tiles // 6)
    mine = row_tiles // 6
    extra = row_tiles % 6
    if block // 8 < extra:
        mine = mine + 1
        first = first + block // 8
    else:
        first = first + extra
    nd_bytes = 144 * 128 * 2
    nz_bytes = (143 + 7 * stride + 1 + (stride - 144)) * 32
    asc.set_flag(asc.HardEvent.V_MTE2, 0)
    asc.set_flag(asc.HardEvent.V_MTE2, 1)
    asc.set_flag(asc.HardEvent.MTE3_V, 0)
    asc.set_flag(asc.HardEvent.MTE3_V, 1)
    for i in range(mine * 8):
        event = i % 2
        nd = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, event * nd_bytes, 144 * 128)
        nz = asc.LocalTensor(x.dtype, asc.TPosition.VECOUT, 2 * nd_bytes + event * nz_bytes, nz_bytes // 2)
        row = (first + i // 8) * 144
        column = (block % 8 * 8 + i % 8) * 128
        rows = high - row
        if rows > most:
            rows = most
        asc.wait_flag(asc.HardEvent.V_MTE2, event)
        asc.data_copy(nd, x_gm[row * 8192 + column:], repeat_params=asc.DataCopyParams(rows, 8, (8192 - 128) // 16, 0))
        asc.set_flag(asc.HardEvent.MTE2_V, event)
        asc.wait_flag(asc.HardEvent.MTE2_V, event)
        asc.wait_flag(asc.HardEvent.MTE3_V, event)
        asc.copy(nz, nd, 128, rows, asc.CopyRepeatParams(stride, 1, 1, 8))
        asc.set_flag(asc.HardEvent.V_MTE2, event)
        asc.set_flag(asc.HardEvent.V_MTE3, event)
        asc.wait_flag(asc.HardEvent.V_MTE3, event)
        asc.data_copy(z_gm[(row + column // 16 * high) * 16:], nz,
                      repeat_params=asc.DataCopyParams(8, rows, stride - rows, high - rows))
        asc.set_flag(asc.HardEvent.MTE3_V, event)
    asc.wait_flag(asc.HardEvent.V_MTE2, 0)
    asc.wait_flag(asc.HardEvent.V_MTE2, 1)
    asc.wait_flag(asc.HardEvent.MTE3_V, 0)
    asc.wait_flag(asc.HardEvent.MTE3_V, 1)


def transform(stride: int) -> None:
    """The whole matrix on 48 cores, columns of blocks in UB `stride` blocks apart."""
    x = np.zeros((SIDE, SIDE), np.float16)
    nz_kernel[48](x, np.zeros_like(x), SIDE, HIGH, stride)
