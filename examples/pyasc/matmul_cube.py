"""C = A @ B on one cube core: ND to NZ into L1, fractals into L0A and L0B, one Mmad, Fixpipe out as ND."""

import asc
import asc.lib.runtime as rt
import asc.runtime.config as config
import numpy as np

M, K, N = 64, 96, 48


@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def matmul_kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress, m: asc.ConstExpr[int],
                  k: asc.ConstExpr[int], n: asc.ConstExpr[int]):
    a_gm = asc.GlobalTensor()
    b_gm = asc.GlobalTensor()
    c_gm = asc.GlobalTensor()
    a_gm.set_global_buffer(a)
    b_gm.set_global_buffer(b)
    c_gm.set_global_buffer(c)
    a_l1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, m * k)
    b_l1 = asc.LocalTensor(b.dtype, asc.TPosition.B1, m * k * 2, k * n)
    a_l0 = asc.LocalTensor(a.dtype, asc.TPosition.A2, 0, m * k)
    b_l0 = asc.LocalTensor(b.dtype, asc.TPosition.B2, 0, k * n)
    c_l0 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, m * n)
    # GM -> L1: rows become columns of 16 x 16 fractals.
    asc.data_copy(a_l1, a_gm, intri_params=asc.Nd2NzParams(1, m, k, 0, k, m, 1, 0))
    asc.data_copy(b_l1, b_gm, intri_params=asc.Nd2NzParams(1, k, n, 0, n, k, 1, 0))
    asc.set_flag(asc.HardEvent.MTE2_MTE1, 0)
    asc.wait_flag(asc.HardEvent.MTE2_MTE1, 0)
    # L1 -> L0A: one row of fractals after the other; in L1 the next column of a row is m / 16 fractals away.
    for i in range(m // 16):
        asc.load_data(a_l0[i * k * 16:], a_l1[i * 256:], asc.LoadData2DParams(0, k // 16, m // 16, 0, 0, False, 0))
    # L1 -> L0B: as above with each fractal transposed.
    for i in range(k // 16):
        asc.load_data(b_l0[i * n * 16:], b_l1[i * 256:], asc.LoadData2DParams(0, n // 16, k // 16, 0, 0, True, 0))
    asc.set_flag(asc.HardEvent.MTE1_M, 0)
    asc.wait_flag(asc.HardEvent.MTE1_M, 0)
    asc.mmad(c_l0, a_l0, b_l0, asc.MmadParams(m=m, n=n, k=k, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))
    asc.set_flag(asc.HardEvent.M_FIX, 0)
    asc.wait_flag(asc.HardEvent.M_FIX, 0)
    asc.fixpipe(c_gm, c_l0, asc.FixpipeParamsV220(n, m, m, n))


def main() -> None:
    config.set_platform(config.Backend.Model)
    rng = np.random.default_rng(3)
    a = rng.standard_normal((M, K)).astype(np.float16)
    b = rng.standard_normal((K, N)).astype(np.float16)
    c = np.zeros((M, N), np.float32)
    matmul_kernel[1, rt.current_stream()](a, b, c, M, K, N)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
    print(f"matmul_cube: {M} x {K} x {N} agrees with numpy")


if __name__ == "__main__":
    main()
