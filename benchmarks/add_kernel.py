"""The kernel of the speed figures: z = x + y over 4 Mi floats on 8 cores, explicit flags, tiles that fill UB."""

import asc
import asc.runtime.config as config
import numpy as np

CORES = 8
LENGTH = 1 << 22
TILE = 16384
BUFFERS = 1


@asc.jit
def add_kernel(x: asc.GlobalAddress, y: asc.GlobalAddress, z: asc.GlobalAddress, block: int, tiles: int,
               tile: asc.ConstExpr[int]):
    start = asc.get_block_idx() * block
    x_gm = asc.GlobalTensor()
    y_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x + start, block)
    y_gm.set_global_buffer(y + start, block)
    z_gm.set_global_buffer(z + start, block)
    size = tile * BUFFERS * x.dtype.sizeof()
    x_local = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, tile * BUFFERS)
    y_local = asc.LocalTensor(y.dtype, asc.TPosition.VECIN, size, tile * BUFFERS)
    z_local = asc.LocalTensor(z.dtype, asc.TPosition.VECOUT, size + size, tile * BUFFERS)
    for i in range(tiles):
        buffer = i % BUFFERS
        asc.data_copy(x_local[buffer * tile:], x_gm[i * tile:], tile)
        asc.data_copy(y_local[buffer * tile:], y_gm[i * tile:], tile)
        asc.set_flag(asc.HardEvent.MTE2_V, buffer)
        asc.wait_flag(asc.HardEvent.MTE2_V, buffer)
        asc.add(z_local[buffer * tile:], x_local[buffer * tile:], y_local[buffer * tile:], tile)
        asc.set_flag(asc.HardEvent.V_MTE3, buffer)
        asc.wait_flag(asc.HardEvent.V_MTE3, buffer)
        asc.data_copy(z_gm[i * tile:], z_local[buffer * tile:], tile)
        asc.set_flag(asc.HardEvent.MTE3_MTE2, buffer)
        asc.wait_flag(asc.HardEvent.MTE3_MTE2, buffer)


def prepare() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, y random, z zero."""
    config.set_platform(config.Backend.Model)
    rng = np.random.default_rng(0)
    x, y = rng.random(LENGTH, dtype=np.float32), rng.random(LENGTH, dtype=np.float32)
    return x, y, np.zeros_like(x)


def launch(x: np.ndarray, y: np.ndarray, z: np.ndarray, tile: int = TILE) -> None:
    """One launch, in tiles of `tile` elements."""
    block = LENGTH // CORES
    add_kernel[CORES](x, y, z, block, block // tile, tile)


def plain(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
    """The same tile by tile in numpy: two copies in, an add, a copy out."""
    a, b, c = (np.empty(TILE, np.float32) for _ in range(3))
    for first in range(0, LENGTH, TILE):
        a[:] = x[first : first + TILE]
        b[:] = y[first : first + TILE]
        np.add(a, b, out=c)
        z[first : first + TILE] = c
