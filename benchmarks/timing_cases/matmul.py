"""C = A @ B.T in halves by single instructions: two buffers in L1 and L0, large packets, unit flags."""

import asc
import asc.runtime.config as config
import numpy as np

DEPTH = 8192


@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def matmul_kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress, down: int, k: int, n: int,
                  mine_m: int, mine_n: int, rounds: int, base_m: asc.ConstExpr[int], base_n: asc.ConstExpr[int],
                  base_k: asc.ConstExpr[int], step_a: asc.ConstExpr[int], step_b: asc.ConstExpr[int],
                  new: asc.ConstExpr[bool], units: asc.ConstExpr[bool]):
    a_gm = asc.GlobalTensor()
    b_gm = asc.GlobalTensor()
    c_gm = asc.GlobalTensor()
    a_gm.set_global_buffer(a)
    b_gm.set_global_buffer(b)
    c_gm.set_global_buffer(c)
    block = asc.get_block_idx()
    a_bytes = base_m * base_k * step_a * 2
    b_bytes = base_n * base_k * step_b * 2
    c_l0 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, base_m * base_n)
    steps = k // base_k
    for outer in range(rounds):
        row0 = (block % down + outer * down) * mine_m
        column0 = block // down * mine_n
        asc.set_flag(asc.HardEvent.MTE1_MTE2, 0)
        asc.set_flag(asc.HardEvent.MTE1_MTE2, 1)
        asc.set_flag(asc.HardEvent.MTE1_MTE2, 2)
        asc.set_flag(asc.HardEvent.MTE1_MTE2, 3)
        asc.set_flag(asc.HardEvent.M_MTE1, 0)
        asc.set_flag(asc.HardEvent.M_MTE1, 1)
        columns_here = n - column0
        if columns_here > mine_n:
            columns_here = mine_n
        for right in range((columns_here + base_n - 1) // base_n):
            for lower in range(mine_m // base_m):
                row = row0 + lower * base_m
                column = column0 + right * base_n
                asc.wait_flag(asc.HardEvent.MTE1_MTE2, 0)
                asc.data_copy(asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, a_bytes // 2), a_gm[row * k:],
                              intri_params=asc.Nd2NzParams(1, base_m, base_k * step_a, 0, k, base_m, 1, 0))
                asc.set_flag(asc.HardEvent.MTE2_MTE1, 0)
                asc.wait_flag(asc.HardEvent.MTE1_MTE2, 2)
                asc.data_copy(asc.LocalTensor(b.dtype, asc.TPosition.B1, 262144, b_bytes // 2), b_gm[column * k:],
                              intri_params=asc.Nd2NzParams(1, base_n, base_k * step_b, 0, k, base_n, 1, 0))
                asc.set_flag(asc.HardEvent.MTE2_MTE1, 2)
                for step in range(steps):
                    flip = step % 2
                    a_side = step // step_a % 2
                    b_side = step // step_b % 2
                    a_in = step % step_a
                    b_in = step % step_b
                    a_l1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, a_side * a_bytes, a_bytes // 2)
                    b_l1 = asc.LocalTensor(b.dtype, asc.TPosition.B1, 262144 + b_side * b_bytes, b_bytes // 2)
                    a_l0 = asc.LocalTensor(a.dtype, asc.TPosition.A2, flip * 32768, base_m * base_k)
                    b_l0 = asc.LocalTensor(b.dtype, asc.TPosition.B2, flip * 32768, base_n * base_k)
                    asc.wait_flag(asc.HardEvent.M_MTE1, flip)
                    if a_in == 0:
                        asc.wait_flag(asc.HardEvent.MTE2_MTE1, a_side)
                    if b_in == 0:
                        asc.wait_flag(asc.HardEvent.MTE2_MTE1, b_side + 2)
                    if new:
                        asc.load_data(a_l0, a_l1[a_in * base_k * base_m:],
                                      asc.LoadData2DParamsV2(0, 0, base_m // 16, base_k // 16, base_m // 16,
                                                             base_m // 16, False, 0))
                        asc.load_data(b_l0, b_l1[b_in * base_k * base_n:],
                                      asc.LoadData2DParamsV2(0, 0, base_n // 16, base_k // 16, base_n // 16,
                                                             base_n // 16, False, 0))
                    else:
                        asc.load_data(a_l0, a_l1[a_in * base_k * base_m:],
                                      asc.LoadData3DParamsV2((0, 0, 0, 0), 1, base_m, base_k, base_k, base_m))
                        for part in range(base_k // 16):
                            asc.load_data(b_l0[part * base_n * 16:], b_l1[b_in * base_k * base_n + part * base_n * 16:],
                                          asc.LoadData2DParams(0, base_n // 16, 1, 0, 0, False, 0))
                    if a_in + 1 == step_a:
                        asc.set_flag(asc.HardEvent.MTE1_MTE2, a_side)
                    if b_in + 1 == step_b:
                        asc.set_flag(asc.HardEvent.MTE1_MTE2, b_side + 2)
                    asc.set_flag(asc.HardEvent.MTE1_M, flip)
                    asc.wait_flag(asc.HardEvent.MTE1_M, flip)
                    unit = 0
                    if units:
                        unit = 2 + (step + 1) // steps
                    asc.mmad(c_l0, a_l0, b_l0, asc.MmadParams(m=base_m, n=base_n, k=base_k, unit_flag=unit,
                                                              cmatrix_source=False, cmatrix_init_val=step == 0))
                    asc.set_flag(asc.HardEvent.M_MTE1, flip)
                    b_next = (step // step_b + 2) * step_b
                    if step == 0:
                        b_next = b_next - step_b
                    if (step == 0 or b_in + 1 == step_b) and b_next < steps:
                        side = b_next // step_b % 2
                        asc.wait_flag(asc.HardEvent.MTE1_MTE2, side + 2)
                        asc.data_copy(asc.LocalTensor(b.dtype, asc.TPosition.B1, 262144 + side * b_bytes, b_bytes // 2),
                                      b_gm[column * k + b_next * base_k:],
                                      intri_params=asc.Nd2NzParams(1, base_n, base_k * step_b, 0, k, base_n, 1, 0))
                        asc.set_flag(asc.HardEvent.MTE2_MTE1, side + 2)
                    a_next = (step // step_a + 2) * step_a
                    if step == 0:
                        a_next = a_next - step_a
                    if (step == 0 or a_in + 1 == step_a) and a_next < steps:
                        side = a_next // step_a % 2
                        asc.wait_flag(asc.HardEvent.MTE1_MTE2, side)
                        asc.data_copy(asc.LocalTensor(a.dtype, asc.TPosition.A1, side * a_bytes, a_bytes // 2),
                                      a_gm[row * k + a_next * base_k:],
                                      intri_params=asc.Nd2NzParams(1, base_m, base_k * step_a, 0, k, base_m, 1, 0))
                        asc.set_flag(asc.HardEvent.MTE2_MTE1, side)
                if units:
                    asc.fixpipe(c_gm[row * n + column:], c_l0,
                                asc.FixpipeParamsV220(base_n, base_m, base_m, n, quant_pre=asc.QuantModes.F322F16,
                                                      unit_flag=3))
                else:
                    asc.set_flag(asc.HardEvent.M_FIX, 0)
                    asc.wait_flag(asc.HardEvent.M_FIX, 0)
                    asc.fixpipe(c_gm[row * n + column:], c_l0,
                                asc.FixpipeParamsV220(base_n, base_m, base_m, n, quant_pre=asc.QuantModes.F322F16))
                    asc.set_flag(asc.HardEvent.FIX_M, 0)
                    asc.wait_flag(asc.HardEvent.FIX_M, 0)
        asc.wait_flag(asc.HardEvent.M_MTE1, 0)
        asc.wait_flag(asc.HardEvent.M_MTE1, 1)
        asc.wait_flag(asc.HardEvent.MTE1_MTE2, 0)
        asc.wait_flag(asc.HardEvent.MTE1_MTE2, 1)
        asc.wait_flag(asc.HardEvent.MTE1_MTE2, 2)
        asc.wait_flag(asc.HardEvent.MTE1_MTE2, 3)


def matmul(cores: int, base_m: int, steps: tuple[int, int], blocks: int, new: bool, units: bool = True) -> None:
    """`blocks` blocks of `base_m` x 256 one below the other on each core of the 8192 cube: four cores down, the others
    across. `steps` are the base blocks along K that a packet of A and of B holds."""
    across = cores // 4
    mine = base_m * blocks
    a, b = np.zeros((4 * mine, DEPTH), np.float16), np.zeros((256 * across, DEPTH), np.float16)
    c = np.zeros((4 * mine, 256 * across), np.float16)
    matmul_kernel[cores](a, b, c, 4, DEPTH, 256 * across, mine, 256, 1, base_m, 256, 64, *steps, new, units)


@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def plain_kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress, down: int, k: int, depth: int,
                 n: int, mine_m: int, base_m: asc.ConstExpr[int], base_n: asc.ConstExpr[int],
                 base_k: asc.ConstExpr[int], new: asc.ConstExpr[bool]):
    a_gm = asc.GlobalTensor()
    b_gm = asc.GlobalTensor()
    c_gm = asc.GlobalTensor()
    a_gm.set_global_buffer(a)
    b_gm.set_global_buffer(b)
    c_gm.set_global_buffer(c)
    block = asc.get_block_idx()
    a_l1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, base_m * base_k)
    b_l1 = asc.LocalTensor(b.dtype, asc.TPosition.B1, 262144, base_n * base_k)
    c_l0 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, base_m * base_n)
    column = block // down * base_n
    asc.set_flag(asc.HardEvent.MTE1_MTE2, 0)
    asc.set_flag(asc.HardEvent.MTE1_MTE2, 1)
    asc.set_flag(asc.HardEvent.M_MTE1, 0)
    asc.set_flag(asc.HardEvent.M_MTE1, 1)
    for lower in range(mine_m // base_m):
        row = block % down * mine_m + lower * base_m
        for step in range(depth // base_k):
            flip = step % 2
            a_l0 = asc.LocalTensor(a.dtype, asc.TPosition.A2, flip * 32768, base_m * base_k)
            b_l0 = asc.LocalTensor(b.dtype, asc.TPosition.B2, flip * 32768, base_n * base_k)
            asc.wait_flag(asc.HardEvent.MTE1_MTE2, 0)
            asc.data_copy(a_l1, a_gm[row * k + step * base_k:],
                          intri_params=asc.Nd2NzParams(1, base_m, base_k, 0, k, base_m, 1, 0))
            asc.set_flag(asc.HardEvent.MTE2_MTE1, 0)
            asc.wait_flag(asc.HardEvent.MTE1_MTE2, 1)
            asc.data_copy(b_l1, b_gm[column * k + step * base_k:],
                          intri_params=asc.Nd2NzParams(1, base_n, base_k, 0, k, base_n, 1, 0))
            asc.set_flag(asc.HardEvent.MTE2_MTE1, 1)
            asc.wait_flag(asc.HardEvent.M_MTE1, flip)
            asc.wait_flag(asc.HardEvent.MTE2_MTE1, 0)
            asc.wait_flag(asc.HardEvent.MTE2_MTE1, 1)
            if new:
                asc.load_data(a_l0, a_l1, asc.LoadData2DParamsV2(0, 0, base_m // 16, base_k // 16, base_m // 16,
                                                                 base_m // 16, False, 0))
                asc.load_data(b_l0, b_l1, asc.LoadData2DParamsV2(0, 0, base_n // 16, base_k // 16, base_n // 16,
                                                                 base_n // 16, False, 0))
            else:
                asc.load_data(a_l0, a_l1, asc.LoadData3DParamsV2((0, 0, 0, 0), 1, base_m, base_k, base_k, base_m))
                asc.load_data(b_l0, b_l1, asc.LoadData2DParams(0, base_n * base_k // 256, 1, 0, 0, False, 0))
            asc.set_flag(asc.HardEvent.MTE1_MTE2, 0)
            asc.set_flag(asc.HardEvent.MTE1_MTE2, 1)
            asc.set_flag(asc.HardEvent.MTE1_M, flip)
            asc.wait_flag(asc.HardEvent.MTE1_M, flip)
            asc.mmad(c_l0, a_l0, b_l0, asc.MmadParams(m=base_m, n=base_n, k=base_k, unit_flag=0, cmatrix_source=False,
                                                      cmatrix_init_val=step == 0))
            asc.set_flag(asc.HardEvent.M_MTE1, flip)
        asc.set_flag(asc.HardEvent.M_FIX, 0)
        asc.wait_flag(asc.HardEvent.M_FIX, 0)
        asc.fixpipe(c_gm[row * n + column:], c_l0,
                    asc.FixpipeParamsV220(base_n, base_m, base_m, n, quant_pre=asc.QuantModes.F322F16, unit_flag=0))
        asc.set_flag(asc.HardEvent.FIX_M, 0)
        asc.wait_flag(asc.HardEvent.FIX_M, 0)
    asc.wait_flag(asc.HardEvent.M_MTE1, 0)
    asc.wait_flag(asc.HardEvent.M_MTE1, 1)
    asc.wait_flag(asc.HardEvent.MTE1_MTE2, 0)
    asc.wait_flag(asc.HardEvent.MTE1_MTE2, 1)


def plain(cores: int, base_m: int, base_n: int, blocks: int, depth: int, new: bool) -> None:
    """`blocks` blocks one below the other on each core, `depth` of their 8192 along K, one buffer for each operand in
    L1: what the Matmul object does with depths of one. Its loads and its copies do not overlap, which its published
    times show: they are the sums of both."""
    down = 4 if cores > 1 else 1
    across = cores // down
    mine = base_m * blocks
    a, b = np.zeros((down * mine, DEPTH), np.float16), np.zeros((base_n * across, DEPTH), np.float16)
    c = np.zeros((down * mine, base_n * across), np.float16)
    plain_kernel[cores](a, b, c, down, DEPTH, depth, base_n * across, mine, base_m, base_n, 64, new)


@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def products_kernel(c: asc.GlobalAddress, m: asc.ConstExpr[int], n: asc.ConstExpr[int], k: asc.ConstExpr[int]):
    c_gm = asc.GlobalTensor()
    c_gm.set_global_buffer(c)
    a_l0 = asc.LocalTensor(c.dtype, asc.TPosition.A2, 0, m * k)
    b_l0 = asc.LocalTensor(c.dtype, asc.TPosition.B2, 0, n * k)
    c_l0 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, m * n)
    for i in range(8):
        asc.mmad(c_l0, a_l0, b_l0, asc.MmadParams(m=m, n=n, k=k, unit_flag=0, cmatrix_source=False,
                                                  cmatrix_init_val=i == 0))


def products(m: int, n: int, k: int) -> None:
    """Eight Mmads one after the other."""
    products_kernel[1](np.zeros((m, n), np.float16), m, n, k)
