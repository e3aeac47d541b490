"""Random straight-line programs of a cube core and its two vector cores, which hand over to each other in one order that
both sides follow, so that none of them waits for ever."""

from __future__ import annotations

import random
from collections.abc import Callable

from mutations.random_programs import PAIRS

CUBE_PAIRS = (
    "MTE2_MTE1", "MTE1_MTE2", "MTE1_M", "M_MTE1", "M_FIX", "FIX_M", "MTE2_M", "M_MTE2", "FIX_MTE1", "MTE1_FIX",
)
TEXT = """\
@asc.jit(kernel_type=config.KernelType.MIX_AIC_1_2)
def kernel(h: asc.GlobalAddress, w: asc.GlobalAddress):
    h_gm = gm(h)
    w_gm = gm(w)
    if asc.ascend_is_aic():
        a1 = asc.LocalTensor(asc.float16, asc.TPosition.A1, 0, 512)
        a2 = asc.LocalTensor(asc.float16, asc.TPosition.A2, 0, 512)
        b2 = asc.LocalTensor(asc.float16, asc.TPosition.B2, 0, 512)
        c1 = asc.LocalTensor(asc.float32, asc.TPosition.CO1, 0, 512)
{cube}
    if asc.ascend_is_aiv():
        s = asc.get_sub_block_idx() * 128
        a = ub(0, 512)
        t = ub(512, 512, asc.float16)
{vector}

h = np.zeros(512, np.float16)
w = np.zeros(512, np.float32)
kernel[{cores}](h, w)
"""


def random_mixed(seed: int) -> str:
    """A program in the notation of scenarios.model; the same for the same seed."""
    rng = random.Random(seed)
    cube: list[str] = []
    vector: list[str] = []
    for meeting in range(rng.randint(1, 5)):
        cube += _stretch(rng, _cube_instruction, CUBE_PAIRS, ("M", "MTE1", "MTE2", "FIX", "ALL"))
        vector += _stretch(rng, _vector_instruction, PAIRS, ("V", "MTE2", "MTE3", "ALL"))
        _hand_over(rng, meeting, cube, vector)
    cube += _stretch(rng, _cube_instruction, CUBE_PAIRS, ("M", "MTE1", "MTE2", "FIX", "ALL"))
    vector += _stretch(rng, _vector_instruction, PAIRS, ("V", "MTE2", "MTE3", "ALL"))
    sides = ["\n".join(f"        {line}" for line in side) for side in (cube, vector)]
    return TEXT.format(cube=sides[0], vector=sides[1], cores=rng.randint(1, 2))


def _hand_over(rng: random.Random, number: int, cube: list[str], vector: list[str]) -> None:
    kind = rng.choice(("to cube", "to vector", "among vectors", "among cubes", "in a group", "none"))
    set_by = {"to cube": vector, "to vector": cube, "among vectors": vector, "among cubes": cube, "in a group": vector}
    if kind == "none":
        return
    sender = set_by[kind]
    waiter = {"to cube": cube, "to vector": vector}.get(kind, sender)
    mode = {"to cube": 2, "to vector": 2, "in a group": 1}.get(kind, 0)
    pipe = rng.choice(("FIX", "MTE2", "MTE1", "M") if sender is cube else ("MTE3", "MTE2", "V"))
    sender.append(f"asc.cross_core_set_flag({number}, {mode}, asc.PipeID.PIPE_{pipe})")
    waiter.append(f"asc.cross_core_wait_flag({number}, {mode}, asc.PipeID.PIPE_S)")


def _stretch(
    rng: random.Random, instruction: Callable[[random.Random], str], pairs: tuple[str, ...], barriers: tuple[str, ...]
) -> list[str]:
    lines: list[str] = []
    for _ in range(rng.randint(1, 5)):
        lines.append(instruction(rng))
        choice = rng.random()
        if choice < 0.5:
            lines.append(f"sync({rng.choice(pairs)}, 5)")
        elif choice < 0.65:
            lines.append(f"barrier({rng.choice(barriers)})")
    return lines


def _cube_instruction(rng: random.Random) -> str:
    one, two, three = (rng.choice((0, 256)) for _ in range(3))
    return rng.choice(
        (
            f"asc.data_copy(a1[{one}:], h_gm[{two}:], intri_params=asc.Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0))",
            f"asc.load_data(a2[{one}:], a1[{two}:], asc.LoadData2DParams(0, 1, 1, 0, 0, False, 0))",
            f"asc.load_data(b2[{one}:], a1[{two}:], asc.LoadData2DParams(0, 1, 1, 0, 0, True, 0))",
            f"asc.mmad(c1[{one}:], a2[{two}:], b2[{three}:], asc.MmadParams(m=16, n=16, k=16, unit_flag=0, "
            f"cmatrix_source=False, cmatrix_init_val={rng.random() < 0.5}))",
            f"asc.fixpipe(w_gm[{one}:], c1[{two}:], asc.FixpipeParamsV220(16, 16, 16, 16))",
        )
    )


def _vector_instruction(rng: random.Random) -> str:
    one, two = (rng.choice((0, 64, 128, 256)) for _ in range(2))
    own = rng.choice((" + s", ""))
    return rng.choice(
        (
            f"asc.data_copy(a[{one}:], w_gm[{two}{own}:], 64)",
            f"asc.data_copy(h_gm[{two}{own}:], t[{one}:], 128)",
            f"asc.adds(a[{one}:], a[{two}:], 1.0, count=64)",
            f"asc.duplicate(t[{one}:], 2.0, 128)",
        )
    )
