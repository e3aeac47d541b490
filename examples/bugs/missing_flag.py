"""add_flags with a planted bug: V waits for the copy of x, but no flag says that y is there too."""

import asc
import asc.lib.runtime as rt
import asc.runtime.config as config
import numpy as np

CORES = 8
TILE = 2048


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
    size = tile * x.dtype.sizeof()
    x_local = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, tile)
    y_local = asc.LocalTensor(y.dtype, asc.TPosition.VECIN, size, tile)
    z_local = asc.LocalTensor(z.dtype, asc.TPosition.VECOUT, size + size, tile)
    for i in range(tiles):
        asc.data_copy(x_local, x_gm[i * tile:], tile)
        asc.set_flag(asc.HardEvent.MTE2_V, 0)
        asc.data_copy(y_local, y_gm[i * tile:], tile)
        asc.wait_flag(asc.HardEvent.MTE2_V, 0)
        asc.add(z_local, x_local, y_local, tile)
        asc.set_flag(asc.HardEvent.V_MTE3, 0)
        asc.wait_flag(asc.HardEvent.V_MTE3, 0)
        asc.data_copy(z_gm[i * tile:], z_local, tile)
        asc.pipe_barrier(asc.PipeID.PIPE_ALL)


def main() -> None:
    config.set_platform(config.Backend.Model)
    rng = np.random.default_rng(0)
    x = rng.random(CORES * 4 * TILE, dtype=np.float32)
    y = rng.random(x.size, dtype=np.float32)
    z = np.zeros_like(x)
    block = x.size // CORES
    add_kernel[CORES, rt.current_stream()](x, y, z, block, block // TILE, TILE)
    print(f"missing_flag: largest error {np.abs(z - (x + y)).max()}")


if __name__ == "__main__":
    main()
