"""Races inside a vector core (sanitizer.md 6.3), each with its clean twin, and the reports of section 8 that have the
same shape: P03 (a wait after the consumer), P04 and P10 (reuse of a buffer), P07 (sync guards the wrong pipe).

R08 runs the broken program of R07 on a simulated A5, whose vector instructions wait for each other. Not expressible in
pyasc on the chips that it compiles for: R26 and R28 (A5 only: a cube core that writes UB, a SIMT
function), R27 (two devices). P06 of section 8 (priming both slots of a prefetch loop) leaves flags up or hangs: the
sync check's rows have it.
"""

from __future__ import annotations

from dataclasses import replace

from scenarios.model import Expect, Scenario, pair, pairs

HEAD = """
@asc.jit{options}
def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress, n: int):
    start = asc.get_block_idx() * 256
    x_gm = gm(x + start)
    z_gm = gm(z + start)
    a = ub(0, 256)
    b = ub(1024, 256)
"""
TAIL = """
x = np.arange({cores} * 256, dtype=np.float32)
z = np.zeros({cores} * 256, np.float32)
kernel[{cores}](x, z, {n})
"""
CORES = ("AIV 0", "AIV 1", "AIV 2")


def kernel(body: str, after: str = "", cores: int = 3, auto: bool = True, n: int = 1) -> str:
    """A kernel with arrays x and z of 256 floats a core, tiles a and b in UB, and `after` on the host."""
    options = "" if auto else "(auto_sync=False)"
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return HEAD.replace("{options}", options) + lines + TAIL.format(cores=cores, n=n) + after + "\n"


PLUS_ONE = "assert (z == x + 1).all()"

BROKEN = (
    Scenario(
        "R01",
        kernel(
            """
asc.data_copy(a, x_gm, 256)  # earlier
#+ sync(MTE2_V, 0)
asc.adds(b, a, 1.0, count=256)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
            PLUS_ONE,
        ),
        (Expect("race-raw", "a", "UB", "MTE2_V", ("V", "MTE2"), cores=CORES, size=1024),),
    ),
    Scenario(
        "R01-part",
        kernel(
            """
asc.data_copy(a, x_gm, 128)
sync(MTE2_V, 0)
asc.data_copy(a[128:], x_gm[128:], 128)  # earlier
#+ sync(MTE2_V, 0)
asc.adds(b, a, 1.0, count=256)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
            PLUS_ONE,
        ),
        (Expect("race-raw", "a", "UB", "MTE2_V", ("V", "MTE2"), cores=CORES, size=512),),
    ),
    Scenario(
        "R02",
        kernel(
            """
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
asc.adds(b, a, 1.0, count=256)  # earlier
#+ sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)  # later
""",
            PLUS_ONE,
        ),
        (Expect("race-raw", "b", "UB", "V_MTE3", ("MTE3", "V"), cores=CORES),),
    ),
    Scenario(
        "R03",
        kernel(
            """
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
for i in range(4):
    asc.adds(b, a[i * 64:], 1.0, count=64)  # later
    sync(V_MTE3, 0)
    asc.data_copy(z_gm[i * 64:], b, 64)  # earlier
    #+ sync(MTE3_V, 0)
""",
            PLUS_ONE,
        ),
        (
            Expect("race-war", "b", "UB", "MTE3_V", ("V", "MTE3"), cores=CORES),
            Expect("relies-on-auto-sync", "b", "UB", "pipe_barrier(V)", ("V", "V"), "advisory", "later", "later"),
        ),
    ),
    Scenario(
        "R04",
        kernel(
            """
for i in range(4):
    asc.data_copy(a, x_gm[i * 64:], 64)  # later
    sync(MTE2_V, 0)
    asc.adds(b[i * 64:], a, 1.0, count=64)  # earlier
    #+ sync(V_MTE2, 0)
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
            PLUS_ONE,
        ),
        (
            Expect("race-war", "a", "UB", "V_MTE2", ("MTE2", "V"), cores=CORES),
            Expect("race-waw", "a", "UB", "pipe_barrier(MTE2)", ("MTE2", "MTE2"), "error", "later", "later"),
        ),
    ),
    Scenario(
        "R05",
        kernel(
            """
asc.duplicate(a, 2.0, 256)
sync(V_S, 0)
a.set_value(3, 7.0)  # earlier
#+ sync(S_V, 0)
asc.adds(b, a, 1.0, count=256)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
            "assert z[3] == 8 and z[4] == 3",
            auto=False,
        ),
        (Expect("race-raw", "a", "UB", "S_V", ("V", "S"), cores=CORES, size=4),),
    ),
    Scenario(
        "R05-auto",
        kernel(
            """
asc.duplicate(a, 2.0, 256)
sync(V_S, 0)
a.set_value(3, 7.0)  # earlier
#+ sync(S_V, 0)
asc.adds(b, a, 1.0, count=256)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
            "assert z[3] == 8 and z[4] == 3",
        ),
        (Expect("relies-on-auto-sync", "a", "UB", "S_V", ("V", "S"), "advisory", cores=CORES),),
    ),
    Scenario(
        "R05-read",
        kernel(
            """
asc.data_copy(a, x_gm, 256)  # earlier
#+ sync(MTE2_S, 0)
first = a.get_value(0)  # later
sync(MTE2_V, 0)
sync(S_V, 0)
asc.duplicate(b, first, 256)
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
            "assert (z.reshape(3, 256) == x[::256, None]).all()",
            auto=False,
        ),
        (Expect("race-raw", "a", "UB", "MTE2_S", ("S", "MTE2"), cores=CORES),),
    ),
    Scenario(
        "R06",
        kernel(
            """
asc.duplicate(b, 2.0, 256)
sync(V_S, 0)
b.set_value(0, 5.0)  # earlier
sync(V_MTE3, 0)
#+ sync(S_MTE3, 0)
asc.data_copy(z_gm, b, 256)  # later
""",
            "assert z[0] == 5 and z[1] == 2",
            auto=False,
        ),
        (Expect("race-raw", "b", "UB", "S_MTE3", ("MTE3", "S"), cores=CORES),),
    ),
    Scenario(
        "R07",
        kernel(
            """
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
asc.adds(b, a, 0.5, count=256)  # earlier
#+ barrier(V)
asc.adds(a, b, 0.5, count=256)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm, a, 256)
""",
            PLUS_ONE,
            auto=False,
        ),
        (
            Expect("race-raw", "b", "UB", "pipe_barrier(V)", ("V", "V"), cores=CORES),
            Expect("race-war", "a", "UB", "pipe_barrier(V)", ("V", "V"), cores=CORES),
        ),
    ),
    Scenario(
        "R07-auto",
        kernel(
            """
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
asc.adds(b, a, 0.5, count=256)  # earlier
#+ barrier(V)
asc.adds(b, b, 0.5, count=256)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
            PLUS_ONE,
        ),
        (Expect("relies-on-auto-sync", "b", "UB", "pipe_barrier(V)", ("V", "V"), "advisory", cores=CORES),),
    ),
    Scenario(
        "R07-in-place",
        kernel(
            """
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
asc.adds(b, a, 1.0, count=256)  # earlier
#+ barrier(V)
asc.adds(a, a, 2.0, count=256)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
            PLUS_ONE,
            auto=False,
        ),
        (Expect("race-war", "a", "UB", "pipe_barrier(V)", ("V", "V"), cores=CORES),),
    ),
    Scenario(
        "R-auto-chain",
        kernel(
            """
asc.data_copy(a, x_gm, 256)  # first
sync(MTE2_MTE3, 0)
asc.data_copy(z_gm, a, 256)  # store
sync(MTE3_MTE2, 0)
asc.data_copy(b, x_gm, 256)  # load
#+ sync(MTE2_S, 0)
b.set_value(0, 5.0)  # scalar
#+ sync(S_V, 0)
asc.duplicate(a, 2.0, 256)  # fill
""",
            "assert (z == x).all()",
        ),
        (
            Expect("relies-on-auto-sync", "b", "UB", "MTE2_S", ("S", "MTE2"), "advisory", "scalar", "load", CORES),
            Expect("relies-on-auto-sync", "a", "UB", "MTE3_V", ("V", "MTE3"), "advisory", "fill", "store", CORES, optional=True),
            Expect("relies-on-auto-sync", "a", "UB", "MTE2_V", ("V", "MTE2"), "advisory", "fill", "first", CORES, optional=True),
        ),
    ),
    Scenario(
        "R09",
        kernel(
            """
asc.duplicate(a, 1.0, 256)
asc.duplicate(b, 2.0, 256)
sync(V_MTE3, 0)
asc.data_copy(z_gm, a, 256)  # earlier
#+ barrier(MTE3)
asc.data_copy(z_gm[128:], b, 128)  # later
""",
            "assert (z.reshape(3, 256)[:, :128] == 1).all() and (z.reshape(3, 256)[:, 128:] == 2).all()",
        ),
        (Expect("race-waw", "z", "GM", "pipe_barrier(MTE3)", ("MTE3", "MTE3"), cores=CORES, size=512),),
    ),
    Scenario(
        "R09-load",
        kernel(
            """
asc.data_copy(a, x_gm, 256)  # earlier
#+ barrier(MTE2)
asc.data_copy(a[64:], x_gm, 64)  # later
sync(MTE2_MTE3, 0)
asc.data_copy(z_gm, a, 256)
""",
            "assert (z[:64] == z[64:128]).all()",
        ),
        (Expect("race-waw", "a", "UB", "pipe_barrier(MTE2)", ("MTE2", "MTE2"), cores=CORES),),
    ),
    Scenario(
        "R10",
        kernel(
            """
asc.duplicate(a, 3.0, 256)
sync(V_MTE3, 0)
asc.data_copy(z_gm, a, 256)  # earlier
#+ sync(MTE3_MTE2, 0)
asc.data_copy(b, z_gm, 256)  # later
sync(MTE2_V, 0)
asc.adds(b, b, 1.0, count=256)
sync(V_MTE3, 0)
asc.data_copy(x_gm, b, 256)
""",
            "assert (x == 4).all()",
        ),
        (Expect("race-raw", "z", "GM", "MTE3_MTE2", ("MTE2", "MTE3"), cores=CORES),),
    ),
    Scenario(
        "R15",
        kernel(
            """
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
asc.adds(b, a, 1.0, count=256)  # earlier
set(V_MTE3, 0)
wait(MTE3_V, 0)  #-
#+ wait(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)  # later
set(MTE3_V, 0)
#+ wait(MTE3_V, 0)
""",
            PLUS_ONE,
        ),
        (Expect("race-raw", "b", "UB", "V_MTE3", ("MTE3", "V"), cores=CORES),),
    ),
    Scenario(
        "R16",
        kernel(
            """
asc.data_copy(a, x_gm, 128)
set(MTE2_V, 0)
asc.data_copy(a[128:], x_gm[128:], 128)  # earlier
set(MTE2_V, 1)
shift(b[128:], a[128:], 0)  #-
#+ shift(b[128:], a[128:], 1)
shift(b, a, 1)  #-
#+ shift(b, a, 0)
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
            PLUS_ONE,
        ).replace(
            "@asc.jit\ndef kernel",
            """@asc.jit
def shift(to: asc.LocalTensor, source: asc.LocalTensor, event: int):
    wait(MTE2_V, event)
    asc.adds(to, source, 1.0, count=128)  # later

@asc.jit
def kernel""",
            1,
        ),
        (Expect("race-raw", "a", "UB", "MTE2_V", ("V", "MTE2"), cores=CORES),),
    ),
    Scenario(
        "R17",
        kernel(
            """
asc.data_copy(a, x_gm, 256)  # earlier
if n > 5:  #-
    sync(MTE2_V, 0)  #-
#+ if n > 0:
#+     sync(MTE2_V, 0)
asc.adds(b, a, 1.0, count=256)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
            PLUS_ONE,
            n=3,
        ),
        (Expect("race-raw", "a", "UB", "MTE2_V", ("V", "MTE2"), cores=CORES),),
    ),
    Scenario(
        "R18",
        kernel(
            """
asc.duplicate(b, 1.0, 256)
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 128)  # earlier
barrier(V)
#+ sync(MTE3_V, 0)
asc.duplicate(b, 2.0, 256)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm[128:], b[128:], 128)
""",
            "assert (z.reshape(3, 256)[:, 128:] == 2).all()",
        ),
        (Expect("race-war", "b", "UB", "MTE3_V", ("V", "MTE3"), cores=CORES, size=512),),
    ),
    Scenario(
        "R29",
        kernel(
            """
places = ub(4096, 64, asc.uint32)
o_gm = gm(x)
asc.data_copy(a, x_gm, 256)
sync(MTE2_V, 0)
places_gm = asc.GlobalTensor(); places_gm.set_global_buffer(o)
asc.data_copy(places, places_gm, 64)  # earlier
#+ sync(MTE2_V, 0)
asc.gather(b, a, places, 0, count=64)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 64)
""",
            "assert (z.reshape(3, 256)[:, :64] == x.reshape(3, 256)[:, 63::-1]).all()",
        )
        .replace("z: asc.GlobalAddress, n", "z: asc.GlobalAddress, o: asc.GlobalAddress, n")
        .replace("    o_gm = gm(x)\n", "")
        .replace("(x, z, 1)", "(x, z, np.arange(63, -1, -1, dtype=np.uint32) * 4, 1)"),
        (Expect("race-raw", "places", "UB", "MTE2_V", ("V", "MTE2"), cores=CORES),),
    ),
    Scenario(
        "R30",
        kernel(
            """
asc.data_copy(a, x_gm, 256)
asc.data_copy(b, x_gm, 256)
sync(MTE2_V, 0)
sync(MTE2_MTE3, 0)
asc.set_mask_count()
asc.set_vector_mask(100, dtype=asc.float32, mode=asc.MaskMode.COUNTER)
asc.adds(b, a, 1.0, mask=0, repeat_times=1, repeat_params=asc.UnaryRepeatParams(1, 1, 8, 8), is_set_mask=False)  # earlier
asc.set_mask_norm()
asc.reset_mask()
asc.data_copy(z_gm, b[96:], 64)  # later #-
#+ asc.data_copy(z_gm, b[104:], 64)
""",
            "",
        ),
        (Expect("race-raw", "b", "UB", "V_MTE3", ("MTE3", "V"), cores=CORES, size=16),),
    ),
    Scenario(
        "P03",
        kernel(
            """
asc.data_copy(a, x_gm, 256)  # earlier
set(MTE2_V, 0)
#+ wait(MTE2_V, 0)
asc.adds(b, a, 1.0, count=256)  # later
wait(MTE2_V, 0)  #-
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
            PLUS_ONE,
        ),
        (Expect("race-raw", "a", "UB", "MTE2_V", ("V", "MTE2"), cores=CORES),),
    ),
    Scenario(
        "P07",
        kernel(
            """
asc.data_copy(a, x_gm, 256)  # earlier
sync(MTE2_MTE3, 0)  #-
#+ sync(MTE2_V, 0)
asc.data_copy(b, a, 256)  # later
sync(V_MTE3, 0)
asc.data_copy(z_gm, b, 256)
""",
            "assert (z == x).all()",
        ),
        (Expect("race-raw", "a", "UB", "MTE2_V", ("V", "MTE2"), cores=CORES),),
    ),
    Scenario(
        "P10",
        kernel(
            """
for i in range(4):
    asc.data_copy(a[i % 2 * 64:], x_gm[i * 64:], 64)  # reload
    sync(MTE2_MTE3, 0)
    asc.data_copy(z_gm[i * 64:], a[i % 2 * 64:], 64)  # store
    #+ sync(MTE3_MTE2, 0)
""",
            "assert (z == x).all()",
        ),
        (
            Expect("race-war", "a", "UB", "MTE3_MTE2", ("MTE2", "MTE3"), "error", "reload", "store", CORES),
            Expect("race-waw", "a", "UB", "pipe_barrier(MTE2)", ("MTE2", "MTE2"), "error", "reload", "reload", CORES),
        ),
    ),
    Scenario(
        "R-queue",
        """
@asc.jit
def kernel(x: asc.GlobalAddress, z: asc.GlobalAddress):
    x_gm = gm(x)
    z_gm = gm(z)
    pipe = asc.TPipe()
    queue = asc.TQue(asc.TPosition.VECIN, 1)
    pipe.init_buffer(queue, 1, 1024)
    out = ub(65536, 256)
    tile = queue.alloc_tensor(x.dtype)
    asc.data_copy(tile, x_gm, 256)  # earlier
    asc.adds(out, tile, 1.0, count=256)  # later #-
    queue.enque(tile)
    ready = queue.deque(x.dtype)
    #+ asc.adds(out, ready, 1.0, count=256)
    queue.free_tensor(ready)
    sync(V_MTE3, 0)
    asc.data_copy(z_gm, out, 256)

x = np.arange(256, dtype=np.float32)
z = np.zeros(256, np.float32)
kernel[1](x, z)
assert (z == x + 1).all()
""",
        (Expect("race-raw", "tile", "UB", "MTE2_V", ("V", "MTE2")),),
    ),
)
R07 = next(row for row in BROKEN if row.id == "R07")
ROWS = (*pairs(*BROKEN), replace(pair(R07)[0], id="R08", expect=(), chip="Ascend950PR"))
