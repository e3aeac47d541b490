"""softmax_rows with a planted bug: the work buffer is half as long as the reductions and copies that use it."""

import asc
import asc.lib.runtime as rt
import asc.runtime.config as config
import numpy as np

CORES = 4
WIDTH = 256


@asc.jit
def softmax_kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, rows: int, width: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    z_gm = asc.GlobalTensor()
    first = asc.get_block_idx() * rows * width
    x_gm.set_global_buffer(x + first)
    z_gm.set_global_buffer(z + first)
    size = width * x.dtype.sizeof()
    x_local = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, width)
    z_local = asc.LocalTensor(x.dtype, asc.TPosition.VECOUT, size, width)
    work = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, size + size, width // 2)
    peak = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, size + size + size // 2, 8)
    for row in range(rows):
        asc.data_copy(x_local, x_gm[row * width:], width)
        asc.set_flag(asc.HardEvent.MTE2_V, 0)
        asc.wait_flag(asc.HardEvent.MTE2_V, 0)
        asc.muls(work, x_local, 1.0, count=width)  # runs on into peak
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.reduce_max(peak, x_local, work, count=width)
        asc.set_flag(asc.HardEvent.V_S, 0)
        asc.wait_flag(asc.HardEvent.V_S, 0)
        top = peak.get_value(0)
        asc.set_flag(asc.HardEvent.S_V, 0)
        asc.wait_flag(asc.HardEvent.S_V, 0)
        asc.adds(z_local, x_local, 0.0 - top, count=width)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.exp(z_local, z_local, count=width)
        asc.pipe_barrier(asc.PipeID.PIPE_V)
        asc.reduce_sum(peak, z_local, work, count=width)
        asc.set_flag(asc.HardEvent.V_S, 0)
        asc.wait_flag(asc.HardEvent.V_S, 0)
        total = peak.get_value(0)
        asc.set_flag(asc.HardEvent.S_V, 0)
        asc.wait_flag(asc.HardEvent.S_V, 0)
        asc.muls(z_local, z_local, 1.0 / total, count=width)
        asc.set_flag(asc.HardEvent.V_MTE3, 0)
        asc.wait_flag(asc.HardEvent.V_MTE3, 0)
        asc.data_copy(z_gm[row * width:], z_local, width)
        asc.set_flag(asc.HardEvent.MTE3_MTE2, 0)
        asc.wait_flag(asc.HardEvent.MTE3_MTE2, 0)


def main() -> None:
    config.set_platform(config.Backend.Model)
    rng = np.random.default_rng(2)
    x = (rng.random((CORES * 4, WIDTH), dtype=np.float32) - 0.5) * 20
    z = np.zeros_like(x)
    softmax_kernel[CORES, rt.current_stream()](x, z, x.shape[0] // CORES, WIDTH)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    worst = np.abs(z - powers / powers.sum(axis=1, keepdims=True)).max()
    print(f"ub_overrun: largest error {worst}")


if __name__ == "__main__":
    main()
