"""add_queues with a planted bug: the x buffer goes back to its queue before it was added."""

import asc
import asc.lib.runtime as rt
import asc.runtime.config as config
import numpy as np

CORES = 8
TILE = 1024
BUFFERS = 2


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
    pipe = asc.TPipe()
    x_queue = asc.TQue(asc.TPosition.VECIN, BUFFERS)
    y_queue = asc.TQue(asc.TPosition.VECIN, BUFFERS)
    z_queue = asc.TQue(asc.TPosition.VECOUT, BUFFERS)
    pipe.init_buffer(x_queue, BUFFERS, tile * x.dtype.sizeof())
    pipe.init_buffer(y_queue, BUFFERS, tile * y.dtype.sizeof())
    pipe.init_buffer(z_queue, BUFFERS, tile * z.dtype.sizeof())
    for i in range(tiles):
        x_local = x_queue.alloc_tensor(x.dtype)
        y_local = y_queue.alloc_tensor(y.dtype)
        asc.data_copy(x_local, x_gm[i * tile:], tile)
        asc.data_copy(y_local, y_gm[i * tile:], tile)
        x_queue.enque(x_local)
        y_queue.enque(y_local)
        x_ready = x_queue.deque(x.dtype)
        y_ready = y_queue.deque(y.dtype)
        z_local = z_queue.alloc_tensor(z.dtype)
        x_queue.free_tensor(x_ready)  # too early
        asc.add(z_local, x_ready, y_ready, tile)
        z_queue.enque(z_local)
        y_queue.free_tensor(y_ready)
        z_ready = z_queue.deque(z.dtype)
        asc.data_copy(z_gm[i * tile:], z_ready, tile)
        z_queue.free_tensor(z_ready)


def main() -> None:
    config.set_platform(config.Backend.Model)
    rng = np.random.default_rng(1)
    x = rng.random(CORES * 4 * TILE, dtype=np.float32)
    y = rng.random(x.size, dtype=np.float32)
    z = np.zeros_like(x)
    block = x.size // CORES
    add_kernel[CORES, rt.current_stream()](x, y, z, block, block // TILE, TILE)
    print(f"freed_buffer: largest error {np.abs(z - (x + y)).max()}")


if __name__ == "__main__":
    main()
