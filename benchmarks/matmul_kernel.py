"""C = A @ B, 512 x 512 x 512 halves, on 16 cube cores: a tile of 128 x 128 each, k in steps of 128."""

import asc
import asc.runtime.config as config
import numpy as np

SIZE, TILE = 512, 128


@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def matmul_kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress, size: asc.ConstExpr[int],
                  tile: asc.ConstExpr[int]):
    a_gm = asc.GlobalTensor()
    b_gm = asc.GlobalTensor()
    c_gm = asc.GlobalTensor()
    row = asc.get_block_idx() // (size // tile) * tile
    column = asc.get_block_idx() % (size // tile) * tile
    a_gm.set_global_buffer(a + row * size)
    b_gm.set_global_buffer(b + column)
    c_gm.set_global_buffer(c + row * size + column)
    a_l1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, tile * tile)
    b_l1 = asc.LocalTensor(b.dtype, asc.TPosition.B1, tile * tile * 2, tile * tile)
    a_l0 = asc.LocalTensor(a.dtype, asc.TPosition.A2, 0, tile * tile)
    b_l0 = asc.LocalTensor(b.dtype, asc.TPosition.B2, 0, tile * tile)
    c_l0 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, tile * tile)
    for step in range(size // tile):
        asc.data_copy(a_l1, a_gm[step * tile:], intri_params=asc.Nd2NzParams(1, tile, tile, 0, size, tile, 1, 0))
        asc.data_copy(b_l1, b_gm[step * tile * size:], intri_params=asc.Nd2NzParams(1, tile, tile, 0, size, tile, 1, 0))
        asc.set_flag(asc.HardEvent.MTE2_MTE1, 0)
        asc.wait_flag(asc.HardEvent.MTE2_MTE1, 0)
        for i in range(tile // 16):
            asc.load_data(a_l0[i * tile * 16:], a_l1[i * 256:],
                          asc.LoadData2DParams(0, tile // 16, tile // 16, 0, 0, False, 0))
            asc.load_data(b_l0[i * tile * 16:], b_l1[i * 256:],
                          asc.LoadData2DParams(0, tile // 16, tile // 16, 0, 0, True, 0))
        asc.set_flag(asc.HardEvent.MTE1_M, 0)
        asc.wait_flag(asc.HardEvent.MTE1_M, 0)
        asc.set_flag(asc.HardEvent.MTE1_MTE2, 0)
        asc.wait_flag(asc.HardEvent.MTE1_MTE2, 0)
        asc.mmad(c_l0, a_l0, b_l0, asc.MmadParams(m=tile, n=tile, k=tile, unit_flag=0, cmatrix_source=False,
                                                  cmatrix_init_val=step == 0))
        asc.set_flag(asc.HardEvent.M_MTE1, 0)
        asc.wait_flag(asc.HardEvent.M_MTE1, 0)
    asc.set_flag(asc.HardEvent.M_FIX, 0)
    asc.wait_flag(asc.HardEvent.M_FIX, 0)
    asc.fixpipe(c_gm, c_l0, asc.FixpipeParamsV220(tile, tile, tile, size))


def prepare() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a, b random, c zero."""
    config.set_platform(config.Backend.Model)
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((SIZE, SIZE)).astype(np.float16) for _ in range(2))
    return a, b, np.zeros((SIZE, SIZE), np.float32)


def launch(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """One launch."""
    matmul_kernel[(SIZE // TILE) ** 2](a, b, c, SIZE, TILE)


def right(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> bool:
    """Whether c is what numpy says."""
    return np.allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-2, atol=1e-2)
