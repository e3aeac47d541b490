"""Races between cores (sanitizer.md 6.3 R06 second half, R19 to R25, R31; bug corpus A12), each with its clean twin.

R23 (mode 4) runs a program that pyasc compiled for A2 on a simulated A5, where its values mean nothing. Which of two unordered accesses takes
effect first is the simulator's schedule, which is fixed.
"""

from __future__ import annotations

from scenarios.model import Expect, Scenario, pairs

SIDES = {
    "head": """
@asc.jit(kernel_type=config.KernelType.MIX_AIC_1_2)
def kernel(x: asc.GlobalAddress, w: asc.GlobalAddress, z: asc.GlobalAddress):
    x_gm = gm(x)
    w_gm = gm(w)
    z_gm = gm(z)
""",
    "aiv_to_aic": """
    if asc.ascend_is_aiv():
        first = asc.get_sub_block_idx() * 512
        part = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, 512)
        asc.data_copy(part, x_gm[first:], 512)
        sync(MTE2_V, 0)
        asc.add(part, part, part, 512)
        sync(V_MTE3, 0)
        {before}
        asc.data_copy(w_gm[first:], part, 512)  # earlier
        {after}
    if asc.ascend_is_aic():
        a1 = asc.LocalTensor(x.dtype, asc.TPosition.A1, 0, 1024)
        a2 = asc.LocalTensor(x.dtype, asc.TPosition.A2, 0, 1024)
        b2 = asc.LocalTensor(x.dtype, asc.TPosition.B2, 0, 1024)
        c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 1024)
        {cube}
        asc.data_copy(a1, w_gm, intri_params=asc.Nd2NzParams(1, 32, 32, 0, 32, 32, 1, 0))  # later
        sync(MTE2_MTE1, 0)
        for j in range(2):
            asc.load_data(a2[j * 512:], a1[j * 256:], asc.LoadData2DParams(0, 2, 2, 0, 0, False, 0))
            asc.load_data(b2[j * 512:], a1[j * 256:], asc.LoadData2DParams(0, 2, 2, 0, 0, True, 0))
        sync(MTE1_M, 0)
        asc.mmad(c1, a2, b2, asc.MmadParams(m=32, n=32, k=32, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))
        sync(M_FIX, 0)
        asc.fixpipe(z_gm, c1, asc.FixpipeParamsV220(32, 32, 32, 32))

x = np.random.default_rng(0).integers(-3, 4, (32, 32)).astype(np.float16)
w = np.zeros((32, 32), np.float16)
z = np.zeros((32, 32), np.float32)
kernel[1](x, w, z)
""",
}
RIGHT = "double = (x + x).astype(np.float32)\nassert (z == double @ double).all()\n"


def handed(after: str, cube: str, before: str = "") -> str:
    """The vector cores double x into w, the cube core squares w; the lines between are the hand-over."""
    sides = SIDES["aiv_to_aic"]
    for name, lines in (("before", before), ("after", after), ("cube", cube)):
        sides = sides.replace(f"        {{{name}}}\n", "".join(f"        {line}\n" for line in lines.splitlines()))
    return SIDES["head"] + sides


VECTORS = """
@asc.jit
def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress):
    block = asc.get_block_idx()
    x_gm = gm(x)
    z_gm = gm(z)
    a = ub(0, 64)
    b = ub(256, 64)
{body}
x = np.arange(256, dtype=np.float32)
z = np.zeros({size}, np.float32)
kernel[{cores}](x, z)
{after}
"""


def vectors(body: str, after: str, cores: int = 4, size: int = 256) -> str:
    """A kernel of vector cores only."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return VECTORS.format(body=lines, after=after, cores=cores, size=size)


FILL = """
asc.duplicate(a, 2.0, 64)
sync(V_MTE3, 0)
"""

RING = """
@asc.jit(kernel_type=config.KernelType.MIX_AIC_1_2)
def kernel(a: asc.GlobalAddress, w: asc.GlobalAddress, z: asc.GlobalAddress):
    a_gm = gm(a)
    w_gm = gm(w)
    z_gm = gm(z)
    if asc.ascend_is_aic():
        a1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, 256)
        a2 = asc.LocalTensor(a.dtype, asc.TPosition.A2, 0, 256)
        b2 = asc.LocalTensor(a.dtype, asc.TPosition.B2, 0, 256)
        c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 256)
        asc.data_copy(a1, a_gm, intri_params=asc.Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0))
        sync(MTE2_MTE1, 0)
        asc.load_data(a2, a1, asc.LoadData2DParams(0, 1, 1, 0, 0, False, 0))
        asc.load_data(b2, a1, asc.LoadData2DParams(0, 1, 1, 0, 0, True, 0))
        sync(MTE1_M, 0)
        asc.mmad(c1, a2, b2, asc.MmadParams(m=16, n=16, k=16, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))
        sync(M_FIX, 0)
        for i in range(4):
            #+ if i > 1:
            #+     asc.cross_core_wait_flag(2 + i % 2, 2, asc.PipeID.PIPE_S)
            asc.fixpipe(w_gm[i % 2 * 256:], c1, asc.FixpipeParamsV220(16, 16, 16, 16))  # fill
            asc.cross_core_set_flag(i % 2, 2, asc.PipeID.PIPE_FIX)
        #+ asc.cross_core_wait_flag(2, 2, asc.PipeID.PIPE_S)
        #+ asc.cross_core_wait_flag(3, 2, asc.PipeID.PIPE_S)
    if asc.ascend_is_aiv():
        half = asc.get_sub_block_idx() * 128
        part = ub(0, 128)
        for i in range(4):
            asc.cross_core_wait_flag(i % 2, 2, asc.PipeID.PIPE_S)
            asc.data_copy(part, w_gm[i % 2 * 256 + half:], 128)  # drain
            #+ asc.cross_core_set_flag(2 + i % 2, 2, asc.PipeID.PIPE_MTE2)
            sync(MTE2_MTE3, 0)
            asc.data_copy(z_gm[i * 256 + half:], part, 128)
            sync(MTE3_MTE2, 0)

a = np.random.default_rng(0).integers(-3, 4, (16, 16)).astype(np.float16)
w = np.zeros((2, 16, 16), np.float32)
z = np.zeros((4, 16, 16), np.float32)
kernel[1](a, w, z)
assert (z == a.astype(np.float32) @ a.astype(np.float32)).all()
"""

CUBES = """
@asc.jit(kernel_type=config.KernelType.MIX_AIC_1_2)
def kernel(a: asc.GlobalAddress, w: asc.GlobalAddress, z: asc.GlobalAddress):
    a_gm = gm(a)
    w_gm = gm(w)
    z_gm = gm(z)
    if asc.ascend_is_aic():
        a1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, 256)
        a2 = asc.LocalTensor(a.dtype, asc.TPosition.A2, 0, 256)
        b2 = asc.LocalTensor(a.dtype, asc.TPosition.B2, 0, 256)
        c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 256)
        asc.cross_core_set_flag(1, 0, asc.PipeID.PIPE_FIX)
        if asc.get_block_idx() == 0:
            asc.data_copy(a1, a_gm, intri_params=asc.Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0))
        sync(MTE2_MTE1, 0)
        if asc.get_block_idx() == 0:
            square(c1, a2, b2, a1)
            asc.fixpipe(w_gm, c1, asc.FixpipeParamsV220(16, 16, 16, 16, quant_pre=asc.QuantModes.F322F16))  # earlier
        asc.cross_core_set_flag(0, 0, asc.PipeID.PIPE_FIX)
        if asc.get_block_idx() == 1:
            asc.cross_core_wait_flag(1, 0, asc.PipeID.PIPE_MTE2)  #-
            #+ asc.cross_core_wait_flag(0, 0, asc.PipeID.PIPE_MTE2)
            asc.data_copy(a1, w_gm, intri_params=asc.Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0))  # later
            sync(MTE2_MTE1, 1)
            square(c1, a2, b2, a1)
            asc.fixpipe(z_gm, c1, asc.FixpipeParamsV220(16, 16, 16, 16))
            asc.cross_core_wait_flag(0, 0, asc.PipeID.PIPE_MTE2)  #-
            #+ asc.cross_core_wait_flag(1, 0, asc.PipeID.PIPE_MTE2)
        else:
            asc.cross_core_wait_flag(0, 0, asc.PipeID.PIPE_MTE2)
            asc.cross_core_wait_flag(1, 0, asc.PipeID.PIPE_MTE2)

a = np.random.default_rng(0).integers(-2, 3, (16, 16)).astype(np.float16)
w = np.zeros((16, 16), np.float16)
z = np.zeros((16, 16), np.float32)
kernel[2](a, w, z)
""".replace(
    "@asc.jit(kernel",
    """@asc.jit
def square(c1: asc.LocalTensor, a2: asc.LocalTensor, b2: asc.LocalTensor, a1: asc.LocalTensor):
    asc.load_data(a2, a1, asc.LoadData2DParams(0, 1, 1, 0, 0, False, 0))
    asc.load_data(b2, a1, asc.LoadData2DParams(0, 1, 1, 0, 0, True, 0))
    sync(MTE1_M, 0)
    asc.mmad(c1, a2, b2, asc.MmadParams(m=16, n=16, k=16, unit_flag=0, cmatrix_source=False, cmatrix_init_val=True))
    sync(M_FIX, 0)

@asc.jit(kernel""",
    1,
)

POLLED = """
@asc.jit
def kernel(z: asc.GlobalAddress, flag: asc.GlobalAddress):
    z_gm = gm(z)
    flag_gm = gm(flag)
    a = ub(0, 64)
    if asc.get_block_idx() == 1:
        asc.duplicate(a, 3.0, 64)
        sync(V_MTE3, 0)
        asc.data_copy(z_gm, a, 64)  # earlier
        #+ barrier(ALL)
        flag_gm.set_value(0, 1)
        asc.data_cache_clean_and_invalid(asc.CacheLine.SINGLE_CACHE_LINE, flag_gm)
    else:
        while flag_gm.get_value(0) == 0:
            asc.data_cache_clean_and_invalid(asc.CacheLine.SINGLE_CACHE_LINE, flag_gm)
        asc.data_copy(a, z_gm, 64)  # later
        sync(MTE2_MTE3, 0)
        asc.data_copy(z_gm[64:], a, 64)

z = np.zeros(128, np.float32)
flag = np.zeros(16, np.int32)
kernel[2](z, flag)
assert (z == 3).all()
"""

ROWS = pairs(
    Scenario(
        "R06-cores",
        vectors(
            """
b.set_value(0, 5.0 + block)
sync(S_MTE3, 0)
asc.data_copy(z_gm, b, 8)  # store #-
#+ asc.data_copy(z_gm[block * 8:], b, 8)
""",
            "assert z[0] in (5, 6)",
            cores=2,
        ).replace("    b = ub(256, 64)\n", "    b = ub(256, 64)\n    asc.duplicate(b, 0.0, 64)\n    sync(V_S, 0)\n"),
        (Expect("race-waw", "z", "GM", "AIV 0 -> AIV 1", ("MTE3", "MTE3"), "error", "store", "store"),),
        also=("overwrite",),
    ),
    Scenario(
        "R06-equal",
        vectors(
            """
b.set_value(0, 5.0)
sync(S_MTE3, 0)
asc.data_copy(z_gm, b, 8)  # store #-
#+ asc.data_copy(z_gm[block * 8:], b, 8)
""",
            "assert z[0] == 5",
            cores=2,
        ).replace("    b = ub(256, 64)\n", "    b = ub(256, 64)\n    asc.duplicate(b, 0.0, 64)\n    sync(V_S, 0)\n"),
        (Expect("race-same-value", "z", "GM", "AIV 0 -> AIV 1", ("MTE3", "MTE3"), "warning", "store", "store"),),
        also=("overwrite",),
    ),
    Scenario(
        "R19",
        vectors(
            FILL
            + """
asc.data_copy(z_gm[block * 64:], a, 64)  # earlier
#+ asc.sync_all()
asc.data_copy(b, z_gm[(block + 3) % 4 * 64:], 64)  # later
sync(MTE2_MTE3, 0)
asc.data_copy(z_gm[256 + block * 64:], b, 64)
""",
            "",
            size=512,
        ),
        (
            Expect("race-raw", "z", "GM", "", ("MTE2", "MTE3")),
            Expect("race-war", "z", "GM", "", ("MTE3", "MTE2"), "error", "earlier", "later"),
        ),
    ),
    Scenario(
        "R19-two",
        vectors(
            """
if block == 0:
    asc.duplicate(a, 2.0, 64)
    sync(V_MTE3, 0)
    asc.data_copy(z_gm, a, 64)  # earlier
#+ asc.sync_all()
if block == 1:
    asc.data_copy(b, z_gm, 64)  # later
    sync(MTE2_MTE3, 0)
    asc.data_copy(z_gm[64:], b, 64)
""",
            "assert (z[:128] == 2).all()",
            cores=2,
        ),
        (Expect("race-raw", "z", "GM", "AIV 0 -> AIV 1", ("MTE2", "MTE3"), cores=("AIV 1", "AIV 0")),),
    ),
    Scenario(
        "R20",
        handed(
            "asc.cross_core_set_flag(0, 2, asc.PipeID.PIPE_MTE2)  #-\n#+ asc.cross_core_set_flag(0, 2, asc.PipeID.PIPE_MTE3)",
            "asc.cross_core_wait_flag(0, 2, asc.PipeID.PIPE_MTE2)",
        )
        + RIGHT,
        (Expect("race-raw", "w", "GM", "", ("MTE2", "MTE3")),),
    ),
    Scenario(
        "R20-early",
        handed(
            "#+ asc.cross_core_set_flag(0, 2, asc.PipeID.PIPE_MTE3)",
            "asc.cross_core_wait_flag(0, 2, asc.PipeID.PIPE_MTE2)",
            "asc.cross_core_set_flag(0, 2, asc.PipeID.PIPE_MTE3)  #-",
        ),
        (Expect("race-raw", "w", "GM", "", ("MTE2", "MTE3")),),
    ),
    Scenario(
        "R21", RING,
        (
            Expect("race-raw", "w", "GM", "", ("MTE2", "FIX"), "error", "drain", "fill"),
        ),
    ),
    Scenario(
        "R22",
        handed(
            "asc.cross_core_set_flag(0, 0, asc.PipeID.PIPE_MTE3)  #-\nasc.cross_core_wait_flag(0, 0, asc.PipeID.PIPE_MTE3)  #-\n"
            "#+ asc.cross_core_set_flag(0, 2, asc.PipeID.PIPE_MTE3)",
            "asc.cross_core_set_flag(0, 0, asc.PipeID.PIPE_FIX)  #-\nasc.cross_core_wait_flag(0, 0, asc.PipeID.PIPE_FIX)  #-\n"
            "#+ asc.cross_core_wait_flag(0, 2, asc.PipeID.PIPE_FIX)",
        ),
        (Expect("race-war", "w", "GM", "", ("MTE3", "MTE2"), "error", "earlier", "later"),),
    ),
    Scenario(
        "R24",
        vectors(
            """
asc.data_copy(a, z_gm, 64)  # load #-
sync(MTE2_V, 0)  #-
asc.adds(a, a, 1.0, count=64)  #-
#+ asc.duplicate(a, 1.0, 64)
sync(V_MTE3, 0)
#+ asc.set_atomic_add(asc.float32)
asc.data_copy(z_gm, a, 64)  # store
#+ asc.set_atomic_none()
""",
            "assert (z[:64] == 4).all()",
        ),
        (
            Expect("race-waw", "z", "GM", "", ("MTE3", "MTE3"), "error", "store", "store"),
            Expect("race-raw", "z", "GM", "", ("MTE2", "MTE3"), "error", "load", "store"),
            Expect("race-war", "z", "GM", "", ("MTE3", "MTE2"), "error", "store", "load", optional=True),
        ),
        also=("overwrite",),
    ),
    Scenario(
        "R25",
        vectors(
            FILL
            + """
if block == 0:
    asc.data_copy(z_gm, a, 64)  # earlier #-
    #+ asc.set_atomic_add(asc.float32)
    #+ asc.data_copy(z_gm, a, 64)
    #+ asc.set_atomic_none()
else:
    asc.set_atomic_add(asc.float32)
    asc.data_copy(z_gm, a, 64)  # later
    asc.set_atomic_none()
""",
            "assert (z[:64] == 4).all()",
            cores=2,
        ),
        (Expect("race-waw", "z", "GM", "AIV 0 -> AIV 1", ("MTE3", "MTE3")),),
    ),
    Scenario(
        "R23",
        handed(
            "asc.cross_core_set_flag(0, 4, asc.PipeID.PIPE_MTE3)",
            "asc.cross_core_wait_flag(0, 4, asc.PipeID.PIPE_MTE2)\n#+ asc.cross_core_wait_flag(16, 4, asc.PipeID.PIPE_MTE2)",
        ),
        (Expect("race-war", "w", "GM", "AIC 0 -> AIV 1", ("MTE3", "MTE2"), "error", "earlier", "later"),),
        chip="Ascend950PR",
    ),
    Scenario("R31", CUBES, (Expect("race-raw", "w", "GM", "", ("MTE2", "FIX")),)),
    Scenario("A12", POLLED, (Expect("race-raw", "z", "GM", "", ("MTE2", "MTE3")),)),
)
