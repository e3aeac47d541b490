"""Races inside a cube core (sanitizer.md 6.3 R11 to R14, and section 8 P04), each with its clean twin.

One kernel multiplies in three steps of k through single buffers of L1, L0A and L0B; every row leaves out one of its
orders. Nothing is automatic on a cube core, so all of these are errors.

Not expressible: an order by unit flag, as pyasc 1.1 passes MmadParams.unit_flag as one bit, so that 3 arrives as 1
(test_clean_patterns.py has C08 on the simulated device itself).
"""

from __future__ import annotations

from dataclasses import replace

from scenarios.model import Expect, Scenario, pair

MATMUL = """
@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def kernel(a: asc.GlobalAddress, b: asc.GlobalAddress, c: asc.GlobalAddress, steps: int):
    a_gm = gm(a)
    b_gm = gm(b)
    c_gm = gm(c)
    a1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, 1024)
    b1 = asc.LocalTensor(a.dtype, asc.TPosition.B1, 2048, 1024)
    a2 = asc.LocalTensor(a.dtype, asc.TPosition.A2, 0, 1024)
    b2 = asc.LocalTensor(a.dtype, asc.TPosition.B2, 0, 1024)
    c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 1024)
    for i in range(steps):
        asc.data_copy(a1, a_gm[i * 32:], intri_params=asc.Nd2NzParams(1, 32, 32, 0, 96, 32, 1, 0))  # in-a
        asc.data_copy(b1, b_gm[i * 1024:], intri_params=asc.Nd2NzParams(1, 32, 32, 0, 32, 32, 1, 0))  # in-b
        sync(MTE2_MTE1, 0)  # @there
        for j in range(2):
            asc.load_data(a2[j * 512:], a1[j * 256:], asc.LoadData2DParams(0, 2, 2, 0, 0, False, 0))  # load-a
            asc.load_data(b2[j * 512:], b1[j * 256:], asc.LoadData2DParams(0, 2, 2, 0, 0, True, 0))  # load-b
        sync(MTE1_MTE2, 0)  # @free-l1
        sync(MTE1_M, 0)  # @loaded
        asc.mmad(c1, a2, b2, asc.MmadParams(m=32, n=32, k=32, unit_flag=0, cmatrix_source=False, cmatrix_init_val=i == 0))  # mmad
        sync(M_MTE1, 0)  # @free-l0
    sync(M_FIX, 0)  # @done
    asc.fixpipe(c_gm, c1, asc.FixpipeParamsV220(32, 32, 32, 32))  # out

rng = np.random.default_rng(0)
a = rng.integers(-3, 4, (32, 96)).astype(np.float16)
b = rng.integers(-3, 4, (96, 32)).astype(np.float16)
c = np.zeros((32, 32), np.float32)
kernel[1](a, b, c, 3)
assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()
"""

TWICE = """
@asc.jit(kernel_type=config.KernelType.AIC_ONLY)
def kernel(a: asc.GlobalAddress, c: asc.GlobalAddress):
    a_gm = gm(a)
    c_gm = gm(c)
    a1 = asc.LocalTensor(a.dtype, asc.TPosition.A1, 0, 256)
    a2 = asc.LocalTensor(a.dtype, asc.TPosition.A2, 0, 256)
    b2 = asc.LocalTensor(a.dtype, asc.TPosition.B2, 0, 256)
    c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, {results})
    asc.data_copy(a1, a_gm, intri_params=asc.Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0))
    sync(MTE2_MTE1, 0)
    asc.load_data(a2, a1, asc.LoadData2DParams(0, 1, 1, 0, 0, False, 0))
    asc.load_data(b2, a1, asc.LoadData2DParams(0, 1, 1, 0, 0, True, 0))
    sync(MTE1_M, 0)
    {body}

a = np.random.default_rng(0).integers(-3, 4, (16, 16)).astype(np.float16)
c = np.zeros((2, 16, 16), np.float32)
kernel[1](a, c)
product = a.astype(np.float32) @ a.astype(np.float32)
assert {holds}
"""
MMAD = "asc.mmad(c1, a2, b2, asc.MmadParams(m=16, n=16, k=16, unit_flag=0, cmatrix_source=False, cmatrix_init_val={zero}))"
OUT = "asc.fixpipe(c_gm[{at}:], c1, asc.FixpipeParamsV220(16, 16, 16, 16))"


def without(text: str, order: str) -> str:
    """The kernel with one of its orders only in the repaired program."""
    lines = [
        line[: len(line) - len(line.lstrip())] + "#+ " + line.lstrip() if f"@{order}" in line else line
        for line in text.splitlines(keepends=True)
    ]
    return "".join(lines)


def twice(*body: str, results: int = 256, holds: str = "(c == product).all()") -> str:
    """The short kernel with its last lines."""
    return TWICE.format(body="\n    ".join(body), results=results, holds=holds)


def mmad(zero: bool = True, mark: str = "") -> str:
    """One product of 16 x 16 into c1."""
    return MMAD.format(zero=zero) + mark


def out(at: int, mark: str = "") -> str:
    """One Fixpipe of 16 x 16 out of c1."""
    return OUT.format(at=at) + mark


def _war(owner: str, space: str, edge: str, later: str, earlier: str) -> Expect:
    target, source = edge.split("_")[::-1]
    return Expect("race-war", owner, space, edge, (target, source), "error", later, earlier)


def _raw(owner: str, space: str, edge: str, later: str, earlier: str) -> Expect:
    source, target = edge.split("_")
    return Expect("race-raw", owner, space, edge, (target, source), "error", later, earlier)


def _waw(owner: str, space: str, pipe: str, line: str) -> Expect:
    return Expect("race-waw", owner, space, f"pipe_barrier({pipe})", (pipe, pipe), "error", line, line)


def _products(later: str, earlier: str) -> tuple[Expect, ...]:
    """Two Mmads that accumulate: the second one reads what the first writes, and writes it too."""
    pipes = ("M", "M")
    raw = Expect("race-raw", "c1", "L0C", "pipe_barrier(M)", pipes, "error", later, earlier)
    return (raw, *(replace(raw, kind=kind, optional=True) for kind in ("race-waw", "race-war")))


BROKEN = (
    Scenario(
        "R11", without(MATMUL, "free-l1"),
        (
            _war("a1", "L1", "MTE1_MTE2", "in-a", "load-a"), _war("b1", "L1", "MTE1_MTE2", "in-b", "load-b"),
            _waw("a1", "L1", "MTE2", "in-a"), _waw("b1", "L1", "MTE2", "in-b"),
        ),
    ),
    Scenario(
        "R12", without(MATMUL, "loaded"),
        (_raw("a2", "L0A", "MTE1_M", "mmad", "load-a"), _raw("b2", "L0B", "MTE1_M", "mmad", "load-b"),
         *_products("mmad", "mmad")),
    ),
    Scenario(
        "R12-free", without(MATMUL, "free-l0"),
        (_war("a2", "L0A", "M_MTE1", "load-a", "mmad"), _war("b2", "L0B", "M_MTE1", "load-b", "mmad"),
         *_products("mmad", "mmad")),
    ),
    Scenario(
        "R13", without(MATMUL, "done"), (_raw("c1", "L0C", "M_FIX", "out", "mmad"),),
    ),
    Scenario(
        "P04", without(MATMUL, "there"),
        (
            _raw("a1", "L1", "MTE2_MTE1", "load-a", "in-a"), _raw("b1", "L1", "MTE2_MTE1", "load-b", "in-b"),
            _waw("a1", "L1", "MTE2", "in-a"), _waw("b1", "L1", "MTE2", "in-b"),
        ),
    ),
    Scenario(
        "R14",
        twice(
            mmad(mark="  # first"), "sync(M_FIX, 0)", out(0, mark="  # earlier"), "#+ sync(FIX_M, 0)", mmad(mark="  # later"),
            "sync(M_FIX, 0)", out(256),
        ),
        (_war("c1", "L0C", "FIX_M", "later", "earlier"),
         Expect("race-waw", "c1", "L0C", "pipe_barrier(M)", ("M", "M"), "error", "later", "first")),
    ),
    Scenario(
        "R-accumulate",
        twice(
            mmad(mark="  # earlier"), "#+ barrier(M)", mmad(zero=False, mark="  # later"), "sync(M_FIX, 0)", out(0),
            holds="(c[0] == 2 * product).all()",
        ),
        _products("later", "earlier"),
    ),
)
ROWS = tuple(one for row in BROKEN for one in pair(row))
