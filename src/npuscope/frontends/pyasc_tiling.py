"""Matmul tiling for one kernel launch: which part of C each core computes, and how a core blocks it through L1 and L0.

Pure calculation, no pyasc needed. The rules are those Ascend C publishes for `TCubeTiling` (table of parameters,
table 2 "constraints", table 3 "additional constraints of the MDL template", recommended values) and for the setters of
its tiling classes; buffer sizes are those of hardware.md 1.3. The search that picks among the legal tilings is our own:

1. cut M, N (and K on request) over the cores, in order of the work of the busiest core;
2. for each good cut pick baseM x baseN: fewest bytes loaded into L0; then the longest baseK that L0A, L0B and L1 hold;
3. of these take the one with the fewest cycles by a rough estimate, and fill L1 along K.

Sizes are in elements unless a name says bytes or bits; element sizes are in bits because of int4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from math import lcm
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

FRACTAL = 16  # rows of an L0 fractal, and both sides of an L0C fractal (hardware.md 2.4)
FRACTAL_ROW_BITS = 32 * 8  # an L0 fractal is 16 rows of 32 bytes
ACCUMULATOR_BYTES = 4  # L0C holds float or int32
DB_L0 = 2  # L0A and L0B are double buffered (recommended value)
RIVALS = 32  # cuts over the cores that are worked out and compared
CYCLES_PER_BLOCK = 32  # rough weights of the estimate: start of a block, bytes a core gets in a cycle
BYTES_PER_CYCLE = 128
QUANT_BYTES = 8  # one uint64 of a quantisation vector for each column


class NoTiling(ValueError):
    """No legal tiling exists for the request; `str(error)` says what does not fit."""


class Place(Enum):
    """Where a matrix lives when the kernel hands it to Matmul."""

    GM = "GM"
    UB = "UB"
    L1 = "L1"


class MNK(NamedTuple):
    """One number for each of the three matmul axes; 0 where a request leaves an axis open."""

    m: int
    n: int
    k: int


@dataclass(frozen=True)
class Matrix:
    """One operand: element size in bits, place, and the layouts that constrain a tiling."""

    bits: int = 32
    place: Place = Place.GM
    nz: bool = False
    transposed: bool = False
    gemv: bool = False


@dataclass(frozen=True)
class CoreMemory:
    """Bytes that Matmul may use of the buffers of one core."""

    l1: int
    l0a: int
    l0b: int
    l0c: int
    ub: int
    bt: int


@dataclass(frozen=True)
class Request:
    """Everything a script may set before it asks for a tiling. Zero and None mean "choose"."""

    shape: MNK
    org_m: int
    org_n: int
    org_ka: int
    org_kb: int
    memory: CoreMemory
    cores: int = 1
    a: Matrix = field(default_factory=Matrix)
    b: Matrix = field(default_factory=Matrix)
    c: Matrix = field(default_factory=Matrix)
    bias: Matrix | None = None
    split_k: bool = False
    single: MNK = MNK(0, 0, 0)
    single_min: MNK = MNK(0, 0, 0)
    single_max: MNK = MNK(0, 0, 0)
    align: MNK = MNK(0, 0, 0)
    base: MNK = MNK(0, 0, 0)
    base_min: MNK = MNK(0, 0, 0)
    base_max: MNK = MNK(0, 0, 0)
    n_first: bool = False
    outer_product: bool = False
    norm_template: bool = False
    double_a: bool | None = None
    double_b: bool | None = None
    double_c: bool = False
    double_bias: bool = False
    quant_vector: bool = False
    sparse: bool = False
    vector_nd2nz: bool = False


@dataclass(frozen=True)
class Tiling:
    """The answer, with the names of the published `TCubeTiling` where they differ in nothing but case."""

    cores: int
    parts: MNK
    single: MNK
    base: MNK
    step_m: int
    step_n: int
    step_ka: int
    step_kb: int
    depth_a1: int
    depth_b1: int
    db_l0c: int
    l1_bytes: int
    l0c_bytes: int
    trans_bytes: int


class _Cut(NamedTuple):
    single: int
    parts: int


class _Split(NamedTuple):
    m: _Cut
    n: _Cut
    k: _Cut

    @property
    def single(self) -> MNK:
        return MNK(self.m.single, self.n.single, self.k.single)

    @property
    def parts(self) -> MNK:
        return MNK(self.m.parts, self.n.parts, self.k.parts)

    @property
    def cores(self) -> int:
        return self.m.parts * self.n.parts * self.k.parts


class _Buffered(NamedTuple):
    """How A and B sit in L1: base blocks in a step along K, and whether two steps are held at a time."""

    step_ka: int
    step_kb: int
    db_a: int
    db_b: int
    l1_bytes: int


def ceil_div(value: int, by: int) -> int:
    """Quotient rounded up, for positive numbers."""
    return -(-value // by)


def align_up(value: int, to: int) -> int:
    """The least multiple of `to` that is not below `value`."""
    return ceil_div(value, to) * to


def fractal_k(bits: int) -> int:
    """Elements along K in an L0 fractal: 8 for 32 bit, 16 for 16, 32 for 8, 64 for 4 (hardware.md 2.4, "K0")."""
    return FRACTAL_ROW_BITS // bits


def solve(request: Request) -> Tiling:
    """The tiling for a request.

    Raises NoTiling when none is legal: the reason given is the one of the split that was tried first.
    """
    _check(request)
    splits = _splits(request)
    reason: NoTiling | None = None
    for start in range(0, len(splits), RIVALS):
        found: list[tuple[float, _Split, MNK]] = []
        for split in splits[start : start + RIVALS]:
            try:
                base = _base(request, split)
            except NoTiling as error:
                reason = reason or error
                continue
            if not found or _rank(request, split) == _rank(request, found[0][1]):
                found.append((_cycles(request, split, base), split, base))
        if found:
            _, split, base = min(found, key=lambda entry: entry[0])
            return _tiling(request, split, base, _l1_plan(request, split, base))
    raise reason or NoTiling(f"{request.shape} cannot be cut for {request.cores} core(s) as the single shape asks")


# ---------------------------------------------------------------------------------------------------- legality


def _check(request: Request) -> None:
    """Refuse what no choice of blocks can mend."""
    a, b, shape = request.a, request.b, request.shape
    if min(shape) <= 0:
        raise NoTiling("no shape: call set_shape or set_org_shape first")
    if shape.m > request.org_m or shape.n > request.org_n or shape.k > min(request.org_ka, request.org_kb):
        raise NoTiling(f"{shape} does not lie within the original shape")
    if a.bits != b.bits:
        raise NoTiling(f"A has {a.bits} bit elements and B has {b.bits}")
    k0 = fractal_k(a.bits)
    part = request.single
    for name, matrix, whole in (
        ("A", a, (request.org_m, part.m, request.org_ka, part.k)),
        ("B", b, (request.org_n, part.n, request.org_kb, part.k)),
    ):
        if matrix.nz and any(length % to for length, to in zip(whole, (FRACTAL, FRACTAL, k0, k0), strict=True)):
            raise NoTiling(f"{name} in NZ format needs K in multiples of {k0} and its other axis of {FRACTAL}")
    if a.gemv and shape.m != 1:
        raise NoTiling(f"A in VECTOR format needs M = 1, not {shape.m}")
    if request.sparse and a.bits != 8:
        raise NoTiling("sparse matmul needs int8 A and B")
    if request.c.place is not Place.GM:
        if request.split_k:
            raise NoTiling("a split of K over cores adds up in GM, C is elsewhere")
        if request.outer_product:
            raise NoTiling("the outer product schedule needs C in GM")
    if request.base.m % FRACTAL or request.base.n % FRACTAL or request.base.k % k0:
        raise NoTiling(f"the base block asked for, {request.base}, is not in multiples of {(FRACTAL, FRACTAL, k0)}")


def _k_unit(request: Request) -> int:
    """Multiple for a baseK of our choice (TCubeTiling table 2): C0 where A is plain and B transposed, else 16 or C0."""
    k0 = fractal_k(request.a.bits)
    if request.a.gemv:
        return FRACTAL * k0  # a row of A is read as whole 512 byte fractals
    return k0 if request.b.transposed and not request.a.transposed else max(FRACTAL, k0)


# ---------------------------------------------------------------------------------------------------- cores


def _cuts(request: Request, axis: int, unit: int, limit: int) -> list[_Cut]:
    """The different ways to cut one axis into at most `limit` parts. An axis that is not cut keeps its exact length;
    where cores share it, a part is a multiple of the unit, the asked alignment and the asked base block."""
    length, low, high = request.shape[axis], request.single_min[axis], request.single_max[axis]
    if single := request.single[axis]:
        return [_Cut(single, ceil_div(length, single))] if single <= length else []
    singles = {length}
    step = lcm(unit, request.align[axis] or 1, request.base[axis] or 1)
    for coarse in (step, step * 2, step * 4, step * 8, step * 16):  # coarser parts have more divisors for a base block
        blocks = ceil_div(length, coarse)
        singles |= {coarse * ceil_div(blocks, parts) for parts in range(2, min(limit, blocks) + 1)}
    cuts = [_Cut(single, ceil_div(length, single)) for single in singles if not high or single <= high]
    return [cut for cut in cuts if cut.parts == 1 or cut.single >= low]


def _splits(request: Request) -> list[_Split]:
    """All splits over the cores, by rank, work of the busiest core, fewest parts of K, no tail, least data."""
    k_unit = _k_unit(request)
    found = product(
        _cuts(request, 0, FRACTAL, request.cores),
        _cuts(request, 1, FRACTAL, request.cores),
        _cuts(request, 2, k_unit, request.cores if request.split_k else 1),
    )
    splits = [split for split in map(_Split._make, found) if split.cores <= request.cores]

    def order(split: _Split) -> tuple[int, ...]:
        m, n, k = split.single
        work = align_up(m, FRACTAL) * align_up(n, FRACTAL) * align_up(k, k_unit)
        return *_rank(request, split), work, split.parts.k, _tails(request, split), m + n, -n

    return sorted(splits, key=order)


def _tails(request: Request, split: _Split) -> int:
    """Axes whose last part is shorter than the others."""
    return sum(length % single != 0 for length, single in zip(request.shape, split.single, strict=True))


def _rank(request: Request, split: _Split) -> tuple[int, int]:
    """What speed cannot outweigh, lower is better: an even number of cores where an even number is offered (a mixed
    kernel counts vector cores, and two make one launched block); for C in UB, no tail (such kernels copy whole base
    tiles out)."""
    odd = split.cores % 2 if request.cores % 2 == 0 else 0
    return odd, _tails(request, split) if request.c.place is Place.UB else 0


def _cycles(request: Request, split: _Split, base: MNK) -> float:
    """Rough time of the busiest core: 16 x 16 x K0 products in a cycle (hardware.md 1.5), its loads, and a start for
    each block. It only ranks legal tilings."""
    single, k0 = split.single, fractal_k(request.a.bits)
    m, n, k = (ceil_div(length, block) for length, block in zip(single, base, strict=True))
    cube = align_up(single.m, FRACTAL) * align_up(single.n, FRACTAL) * align_up(single.k, k0) / (FRACTAL**2 * k0)
    loads = (n * single.m + m * single.n) * single.k * request.a.bits / 8 / BYTES_PER_CYCLE
    return cube + loads + m * n * k * CYCLES_PER_BLOCK


# ---------------------------------------------------------------------------------------------------- base block


def _candidates(request: Request, split: _Split, axis: int) -> Ints:
    """Legal values of baseM (axis 0) or baseN (axis 1) by themselves, ascending."""
    cut = split[axis]
    whole = align_up(cut.single, FRACTAL)
    if fixed := request.base[axis]:
        return np.array([fixed] if fixed <= whole else [], dtype=np.int64)
    l0_bytes, bits = ((request.memory.l0a, request.a.bits), (request.memory.l0b, request.b.bits))[axis]
    most = min(whole, l0_bytes * 8 // (bits * DB_L0 * fractal_k(bits)), request.base_max[axis] or whole)
    values = np.arange(FRACTAL, most + 1, FRACTAL, dtype=np.int64)
    if cut.parts > 1 and not request.single[axis]:
        values = values[cut.single % values == 0]
    return values[values >= request.base_min[axis]]


def _base(request: Request, split: _Split) -> MNK:
    """The base block of a core. Raises NoTiling when no block satisfies L0A, L0B, L0C, BT, UB and L1."""
    single, memory = split.single, request.memory
    m, n = np.meshgrid(_candidates(request, split, 0), _candidates(request, split, 1), indexing="ij")
    m, n = m.ravel(), n.ravel()
    fits = m * n * ACCUMULATOR_BYTES * (2 if request.double_c else 1) <= memory.l0c
    c_bits = m * n * request.c.bits
    if request.c.place is Place.UB:
        fits &= c_bits <= memory.ub * 8
    if request.bias is not None:
        fits &= n * request.bias.bits * (2 if request.double_bias else 1) <= memory.bt * 8
    if request.outer_product:  # two base blocks side by side are loaded at once
        fits &= (m if request.n_first else n) < (single.m if request.n_first else single.n)
    longest = _longest_k(request, single, m, n)
    shortest = _shortest_k(request, single)
    fits &= longest >= shortest
    if not fits.any():
        raise NoTiling(f"no base block for a core's {single} fits L0, L1, BT and UB of {memory}")
    m, n, longest, c_bits = m[fits], n[fits], longest[fits], c_bits[fits]
    pick = _best_block(request, single, m, n, longest, c_bits)
    base_k = _base_k(request, split, shortest, int(longest[pick]))
    return MNK(int(m[pick]), int(n[pick]), base_k)


def _best_block(request: Request, single: MNK, m: Ints, n: Ints, longest: Ints, c_bits: Ints) -> int:
    """Index of the best (baseM, baseN). A is loaded into L0 once for each column of blocks, B once for each row.

    For C in UB two tiles should fit, so that the vector core can double buffer, and whole tiles come first.
    """
    loaded = -(-single.n // n) * align_up(single.m, FRACTAL) + -(-single.m // m) * align_up(single.n, FRACTAL)
    ragged = (align_up(single.m, FRACTAL) % m != 0).astype(np.int64) + (align_up(single.n, FRACTAL) % n != 0)
    crowded = (c_bits * 2 > request.memory.ub * 8).astype(np.int64)
    if request.c.place is Place.UB:
        order = np.lexsort((-n, -longest, loaded, ragged, crowded))
    else:
        order = np.lexsort((-n, -longest, ragged, loaded))
    return int(order[0])


def _longest_k(request: Request, single: MNK, m: Ints, n: Ints) -> Ints:
    """For each (baseM, baseN) the longest baseK that L0A and L0B hold twice and L1 once (twice where asked)."""
    unit = fractal_k(request.a.bits) if request.base.k else _k_unit(request)
    limit = request.base.k or min(align_up(single.k, unit), request.base_max.k or single.k + unit)
    if limit > align_up(single.k, unit):
        raise NoTiling(f"baseK {limit} is longer than a core's K of {single.k}")
    by_a = request.memory.l0a * 8 // (m * request.a.bits * DB_L0)
    by_b = request.memory.l0b * 8 // (n * request.b.bits * DB_L0)
    step_m, step_n = _step_mn(request)
    a_bits = 0 if request.a.place is Place.L1 else request.a.bits * step_m * (2 if request.double_a else 1)
    b_bits = 0 if request.b.place is Place.L1 else _b_bits(request) * step_n * (2 if request.double_b else 1)
    free = (request.memory.l1 - _resident_bytes(request, single)) * 8 - n * _column_bits(request)
    room: Ints = np.minimum(np.minimum(by_a, by_b), limit)
    if a_bits or b_bits:
        room = np.minimum(room, free // (m * a_bits + n * b_bits))
    if request.vector_nd2nz:  # the vector core converts a block in UB, beside a tile of C
        tile = m * n * request.c.bits if request.c.place is Place.UB else 0
        room = np.minimum(room, (request.memory.ub * 8 - tile) // (np.maximum(m, n) * request.a.bits))
    return room // unit * unit


def _shortest_k(request: Request, single: MNK) -> int:
    """The least baseK that is legal: what was asked for; the whole K for the outer product; else one fractal."""
    unit = _k_unit(request)
    if request.outer_product:
        return max(align_up(single.k, request.base.k or unit), request.base_min.k)
    return request.base.k or max(unit, request.base_min.k)


def _base_k(request: Request, split: _Split, shortest: int, longest: int) -> int:
    """baseK between the two bounds: a divisor of the core's K where cores share K, or where it costs less than half."""
    if request.base.k:
        return request.base.k
    unit, single = _k_unit(request), split.k.single
    values = range(align_up(shortest, unit), longest + 1, unit)
    whole = [value for value in values if align_up(single, unit) % value == 0]
    if split.k.parts > 1 and not request.single.k:
        if not whole:
            raise NoTiling(f"no baseK up to {longest} divides a core's K of {single}")
        return whole[-1]
    return whole[-1] if whole and whole[-1] * 2 > values[-1] else values[-1]


# ---------------------------------------------------------------------------------------------------- L1


def _step_mn(request: Request) -> tuple[int, int]:
    """(stepM, stepN): 1 each; the outer product pairs two blocks across the direction it walks (MatmulConfig,
    "iterateOrder": ORDER_M needs stepN > 1, ORDER_N needs stepM > 1)."""
    if not request.outer_product:
        return 1, 1
    return (2, 1) if request.n_first else (1, 2)


def _b_bits(request: Request) -> int:
    """L1 bits of one element of B: 4:2 sparsity adds an index of two bits for each of the kept half."""
    return request.b.bits + (1 if request.sparse else 0)


def _column_bits(request: Request) -> int:
    """L1 bits held for each column of the base block besides B: bias and quantisation vector."""
    bias = 0 if request.bias is None else request.bias.bits * (2 if request.double_bias else 1)
    return bias + (QUANT_BYTES * 8 if request.quant_vector else 0)


def _resident_bytes(request: Request, single: MNK) -> int:
    """L1 bytes the kernel itself holds: a matrix handed over in L1 is there whole."""
    k = align_up(single.k, _k_unit(request))
    a = align_up(single.m, FRACTAL) * k * request.a.bits // 8 if request.a.place is Place.L1 else 0
    b = align_up(single.n, FRACTAL) * k * _b_bits(request) // 8 if request.b.place is Place.L1 else 0
    return a + b


def _l1_plan(request: Request, split: _Split, base: MNK) -> _Buffered:
    """The longest equal steps of A and B along K, two of each in L1 where they fit (recommended: depth / step = 2).

    Equal steps satisfy the MDL rule that the numbers of loads along K divide each other.
    """
    single = split.single
    blocks = ceil_div(single.k, base.k)
    step_m, step_n = _step_mn(request)
    a_held, b_held = request.a.place is Place.L1, request.b.place is Place.L1
    a_bits = 0 if a_held else step_m * base.m * base.k * request.a.bits
    b_bits = 0 if b_held else step_n * base.n * base.k * _b_bits(request)
    column = base.n * _column_bits(request)
    free = (request.memory.l1 - _resident_bytes(request, single)) * 8 - column
    for db_a, db_b in _double_buffers(request):
        pair = a_bits * db_a + b_bits * db_b
        most = blocks if pair == 0 else min(blocks, free // pair)
        if free < 0 or most < 1:
            continue
        step = 1 if request.norm_template else ceil_div(blocks, ceil_div(blocks, most))
        return _Buffered(
            blocks if a_held else step,
            blocks if b_held else step,
            1 if a_held else db_a,
            1 if b_held else db_b,
            ceil_div(pair * step + column, 8),
        )
    raise NoTiling(f"base block {base} does not fit the {request.memory.l1} bytes of L1")


def _double_buffers(request: Request) -> list[tuple[int, int]]:
    """(A, B) copies in L1 to try, best first; what the script set is not negotiable."""
    wanted = {None: (2, 1), True: (2,), False: (1,)}
    pairs = product(wanted[request.double_a], wanted[request.double_b])
    return sorted(pairs, key=lambda pair: -pair[0] - pair[1])


def _tiling(request: Request, split: _Split, base: MNK, plan: _Buffered) -> Tiling:
    """Put the parts together; depth = stepM * stepKa * db (table 2)."""
    single = split.single
    step_m, step_n = _step_mn(request)
    if request.a.place is Place.L1:
        step_m = ceil_div(single.m, base.m)
    if request.b.place is Place.L1:
        step_n = ceil_div(single.n, base.n)
    trans_bits = max(base.m, base.n) * base.k * request.a.bits if request.vector_nd2nz else 0
    return Tiling(
        cores=split.cores,
        parts=split.parts,
        single=single,
        base=base,
        step_m=step_m,
        step_n=step_n,
        step_ka=plan.step_ka,
        step_kb=plan.step_kb,
        depth_a1=step_m * plan.step_ka * plan.db_a,
        depth_b1=step_n * plan.step_kb * plan.db_b,
        db_l0c=2 if request.double_c else 1,
        l1_bytes=plan.l1_bytes,
        l0c_bytes=base.m * base.n * ACCUMULATOR_BYTES * (2 if request.double_c else 1),
        trans_bytes=trans_bits // 8,
    )
