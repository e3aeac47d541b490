"""leaky_relu(A @ B + bias): the Matmul object on the cube cores, the activation on the vector cores, tile by tile."""

import asc
import asc.lib.host as host
import asc.lib.runtime as rt
import asc.runtime.config as config
import numpy as np

M, K, N = 256, 128, 256
ALPHA = 0.01


@asc.jit(always_compile=True)
def matmul_relu_kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, bias: asc.GlobalAddress, c: asc.GlobalAddress,
                       tiling: asc.adv.TCubeTiling, workspace: asc.GlobalAddress, alpha: float):
    block = asc.get_block_idx()
    rows = tiling.m.ceildiv(tiling.single_core_m)
    row = block % rows
    column = block // rows
    a_gm = asc.GlobalTensor()
    b_gm = asc.GlobalTensor()
    bias_gm = asc.GlobalTensor()
    c_gm = asc.GlobalTensor()
    a_gm.set_global_buffer(a + row * tiling.single_core_m * tiling.k_a)
    b_gm.set_global_buffer(b + column * tiling.single_core_n)
    bias_gm.set_global_buffer(bias + column * tiling.single_core_n)
    c_gm.set_global_buffer(c + row * tiling.single_core_m * tiling.n + column * tiling.single_core_n)
    pipe = asc.TPipe()
    tiles = asc.TQue(asc.TPosition.VECOUT, 1)
    pipe.init_buffer(tiles, 1, tiling.base_m * tiling.base_n * c.dtype.sizeof())
    matmul = asc.adv.Matmul(
        a=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, a_gm.dtype),
        b=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, b_gm.dtype),
        c=asc.adv.MatmulType(asc.TPosition.VECCALC, asc.CubeFormat.ND, c_gm.dtype),
        bias=asc.adv.MatmulType(asc.TPosition.GM, asc.CubeFormat.ND, bias_gm.dtype),
    )
    asc.adv.register_matmul(pipe, workspace, matmul, tiling)
    matmul.set_tensor_a(a_gm)
    matmul.set_tensor_b(b_gm)
    matmul.set_bias(bias_gm)
    down = tiling.single_core_m // tiling.base_m
    with matmul.iterate() as count:
        tile = tiles.alloc_tensor(c.dtype)
        matmul.get_tensor_c(tile, en_sequential_write=True)
        asc.leaky_relu(tile, tile, alpha, count=tiling.base_m * tiling.base_n)
        tiles.enque(tile)
        ready = tiles.deque(c.dtype)
        first = count % down * tiling.base_m * tiling.n + count // down * tiling.base_n
        row_blocks = tiling.base_n * c.dtype.sizeof() // 32
        gap_blocks = (tiling.n - tiling.base_n) * c.dtype.sizeof() // 32
        asc.data_copy(c_gm[first:], ready,
                      repeat_params=asc.DataCopyParams(tiling.base_m, row_blocks, 0, gap_blocks))
        tiles.free_tensor(ready)
    matmul.end()


def tiling_of(m: int, k: int, n: int) -> asc.adv.TCubeTiling:
    plan = host.MultiCoreMatmulTiling(host.get_ascendc_platform())
    plan.set_a_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT16, False)
    plan.set_b_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT16, False)
    plan.set_c_type(host.TPosition.VECCALC, host.CubeFormat.ND, host.DataType.DT_FLOAT)
    plan.set_bias_type(host.TPosition.GM, host.CubeFormat.ND, host.DataType.DT_FLOAT)
    plan.set_dim(4)
    plan.set_org_shape(m, n, k)
    plan.set_shape(m, n, k)
    plan.enable_bias(True)
    plan.set_traverse(host.MatrixTraverse.FIRSTM)
    plan.set_fix_split(64, 64, -1)
    plan.set_buffer_space(-1, -1, -1)
    tiling = asc.adv.TCubeTiling()
    if plan.get_tiling(tiling) != 0:
        raise RuntimeError("no tiling for this shape")
    return tiling


def main() -> None:
    config.set_platform(config.Backend.Model)
    rng = np.random.default_rng(5)
    a = rng.standard_normal((M, K)).astype(np.float16)
    b = rng.standard_normal((K, N)).astype(np.float16)
    bias = rng.standard_normal(N).astype(np.float32)
    c = np.zeros((M, N), np.float32)
    workspace = np.zeros(1 << 20, np.uint8)
    tiling = tiling_of(M, K, N)
    matmul_relu_kernel[tiling.used_core_num // 2, rt.current_stream()](a, b, bias, c, tiling, workspace, ALPHA)
    product = a.astype(np.float32) @ b.astype(np.float32) + bias
    np.testing.assert_allclose(c, np.where(product > 0, product, product * ALPHA), rtol=1e-3, atol=1e-3)
    print(f"matmul_leaky_relu: {M} x {K} x {N} agrees with numpy")


if __name__ == "__main__":
    main()
