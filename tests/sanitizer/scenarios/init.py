"""Reads of memory that nothing has written (sanitizer.md 6.2), each with its clean twin where it has one.

``later`` marks the use by which undefined bytes come to matter (a copy to global memory, a reduction, the scalar unit,
the cube, an address), ``earlier`` the first instruction that read them. Along chains of element-wise vector operations
either of the two may be named as the access.

Not expressible in pyasc: I06 (a private stack array), I09 (SIMT).
"""

from __future__ import annotations

from scenarios.model import Expect, Scenario, pairs

HEAD = """
@asc.jit
def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress):
    start = asc.get_block_idx() * 256
    x_gm = gm(x + start)
    z_gm = gm(z + start)
    a = ub(0, 256)
    b = ub(1024, 256)
    c = ub(2048, 256)
"""
HOST = """
x = np.arange(512, dtype=np.float32)
z = np.zeros(512, np.float32)
kernel[2](x, z)
"""
CORES = ("AIV 0", "AIV 1")


def kernel(body: str, after: str = "", host: str = HOST) -> str:
    """A kernel with arrays x and z of 256 floats a core and tiles a, b and c in UB."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return HEAD + lines + host + after + "\n"


def undefined(owner: str = "", space: str = "", pipe: str = "", either: bool = False, cores: tuple[str, ...] = CORES,
              earlier: str = "", size: int = 0) -> Expect:
    """The finding of a use; `earlier` is given where the first read is another line."""
    mark = "earlier" if either else earlier
    return Expect("uninitialised-read", owner, space, "", (pipe, ""), "error", "later", mark, cores, either, size)


LOAD = "asc.data_copy(a, x_gm, 256)\nsync(MTE2_V, 0)\n"
STORE = "sync(V_MTE3, 0)\nasc.data_copy(z_gm, b, 256)  # later\n"

MATMUL = """
@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress):
    a_gm = gm(a)
    b_gm = gm(b)
    c_gm = gm(c)
    a1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, 512)
    b1 = asc.LocalTensor(a.dtype, asc.TPosition.B1, 2048, 512)
    a2 = asc.LocalTensor(a.dtype, asc.TPosition.A2, 0, 512)
    b2 = asc.LocalTensor(a.dtype, asc.TPosition.B2, 0, 512)
    c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 256)
    asc.data_copy(a1, a_gm, intri_params=asc.Nd2NzParams(1, 16, 32, 0, 32, 16, 1, 0))
    asc.data_copy(b1, b_gm, intri_params=asc.Nd2NzParams(1, 32, 16, 0, 16, 32, 1, 0))
    sync(MTE2_MTE1, 0)
    asc.load_data(a2, a1, asc.LoadData2DParams(0, 2, 1, 0, 0, False, 0))
    {load_b}
    sync(MTE1_M, 0)
    {mmad}
    sync(M_FIX, 0)
    asc.fixpipe(c_gm, c1, asc.FixpipeParamsV220(16, 16, 16, 16))

a = np.random.default_rng(0).integers(-3, 4, (16, 32)).astype(np.float16)
b = np.random.default_rng(1).integers(-3, 4, (32, 16)).astype(np.float16)
c = np.zeros((16, 16), np.float32)
kernel[1](a, b, c)
"""
LOAD_B = "asc.load_data(b2, b1, asc.LoadData2DParams(0, {fractals}, 1, 0, 0, True, 0))"
MMAD = "asc.mmad(c1, a2, b2, asc.MmadParams(m=16, n=16, k={k}, unit_flag=0, cmatrix_source=False, cmatrix_init_val={zero}))"
PRODUCT = "assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()\n"
CUBE_CORE = ("AIC 0",)


def matmul(load_b: str, mmad: str, after: str = "") -> str:
    """One product of 16 x 32 x 16."""
    return MATMUL.replace("{load_b}", load_b).replace("{mmad}", mmad) + after


SOFT = """
@asc.jit
def kernel(z: asc.GlobalAddress, space: asc.GlobalAddress):
    z_gm = gm(z)
    space_gm = gm(space)
    a = ub(0, 64)
    slots = ub(1024, 256, asc.int32)
    asc.duplicate(a, 1.0, 64)
    sync(V_MTE3, 0)
    asc.data_copy(z_gm[asc.get_block_idx() * 64:], a, 64)
    asc.sync_all(space_gm, slots)  # later
    asc.data_copy(a, z_gm[(1 - asc.get_block_idx()) * 64:], 64)
    sync(MTE2_MTE3, 0)
    asc.data_copy(z_gm[128 + asc.get_block_idx() * 64:], a, 64)

z = np.zeros(256, np.float32)
space = np.empty(1 << 20, np.int32)  #-
#+ space = np.zeros(1 << 20, np.int32)
kernel[2](z, space)
"""

WRONG = pairs(
    Scenario(
        "I01",
        kernel(
            """
asc.data_copy(a, x_gm, 256)  # earlier
sync(MTE2_V, 0)
asc.adds(b, a, 1.0, count=256)
"""
            + STORE,
            host="x = np.empty(512, np.float32)  #-\n#+ x = np.arange(512, dtype=np.float32)\nz = np.zeros(512, np.float32)\nkernel[2](x, z)\n",
        ),
        (undefined(either=True),),
        "init",
    ),
    Scenario(
        "I01-direct",
        kernel(
            """
asc.data_copy(a, x_gm, 256)  # earlier
sync(MTE2_MTE3, 0)
asc.data_copy(z_gm, a, 256)  # later
""",
            host="x = np.empty(512, np.float32)  #-\n#+ x = np.arange(512, dtype=np.float32)\nz = np.zeros(512, np.float32)\nkernel[2](x, z)\n",
        ),
        (undefined(either=True),),
        "init",
    ),
    Scenario(
        "I02",
        kernel(
            """
asc.data_copy(a, x_gm, 256)
#+ asc.data_copy(c, x_gm, 256)
sync(MTE2_V, 0)
asc.add(b, a, c, 256)  # earlier
"""
            + STORE,
        ),
        (undefined(either=True),),
        "init",
    ),
    Scenario(
        "I02-chain",
        kernel(
            LOAD
            + """
#+ asc.duplicate(c, 1.0, 256)
#+ barrier(V)
asc.exp(b, c, 256)  # earlier
barrier(V)
asc.add(b, a, b, 256)
barrier(V)
asc.relu(b, b, 256)
"""
            + STORE,
        ),
        (undefined(either=True),),
        "init",
    ),
    Scenario(
        "I03",
        kernel(
            """
asc.data_copy(a, x_gm, 200)
sync(MTE2_V, 0)
#+ asc.duplicate(a[200:], 0.0, 56)
#+ barrier(V)
asc.reduce_sum(b, a, c, count=256)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 8)
"""
        ).replace("asc.data_copy(z_gm, b, 8)", "asc.data_copy_pad(z_gm, b, asc.DataCopyExtParams(1, 4, 0, 0, 0))"),
        (undefined("a", "UB", "V", size=56 * 4),),
        "init",
    ),
    Scenario(
        "I04",
        matmul(
            LOAD_B.format(fractals=1) + "  #-\n    #+ " + LOAD_B.format(fractals=2),
            MMAD.format(k=32, zero=True) + "  # later",
        ),
        (undefined("b2", "L0B", "M", cores=CUBE_CORE, size=512),),
        "init",
    ),
    Scenario(
        "I05",
        matmul(
            LOAD_B.format(fractals=2),
            MMAD.format(k=32, zero=False) + "  # later #-\n    #+ " + MMAD.format(k=32, zero=True),
        ),
        (undefined("c1", "L0C", "M", cores=CUBE_CORE, size=1024),),
        "init",
    ),
    Scenario(
        "I07",
        kernel(
            LOAD
            + """
sync(MTE2_MTE3, 0)
asc.set_atomic_add(asc.float32)
asc.data_copy(z_gm, a, 256)  # later
asc.set_atomic_none()
""",
            host="x = np.arange(512, dtype=np.float32)\nz = np.empty(512, np.float32)  #-\n#+ z = np.zeros(512, np.float32)\nkernel[2](x, z)\n",
        ),
        (undefined("z", "GM", "MTE3"),),
        "init",
    ),
    Scenario("I08", SOFT, (undefined("space", "GM"),), "init"),
    Scenario(
        "I11",
        kernel(
            """
asc.data_copy_pad(a, x_gm, asc.DataCopyExtParams(1, 188, 0, 0, 0), asc.DataCopyPadExtParams(x.dtype, is_pad=False, left_padding=0, right_padding=1, padding_value=0))  #-
#+ asc.data_copy_pad(a, x_gm, asc.DataCopyExtParams(1, 188, 0, 0, 0), asc.DataCopyPadExtParams(x.dtype, is_pad=True, left_padding=0, right_padding=1, padding_value=0))
sync(MTE2_V, 0)
asc.reduce_sum(b, a, c, count=48)  # later
sync(V_MTE3, 0)
asc.data_copy_pad(z_gm, b, asc.DataCopyExtParams(1, 4, 0, 0, 0))
"""
        ),
        (undefined("a", "UB", "V"),),
        "init",
    ),
    Scenario(
        "I-store",
        kernel("#+ asc.duplicate(b, 0.0, 256)\n#+ sync(V_MTE3, 0)\nasc.data_copy(z_gm, b, 256)  # later\n"),
        (undefined("b", "UB", "MTE3"),),
        "init",
    ),
    Scenario(
        "I-scalar",
        kernel(
            """
#+ asc.duplicate(a, 3.0, 256)
sync(V_S, 0)
value = a.get_value(5)  # later
sync(S_V, 0)
asc.duplicate(b, value, 256)
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
"""
        ),
        (undefined("a", "UB", "S", size=4),),
        "init",
    ),
    Scenario(
        "I-address",
        kernel(
            """
places = ub(4096, 64, asc.uint32)
#+ asc.duplicate(places, 4, 64)
#+ barrier(V)
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
asc.gather(b, a, places, 0, count=64)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 64)
"""
        ),
        (undefined("places", "UB", "V"),),
        "init",
        also=("illegal-read",),
    ),
    Scenario(
        "I-half",
        kernel(
            """
asc.data_copy(a, x_gm, 128)
#+ asc.data_copy(a[128:], x_gm[128:], 128)
sync(MTE2_MTE3, 0)
asc.data_copy(z_gm, a, 256)  # later
""",
        ),
        (undefined("a", "UB", "MTE3", size=512),),
        "init",
    ),
)

TWO_KERNELS = HEAD + """\
    asc.duplicate(a, 2.0, 256)
    sync(V_MTE3, 0)
    asc.data_copy(z_gm, a, 256)
""" + HEAD.replace("kernel", "second") + """\
    asc.data_copy(a, x_gm, 256)
    sync(MTE2_MTE3, 0)
    asc.data_copy(z_gm, a, 256)

x = np.empty(512, np.float32)
y = np.empty(512, np.float32)
z = np.zeros(512, np.float32)
kernel[2](z, y)
second[2](y, z)
assert (z == 2).all()
"""


def clean(name: str, text: str) -> Scenario:
    """A row that must be silent."""
    return Scenario(name, text, check="init")


SILENT = (
    clean("I10", kernel(
        """
asc.data_copy_pad(a, x_gm, asc.DataCopyExtParams(1, 188, 0, 0, 0), asc.DataCopyPadExtParams(x.dtype, is_pad=True, left_padding=0, right_padding=1, padding_value=0))
sync(MTE2_V, 0)
asc.reduce_sum(b, a, c, count=48)
sync(V_MTE3, 0)
asc.data_copy_pad(z_gm, b, asc.DataCopyExtParams(1, 4, 0, 0, 0))
""",
        "assert z[0] == x[:47].sum()",
    )),
    clean("I12", TWO_KERNELS),
    clean("I13", kernel(
        """
asc.duplicate(a, 1.0, 40)
barrier(V)
asc.adds(b, a, 1.0, count=40)
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 40)
""",
        "assert (z[:40] == 2).all()",
    )),
    clean("I13-mask", kernel(
        """
asc.duplicate(a, 1.0, 40)
barrier(V)
asc.adds(b, a, 1.0, mask=40, repeat_times=1, repeat_params=asc.UnaryRepeatParams(1, 1, 8, 8))
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 40)
""",
        "assert (z[:40] == 2).all()",
    )),
    clean("I14", kernel(
        """
asc.data_copy(a, x_gm, 128)
sync(MTE2_MTE3, 0)
asc.data_copy(z_gm, a, 128)
""",
        "assert (z[:128] == 7).all()",
        "x = np.empty(256, np.float32)\nx[:128] = 7\nz = np.zeros(256, np.float32)\nkernel[1](x, z)\n",
    )),
    clean("I15", kernel(
        """
asc.data_copy(a, x_gm, 256)
sync(MTE2_MTE3, 0)
asc.set_atomic_add(asc.float32)
asc.data_copy(z_gm, a, 256)
asc.set_atomic_none()
""",
        "assert (z == x).all()",
        "x = np.arange(512, dtype=np.float32)\nz = np.empty(512, np.float32)\nz.fill(0)\nkernel[2](x, z)\n",
    )),
    clean("I-tail", kernel(
        """
asc.data_copy(a, x_gm, 200)
sync(MTE2_V, 0)
asc.exp(b, a, 256)
barrier(V)
asc.add(b, b, a, 256)
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 200)
""",
        host="x = np.zeros(512, np.float32)\nz = np.zeros(512, np.float32)\nkernel[2](x, z)\nassert (z[:200] == 1).all()\n",
    )),
    clean("I-overwritten", kernel(
        """
asc.adds(b, a, 1.0, count=256)
barrier(V)
asc.duplicate(b, 3.0, 256)
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
        "assert (z == 3).all()",
    )),
)
ROWS = (*WRONG, *SILENT)
