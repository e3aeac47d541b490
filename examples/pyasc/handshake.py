"""Vector cores prepare, a cube core multiplies: C = (A + A) @ B, ordered by a cross-core flag.

Each block has one cube core and two vector cores. A vector core doubles its half of A and writes it to a workspace in
global memory, then sets flag 0 in mode 2: when both have, the cube core of the block may read.
"""

import asc
import asc.lib.runtime as rt
import asc.runtime.config as config
import numpy as np

M, K, N = 32, 64, 16
READY = 0


@asc.jit(kernel_type=config.KernelType.MIX_AIC_1_2)
def handshake_kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress, workspace: asc.GlobalAddress,
                     m: asc.ConstExpr[int], k: asc.ConstExpr[int], n: asc.ConstExpr[int]):
    a_gm = asc.GlobalTensor()
    b_gm = asc.GlobalTensor()
    c_gm = asc.GlobalTensor()
    w_gm = asc.GlobalTensor()
    a_gm.set_global_buffer(a)
    b_gm.set_global_buffer(b)
    c_gm.set_global_buffer(c)
    w_gm.set_global_buffer(workspace)
    if asc.ascend_is_aiv():
        half = m * k // 2
        first = asc.get_sub_block_idx() * half
        part = asc.LocalTensor(a.dtype, asc.TPosition.VECIN, 0, half)
        asc.data_copy(part, a_gm[first:], half)
        asc.set_flag(asc.HardEvent.MTE2_V, 0)
        asc.wait_flag(asc.HardEvent.MTE2_V, 0)
        asc.add(part, part, part, half)
        asc.set_flag(asc.HardEvent.V_MTE3, 0)
        asc.wait_flag(asc.HardEvent.V_MTE3, 0)
        asc.data_copy(w_gm[first:], part, half)
        asc.cross_core_set_flag(READY, 2, asc.PipeID.PIPE_MTE3)
    if asc.ascend_is_aic():
        a_l1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, m * k)
        b_l1 = asc.LocalTensor(b.dtype, asc.TPosition.B1, m * k * 2, k * n)
        a_l0 = asc.LocalTensor(a.dtype, asc.TPosition.A2, 0, m * k)
        b_l0 = asc.LocalTensor(b.dtype, asc.TPosition.B2, 0, k * n)
        c_l0 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, m * n)
        asc.cross_core_wait_flag(READY, 2, asc.PipeID.PIPE_MTE2)
        asc.data_copy(a_l1, w_gm, intri_params=asc.Nd2NzParams(1, m, k, 0, k, m, 1, 0))
        asc.data_copy(b_l1, b_gm, intri_params=asc.Nd2NzParams(1, k, n, 0, n, k, 1, 0))
        asc.set_flag(asc.HardEvent.MTE2_MTE1, 0)
        asc.wait_flag(asc.HardEvent.MTE2_MTE1, 0)
        for i in range(m // 16):
            asc.load_data(a_l0[i * k * 16:], a_l1[i * 256:], asc.LoadData2DParams(0, k // 16, m // 16, 0, 0, False, 0))
        for i in range(k // 16):
            asc.load_data(b_l0[i * n * 16:], b_l1[i * 256:], asc.LoadData2DParams(0, n // 16, k // 16, 0, 0, True, 0))
        asc.set_flag(asc.HardEvent.MTE1_M, 0)
        asc.wait_flag(asc.HardEvent.MTE1_M, 0)
        asc.mmad(c_l0, a_l0, b_l0,
                 asc.MmadParams(m=m, n=n, k=k, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))
        asc.set_flag(asc.HardEvent.M_FIX, 0)
        asc.wait_flag(asc.HardEvent.M_FIX, 0)
        asc.fixpipe(c_gm, c_l0, asc.FixpipeParamsV220(n, m, m, n))


def main() -> None:
    config.set_platform(config.Backend.Model)
    rng = np.random.default_rng(4)
    a = rng.standard_normal((M, K)).astype(np.float16)
    b = rng.standard_normal((K, N)).astype(np.float16)
    c = np.zeros((M, N), np.float32)
    workspace = np.zeros((M, K), np.float16)
    handshake_kernel[1, rt.current_stream()](a, b, c, workspace, M, K, N)
    np.testing.assert_allclose(c, (a + a).astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
    print(f"handshake: {M} x {K} x {N} agrees with numpy")


if __name__ == "__main__":
    main()
