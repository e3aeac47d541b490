"""Random straight-line programs of two vector cores: copies, vector and scalar operations on a few overlapping tiles,
with flags, barriers and rendezvous strewn in. Every line is one instruction at most, so that lines name instructions."""

from __future__ import annotations

import random

PAIRS = ("S_V", "S_MTE2", "S_MTE3", "V_S", "V_MTE2", "V_MTE3", "MTE2_S", "MTE2_V", "MTE2_MTE3", "MTE3_S", "MTE3_V", "MTE3_MTE2")
TILE = 64
PLACES = (0, 0, 32, 64, 128)
"""Elements at which tiles start: some are the same, some overlap in part, some are apart."""
HEAD = """\
@asc.jit(auto_sync={auto})
def kernel(x: asc.GlobalAddress):
    x_gm = gm(x)
    a = ub(0, 256)
    if asc.get_block_idx() == 0:
        asc.get_block_idx()
"""
TAIL = """
x = np.zeros(256, np.float32)
kernel[2](x)
"""


def random_program(seed: int, strided: bool = False) -> str:
    """A program in the notation of scenarios.model; the same for the same seed. `strided` adds copies with gaps and
    vector operations with repeats and masks."""
    rng = random.Random(seed)
    meetings = rng.choice((0, 0, 1, 2))
    sides = [_side(rng, meetings, strided) for _ in range(2)]
    indented = ["".join(f"        {line}\n" for line in side) for side in sides]
    auto = rng.random() < 0.4
    return HEAD.format(auto=auto) + indented[0] + "    else:\n        asc.get_block_idx()\n" + indented[1] + TAIL


def _side(rng: random.Random, meetings: int, strided: bool) -> list[str]:
    lines: list[str] = []
    for part in range(meetings + 1):
        lines += _stretch(rng, rng.randint(2, 8), strided)
        if part < meetings:
            lines.append("asc.sync_all()")
    return lines


def _stretch(rng: random.Random, count: int, strided: bool) -> list[str]:
    """Some instructions; flags that are raised here are taken here."""
    lines: list[str] = []
    raised: list[tuple[str, int]] = []
    for _ in range(count):
        lines.append(_strided(rng) if strided and rng.random() < 0.6 else _instruction(rng))
        choice = rng.random()
        if choice < 0.35:
            lines.append(f"sync({rng.choice(PAIRS)}, 5)")
        elif choice < 0.5 and len(raised) < 4:
            number = next(one for one in range(5) if one not in [used for _, used in raised])
            raised.append((rng.choice(PAIRS), number))
            lines.append(f"set({raised[-1][0]}, {raised[-1][1]})")
        elif choice < 0.62:
            lines.append(f"barrier({rng.choice(('V', 'MTE2', 'MTE3', 'ALL'))})")
        elif choice < 0.75 and raised:
            pair, number = raised.pop(0)
            lines.append(f"wait({pair}, {number})")
    return lines + [f"wait({pair}, {number})" for pair, number in raised]


def _instruction(rng: random.Random) -> str:
    local, other = (rng.choice(PLACES) for _ in range(2))
    start = rng.choice((0, 32, 64, 192))
    kind = rng.random()
    if kind < 0.3:
        return f"asc.data_copy(a[{local}:], x_gm[{start}:], {TILE})"
    if kind < 0.55:
        return f"asc.data_copy(x_gm[{start}:], a[{local}:], {TILE})"
    if kind < 0.75:
        return f"asc.adds(a[{local}:], a[{other}:], 1.0, count={TILE})"
    if kind < 0.85:
        return f"asc.duplicate(a[{local}:], 2.0, {TILE})"
    return f"a.set_value({local + rng.randrange(TILE)}, 1.0)"


def _strided(rng: random.Random) -> str:
    local, other, start = (rng.choice((0, 8, 32, 64, 128)) for _ in range(3))
    kind = rng.random()
    if kind < 0.6:
        shape = (rng.randint(1, 4), rng.randint(1, 3), rng.randint(0, 3), rng.randint(0, 3))
        ends = (f"a[{local}:]", f"x_gm[{start}:]") if kind < 0.3 else (f"x_gm[{start}:]", f"a[{local}:]")
        return f"asc.data_copy({ends[0]}, {ends[1]}, repeat_params=asc.DataCopyParams{shape})"
    mask = rng.choice(("64", "24", "8", "5", "[0xF0F0F0F0F0F0F0F, 0]", "[0x8001, 0]"))
    strides = f"{rng.choice((1, 2))}, 1, {rng.choice((2, 4, 8))}, {rng.choice((2, 4, 8))}"
    shape_text = f"mask={mask}, repeat_times={rng.randint(1, 2)}, repeat_params=asc.UnaryRepeatParams({strides})"
    return f"asc.adds(a[{min(local, 64)}:], a[{other}:], 1.0, {shape_text})"
