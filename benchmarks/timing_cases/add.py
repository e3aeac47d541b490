"""z = x + y over 8192 x 8192 halves, rows shared out over the vector cores: a scalar loop, then tiles with one buffer,
with two, past the L2 cache, and in banks that do not conflict."""

import asc
import numpy as np

SIDE = 8192
WIDE = 16384
WIDE_950 = 21840


@asc.jit
def add_kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress, rows: int, columns: int, most: int,
               tile: asc.ConstExpr[int], y_at: asc.ConstExpr[int], z_at: asc.ConstExpr[int],
               scalar: asc.ConstExpr[bool]):
    cores = asc.get_block_num()
    block = asc.get_block_idx()
    mine = rows // cores
    left = rows % cores
    start = block * mine + left
    if block < left:
        mine = mine + 1
        start = block * mine
    length = mine * columns
    x_gm = asc.GlobalTensor()
    y_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + start * columns, length)
    y_gm.set_global_buffer(y + start * columns, length)
    z_gm.set_global_buffer(z + start * columns, length)
    x_local = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, 0, tile)
    y_local = asc.LocalTensor(y.dtype, asc.TPosition.VECCALC, y_at, tile)
    z_local = asc.LocalTensor(z.dtype, asc.TPosition.VECCALC, z_at, tile)
    loops = (length + tile - 1) // tile
    for i in range(loops):
        count = length - i * tile
        if count > most:
            count = most
        if i != 0:
            asc.wait_flag(asc.HardEvent.V_MTE2, 0)
        asc.data_copy(x_local, x_gm[i * tile:], count)
        asc.data_copy(y_local, y_gm[i * tile:], count)
        asc.set_flag(asc.HardEvent.MTE2_V, 0)
        asc.wait_flag(asc.HardEvent.MTE2_V, 0)
        if i != 0:
            asc.wait_flag(asc.HardEvent.MTE3_V, 0)
        if scalar:
            for j in range(count):
                z_local.set_value(j, x_local.get_value(j) + y_local.get_value(j))
        else:
            asc.add(z_local, x_local, y_local, count)
        if i != loops - 1:
            asc.set_flag(asc.HardEvent.V_MTE2, 0)
        asc.set_flag(asc.HardEvent.V_MTE3, 0)
        asc.wait_flag(asc.HardEvent.V_MTE3, 0)
        asc.data_copy(z_gm[i * tile:], z_local, count)
        if i != loops - 1:
            asc.set_flag(asc.HardEvent.MTE3_V, 0)


@asc.jit
def add_two_buffers(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress, rows: int, columns: int,
                    most: int, tile: asc.ConstExpr[int],
                    x0: asc.ConstExpr[int], y0: asc.ConstExpr[int], z0: asc.ConstExpr[int],
                    x1: asc.ConstExpr[int], y1: asc.ConstExpr[int], z1: asc.ConstExpr[int],
                    past: asc.ConstExpr[bool]):
    cores = asc.get_block_num()
    block = asc.get_block_idx()
    mine = rows // cores
    left = rows % cores
    start = block * mine + left
    if block < left:
        mine = mine + 1
        start = block * mine
    length = mine * columns
    x_gm = asc.GlobalTensor()
    y_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + start * columns, length)
    y_gm.set_global_buffer(y + start * columns, length)
    z_gm.set_global_buffer(z + start * columns, length)
    if past:
        x_gm.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
        y_gm.set_l2_cache_hint(asc.CacheMode.CACHE_MODE_DISABLE)
    asc.set_flag(asc.HardEvent.V_MTE2, 0)
    asc.set_flag(asc.HardEvent.V_MTE2, 1)
    asc.set_flag(asc.HardEvent.MTE3_V, 0)
    asc.set_flag(asc.HardEvent.MTE3_V, 1)
    loops = (length + tile - 1) // tile
    for i in range(loops):
        count = length - i * tile
        if count > most:
            count = most
        event = i % 2
        x_local = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, x0 + event * (x1 - x0), tile)
        y_local = asc.LocalTensor(y.dtype, asc.TPosition.VECCALC, y0 + event * (y1 - y0), tile)
        z_local = asc.LocalTensor(z.dtype, asc.TPosition.VECCALC, z0 + event * (z1 - z0), tile)
        asc.wait_flag(asc.HardEvent.V_MTE2, event)
        asc.data_copy(x_local, x_gm[i * tile:], count)
        asc.data_copy(y_local, y_gm[i * tile:], count)
        asc.set_flag(asc.HardEvent.MTE2_V, event)
        asc.wait_flag(asc.HardEvent.MTE2_V, event)
        asc.wait_flag(asc.HardEvent.MTE3_V, event)
        asc.add(z_local, x_local, y_local, count)
        asc.set_flag(asc.HardEvent.V_MTE2, event)
        asc.set_flag(asc.HardEvent.V_MTE3, event)
        asc.wait_flag(asc.HardEvent.V_MTE3, event)
        asc.data_copy(z_gm[i * tile:], z_local, count)
        asc.set_flag(asc.HardEvent.MTE3_V, event)
    asc.wait_flag(asc.HardEvent.V_MTE2, 0)
    asc.wait_flag(asc.HardEvent.V_MTE2, 1)
    asc.wait_flag(asc.HardEvent.MTE3_V, 0)
    asc.wait_flag(asc.HardEvent.MTE3_V, 1)


def arrays(rows: int) -> list[np.ndarray]:
    """x, y and z of `rows` rows; zeros that take no memory until written."""
    return [np.zeros((rows, SIDE), np.float16) for _ in range(3)]


def one_buffer(cores: int, tile: int, rows: int = SIDE, wide: int = WIDE, scalar: bool = False) -> None:
    """Cases 0 to 3: one tile at a time in each core."""
    add_kernel[cores](*arrays(rows), rows, SIDE, tile, tile, wide * 2, wide * 4, scalar)


def two_buffers(cores: int, tile: int, past: bool, wide: int = WIDE) -> None:
    """Cases 4 and 5: two buffers, through the L2 cache or past it."""
    places = [wide * 2 * i for i in range(6)]
    add_two_buffers[cores](*arrays(SIDE), SIDE, SIDE, tile, tile, *places, past)


def friendly_banks(cores: int, tile: int, wide: int = WIDE) -> None:
    """Case 6: as case 5, x and y a half bank row apart, both results behind the inputs."""
    x0, x1, z0 = 0, wide * 4, wide * 8
    places = x0, x0 + tile * 2, z0, x1, x1 + tile * 2, z0 + tile * 2
    add_two_buffers[cores](*arrays(SIDE), SIDE, SIDE, tile, tile, *places, True)
