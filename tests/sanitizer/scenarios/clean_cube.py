"""Patterns of cube cores, and of cube and vector cores together, that must be silent (sanitizer.md 6.5).

Not expressible: SyncAll of all cores (sync_all(is_aiv_only=False) of pyasc 1.1 raises TypeError in its own builder);
C06-mixed makes the same rendezvous of flags.
"""

from __future__ import annotations

from scenarios.model import Scenario, repaired
from scenarios.race_cross import RING

LOADS = """
@asc.jit
def load(a2: asc.LocalTensor, b2: asc.LocalTensor, a1: asc.LocalTensor, b1: asc.LocalTensor):
    for j in range(2):
        asc.load_data(a2[j * 512:], a1[j * 256:], asc.LoadData2DParams(0, 2, 2, 0, 0, False, 0))
        asc.load_data(b2[j * 512:], b1[j * 256:], asc.LoadData2DParams(0, 2, 2, 0, 0, True, 0))
"""

PING_PONG = LOADS + """
@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress, steps: int):
    block = asc.get_block_idx()
    a_gm = gm(a)
    b_gm = gm(b)
    c_gm = gm(c + block * 1024)
    a1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, 2048)
    b1 = asc.LocalTensor(a.dtype, asc.TPosition.B1, 4096, 2048)
    a2 = asc.LocalTensor(a.dtype, asc.TPosition.A2, 0, 2048)
    b2 = asc.LocalTensor(a.dtype, asc.TPosition.B2, 0, 2048)
    c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 1024)
    for slot in range(2):
        set(MTE1_MTE2, slot)
        set(M_MTE1, slot)
    for i in range(steps):
        slot = i % 2
        at = slot * 1024
        wait(MTE1_MTE2, slot)
        asc.data_copy(a1[at:], a_gm[i * 32:], intri_params=asc.Nd2NzParams(1, 32, 32, 0, 128, 32, 1, 0))
        asc.data_copy(b1[at:], b_gm[i * 1024:], intri_params=asc.Nd2NzParams(1, 32, 32, 0, 32, 32, 1, 0))
        sync(MTE2_MTE1, slot)
        wait(M_MTE1, slot)
        load(a2[at:], b2[at:], a1[at:], b1[at:])
        set(MTE1_MTE2, slot)
        sync(MTE1_M, slot)
        asc.mmad(c1, a2[at:], b2[at:], asc.MmadParams(m=32, n=32, k=32, unit_flag=0, cmatrix_source=False, cmatrix_init_val=i == 0))
        asc.pipe_barrier(asc.PipeID.PIPE_M)
        set(M_MTE1, slot)
    for slot in range(2):
        wait(MTE1_MTE2, slot)
        wait(M_MTE1, slot)
    sync(M_FIX, 0)
    asc.fixpipe(c_gm, c1, asc.FixpipeParamsV220(32, 32, 32, 32, relu_en=True))

rng = np.random.default_rng(0)
a = rng.integers(-3, 4, (32, 128)).astype(np.float16)
b = rng.integers(-3, 4, (128, 32)).astype(np.float16)
c = np.zeros((2, 32, 32), np.float32)
kernel[2](a, b, c, 4)
assert (c == np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0)).all()
"""

LARGE = """
@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress):
    a_gm = gm(a)
    b_gm = gm(b)
    c_gm = gm(c)
    a1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, 2048)
    b1 = asc.LocalTensor(a.dtype, asc.TPosition.B1, 8192, 2048)
    a2 = asc.LocalTensor(a.dtype, asc.TPosition.A2, 0, 2048)
    b2 = asc.LocalTensor(a.dtype, asc.TPosition.B2, 0, 2048)
    c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 4096)
    asc.data_copy(a1, a_gm, intri_params=asc.Nd2NzParams(1, 64, 32, 0, 32, 64, 1, 0))
    asc.data_copy(b1, b_gm, intri_params=asc.Nd2NzParams(1, 32, 64, 0, 64, 32, 1, 0))
    sync(MTE2_MTE1, 0)
    for i in range(2):
        asc.load_data(a2[i * 1024:], a1[i * 1024:], asc.LoadData2DParams(0, 4, 1, 0, 0, False, 0))
        asc.load_data(b2[i * 1024:], b1[i * 256:], asc.LoadData2DParams(0, 4, 2, 0, 0, True, 0))
    sync(MTE1_M, 0)
    for i in range(2):
        asc.mmad(c1, a2[i * 1024:], b2[i * 1024:], asc.MmadParams(m=64, n=64, k=16, unit_flag=0, cmatrix_source=False, cmatrix_init_val=i == 0))
    sync(M_FIX, 0)
    asc.fixpipe(c_gm, c1, asc.FixpipeParamsV220(64, 64, 64, 64))

rng = np.random.default_rng(0)
a = rng.integers(-3, 4, (64, 32)).astype(np.float16)
b = rng.integers(-3, 4, (32, 64)).astype(np.float16)
c = np.zeros((64, 64), np.float32)
kernel[1](a, b, c)
assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()
"""

SPLIT_K = LOADS + """
@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress):
    block = asc.get_block_idx()
    a_gm = gm(a + block * 32)
    b_gm = gm(b + block * 1024)
    c_gm = gm(c)
    a1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, 1024)
    b1 = asc.LocalTensor(a.dtype, asc.TPosition.B1, 4096, 1024)
    a2 = asc.LocalTensor(a.dtype, asc.TPosition.A2, 0, 1024)
    b2 = asc.LocalTensor(a.dtype, asc.TPosition.B2, 0, 1024)
    c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 1024)
    asc.data_copy(a1, a_gm, intri_params=asc.Nd2NzParams(1, 32, 32, 0, 128, 32, 1, 0))
    asc.data_copy(b1, b_gm, intri_params=asc.Nd2NzParams(1, 32, 32, 0, 32, 32, 1, 0))
    sync(MTE2_MTE1, 0)
    load(a2, b2, a1, b1)
    sync(MTE1_M, 0)
    asc.mmad(c1, a2, b2, asc.MmadParams(m=32, n=32, k=32, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))
    sync(M_FIX, 0)
    asc.set_atomic_add(asc.float32)
    asc.fixpipe(c_gm, c1, asc.FixpipeParamsV220(32, 32, 32, 32))
    asc.set_atomic_none()

rng = np.random.default_rng(0)
a = rng.integers(-3, 4, (32, 128)).astype(np.float16)
b = rng.integers(-3, 4, (128, 32)).astype(np.float16)
c = np.zeros((32, 32), np.float32)
kernel[4](a, b, c)
assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()
"""

ATTENTION = LOADS + """
@asc.jit
def product(c_gm: asc.GlobalTensor, a_gm: asc.GlobalTensor, b_gm: asc.GlobalTensor, a1: asc.LocalTensor, b1: asc.LocalTensor,
            a2: asc.LocalTensor, b2: asc.LocalTensor, c1: asc.LocalTensor):
    asc.data_copy(a1, a_gm, intri_params=asc.Nd2NzParams(1, 32, 32, 0, 32, 32, 1, 0))
    asc.data_copy(b1, b_gm, intri_params=asc.Nd2NzParams(1, 32, 32, 0, 32, 32, 1, 0))
    sync(MTE2_MTE1, 0)
    load(a2, b2, a1, b1)
    sync(MTE1_M, 0)
    asc.mmad(c1, a2, b2, asc.MmadParams(m=32, n=32, k=32, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))
    sync(M_FIX, 0)
    asc.fixpipe(c_gm, c1, asc.FixpipeParamsV220(32, 32, 32, 32))
    sync(FIX_M, 0)
    sync(M_MTE1, 0)
    sync(MTE1_MTE2, 0)

@asc.jit(kernel_type=config.KernelType.MIX_AIC_1_2)
def kernel(q: asc.GlobalAddress, k: asc.GlobalAddress, v: asc.GlobalAddress, s: asc.GlobalAddress, p: asc.GlobalAddress,
           o: asc.GlobalAddress, heads: int):
    block = asc.get_block_idx()
    q_gm = gm(q)
    k_gm = gm(k)
    v_gm = gm(v)
    s_gm = gm(s)
    p_gm = gm(p)
    o_gm = gm(o)
    if asc.ascend_is_aic():
        a1 = asc.LocalTensor(q.dtype, asc.TPosition.A1, 0, 1024)
        b1 = asc.LocalTensor(q.dtype, asc.TPosition.B1, 4096, 1024)
        a2 = asc.LocalTensor(q.dtype, asc.TPosition.A2, 0, 1024)
        b2 = asc.LocalTensor(q.dtype, asc.TPosition.B2, 0, 1024)
        c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 1024)
        for head in range(heads):
            product(s_gm, q_gm[head * 1024:], k_gm[head * 1024:], a1, b1, a2, b2, c1)
            asc.cross_core_set_flag(0, 2, asc.PipeID.PIPE_FIX)
            asc.cross_core_wait_flag(1, 2, asc.PipeID.PIPE_MTE2)
            product(o_gm[head * 1024:], p_gm, v_gm[head * 1024:], a1, b1, a2, b2, c1)
    if asc.ascend_is_aiv():
        first = asc.get_sub_block_idx() * 512
        scores = ub(0, 512)
        small = ub(4096, 512, asc.float16)
        for head in range(heads):
            asc.cross_core_wait_flag(0, 2, asc.PipeID.PIPE_MTE2)
            asc.data_copy(scores, s_gm[first:], 512)
            sync(MTE2_V, 0)
            asc.maxs(scores, scores, 0.0, count=512)
            barrier(V)
            asc.cast(small, scores, asc.RoundMode.CAST_NONE, 512)
            sync(V_MTE3, 0)
            asc.data_copy(p_gm[first:], small, 512)
            asc.cross_core_set_flag(1, 2, asc.PipeID.PIPE_MTE3)
            sync(MTE3_V, 0)
            sync(V_MTE2, 0)

rng = np.random.default_rng(0)
q, k, v = (rng.integers(-1, 2, (3, 32, 32)).astype(np.float16) for _ in range(3))
s = np.zeros((32, 32), np.float32)
p = np.zeros((32, 32), np.float16)
o = np.zeros((3, 32, 32), np.float32)
kernel[1](q, k, v, s, p, o, 3)
q, k, v = (one.astype(np.float32) for one in (q, k, v))
assert (o == np.maximum(q @ k, 0) @ v).all()
"""

SAME_OFFSETS = """
@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def kernel(a: asc.GlobalAddress, c: asc.GlobalAddress):
    a_gm = gm(a)
    c_gm = gm(c)
    a1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, 512)
    a2 = asc.LocalTensor(a.dtype, asc.TPosition.A2, 0, 256)
    b2 = asc.LocalTensor(a.dtype, asc.TPosition.B2, 0, 256)
    c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 256)
    asc.data_copy(a1, a_gm, intri_params=asc.Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0))
    sync(MTE2_MTE1, 0)
    asc.load_data(a2, a1, asc.LoadData2DParams(0, 1, 1, 0, 0, False, 0))
    asc.load_data(b2, a1, asc.LoadData2DParams(0, 1, 1, 0, 0, True, 0))
    sync(MTE1_M, 0)
    asc.data_copy(a1[256:], a_gm, intri_params=asc.Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0))
    asc.mmad(c1, a2, b2, asc.MmadParams(m=16, n=16, k=16, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))
    sync(M_FIX, 0)
    asc.fixpipe(c_gm, c1, asc.FixpipeParamsV220(16, 16, 16, 16))

a = np.random.default_rng(0).integers(-3, 4, (16, 16)).astype(np.float16)
c = np.zeros((16, 16), np.float32)
kernel[1](a, c)
assert (c == a.astype(np.float32) @ a.astype(np.float32)).all()
"""

EVERYONE = """
@asc.jit(kernel_type=config.KernelType.MIX_AIC_1_2)
def kernel(x: asc.GlobalAddress, w: asc.GlobalAddress, z: asc.GlobalAddress):
    x_gm = gm(x)
    w_gm = gm(w)
    z_gm = gm(z)
    if asc.ascend_is_aiv():
        block = asc.get_block_idx()
        part = ub(0, 128, asc.float16)
        asc.data_copy(part, x_gm[block * 128:], 128)
        sync(MTE2_MTE3, 0)
        asc.data_copy(w_gm[block * 128:], part, 128)
        asc.cross_core_set_flag(0, 2, asc.PipeID.PIPE_MTE3)
        asc.cross_core_wait_flag(1, 2, asc.PipeID.PIPE_MTE2)
    if asc.ascend_is_aic():
        asc.cross_core_wait_flag(0, 2, asc.PipeID.PIPE_MTE2)
        asc.cross_core_set_flag(2, 0, asc.PipeID.PIPE_FIX)
        asc.cross_core_wait_flag(2, 0, asc.PipeID.PIPE_MTE2)
        asc.cross_core_set_flag(1, 2, asc.PipeID.PIPE_FIX)
        a1 = asc.LocalTensor(x.dtype, asc.TPosition.A1, 0, 256)
        a2 = asc.LocalTensor(x.dtype, asc.TPosition.A2, 0, 256)
        b2 = asc.LocalTensor(x.dtype, asc.TPosition.B2, 0, 256)
        c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 256)
        other = 1 - asc.get_block_idx()
        asc.data_copy(a1, w_gm[other * 256:], intri_params=asc.Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0))
        sync(MTE2_MTE1, 0)
        asc.load_data(a2, a1, asc.LoadData2DParams(0, 1, 1, 0, 0, False, 0))
        asc.load_data(b2, a1, asc.LoadData2DParams(0, 1, 1, 0, 0, True, 0))
        sync(MTE1_M, 0)
        asc.mmad(c1, a2, b2, asc.MmadParams(m=16, n=16, k=16, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))
        sync(M_FIX, 0)
        asc.fixpipe(z_gm[other * 256:], c1, asc.FixpipeParamsV220(16, 16, 16, 16))

x = np.random.default_rng(0).integers(-3, 4, (2, 16, 16)).astype(np.float16)
w = np.zeros_like(x)
z = np.zeros((2, 16, 16), np.float32)
kernel[2](x, w, z)
assert (z == x.astype(np.float32) @ x.astype(np.float32)).all()
"""

ROWS = (
    Scenario("C15", PING_PONG),
    Scenario("C15-large-results", LARGE),
    Scenario("C04-cube", SPLIT_K),
    Scenario("C17", ATTENTION),
    Scenario("C13", SAME_OFFSETS),
    Scenario("C06-mixed", EVERYONE),
    Scenario("C05", repaired(RING)),
)
