"""A Matmul object: what the setters left in it, who does its work, and the base tiles it walks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from npuscope.ascendc.adv.matmul_matrix import FRACTAL, Source, aligned
from npuscope.ascendc.adv.matmul_types import NZ, ORDER_N, ORDER_UNSET, MatmulType, Operand, Tiling, matmul_type
from npuscope.ascendc.params import Record
from npuscope.errors import UserError
from npuscope.npu.core import Core
from npuscope.npu.layout import Layout
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Space


class Tile(NamedTuple):
    """A base tile of C: first row and column in the single core's C, its extent, and the range of K it sums over."""

    row: int
    column: int
    rows: int
    columns: int
    k0: int
    k: int


@lru_cache(maxsize=512)
def tiles_of(
    single: tuple[int, int, int], base: tuple[int, int, int], steps: tuple[int, int], order: int, partial: bool
) -> tuple[Tile, ...]:
    """The base tiles of a single core's C in the order that Iterate yields them.

    Order M walks M first, then N; order N the other way (the vendor's TCubeTiling page). Where the step of the slower
    axis is above 1, its tiles within a step come one after the other before the faster axis moves on, because both lie
    in L1 together. With `partial` (MatmulConfig isPartialOutput) each step of K is a tile of its own.
    """
    m, n, k = single
    rows, columns = range(0, m, base[0]), range(0, n, base[1])
    if order == ORDER_N:
        step = max(steps[0], 1)
        groups = [rows[at : at + step] for at in range(0, len(rows), step)]
        places = [(row, column) for group in groups for column in columns for row in group]
    else:
        step = max(steps[1], 1)
        groups = [columns[at : at + step] for at in range(0, len(columns), step)]
        places = [(row, column) for group in groups for row in rows for column in group]
    depths = [(k0, min(base[2], k - k0)) for k0 in range(0, k, base[2])] if partial else [(0, k)]
    return tuple(
        Tile(row, column, min(base[0], m - row), min(base[1], n - column), k0, depth)
        for row, column in places
        for k0, depth in depths
    )


@dataclass(slots=True)
class Shape:
    """Sizes that tiling and setters give: the whole matrices (`kc` is the row length of C, 0: N) and the single core's
    part, in elements."""

    m: int
    n: int
    ka: int
    kb: int
    kc: int
    single_m: int
    single_n: int
    single_k: int

    @property
    def c_stride(self) -> int:
        """Elements from row to row of C in GM."""
        return self.kc or self.n


class Given(NamedTuple):
    """An operand as set_tensor_a or set_tensor_b gave it; `private` for the library's copy of a tensor in UB."""

    tensor: Tensor | None
    transposed: bool = False
    scalar: float | None = None
    private: bool = False


class Outgoing(NamedTuple):
    """A tile in the library's room in GM that the vector core has to fetch: where it goes, and its values."""

    tensor: Tensor
    layout: Layout
    values: np.ndarray


@dataclass(slots=True)
class Matmul:
    """The state of one object on one core. `worker` is the cube core that does the work: the core itself, or the AIC
    of its block when a vector core of a mixed kernel is the client."""

    type: MatmulType
    client: Core
    worker: Core
    tiling: Tiling | None = None
    shape: Shape = field(default_factory=lambda: Shape(0, 0, 0, 0, 0, 0, 0, 0))
    given_a: Given | None = None
    given_b: Given | None = None
    a: Source | None = None
    b: Source | None = None
    bias: Tensor | None = None
    next_bias: Tensor | None = None
    quant: int | Tensor | None = None
    batch: tuple[int, int] = (1, 1)
    fresh: bool = False  # a tensor was set since the last walk began
    position: int = 0  # tile that the last Iterate made
    accumulator: np.ndarray | None = None
    taken: bool = True  # the accumulator was read out
    workspace: Tensor | None = None
    cached: deque[tuple[int, int]] = field(default_factory=deque)  # tiles in the workspace: element offset, count
    cache_next: int = 0
    synchronous: bool = True
    outgoing: list[Outgoing] = field(default_factory=list)
    resident_a: set[int] = field(default_factory=set)  # first rows whose part of A is in L1
    resident_b: set[int] = field(default_factory=set)

    @property
    def remote(self) -> bool:
        """Whether the client sends messages to another core."""
        return self.worker is not self.client

    def init(self, tiling: Tiling) -> None:
        """Take a tiling: sizes start from it again."""
        self.tiling = tiling
        self.shape = Shape(
            tiling.M, tiling.N, tiling.Ka, tiling.Kb, tiling.N,
            tiling.singleCoreM, tiling.singleCoreN, tiling.singleCoreK,
        )  # fmt: skip
        self.accumulator, self.taken = None, True

    def source(self, operand: Operand, side: str, given: Given | None) -> Source:
        """A matrix in GM (strides of the whole matrix), L1 (always NZ, padded to fractals) or UB (the single core's
        matrix, row after row); UserError when none was set."""
        if given is None:
            raise UserError(f"Matmul is started without {side.upper()}; call set_tensor_{side} before")
        tensor, shape = given.tensor, self.shape
        if tensor is None:
            return Source(None, operand.format, 0, False, given.scalar)
        rows, width = (shape.m, shape.ka) if side == "a" else (shape.kb, shape.n)
        on_chip = given.private or tensor.memory.space != Space.GM
        if on_chip:
            rows, width = (shape.single_m, shape.single_k) if side == "a" else (shape.single_k, shape.single_n)
        if given.transposed:
            rows, width = width, rows
        if tensor.memory.space == Space.L1:
            return Source(tensor, NZ, aligned(rows, FRACTAL), given.transposed)
        stride = rows if operand.format == NZ else width
        return Source(tensor, operand.format, stride, given.transposed, None, given.private)

    def tiles(self) -> tuple[Tile, ...]:
        """The base tiles of the current single shape, none where a size is 0."""
        tiling, shape = self.settled(), self.shape
        base = (tiling.baseM, tiling.baseN, tiling.baseK)
        single = (shape.single_m, shape.single_n, shape.single_k)
        if min(base) <= 0:
            raise UserError(f"Matmul: the tiling's baseM, baseN and baseK are {base}; all must be above 0")
        order = self.type.config.get("iterate_order", ORDER_UNSET)
        if order == ORDER_UNSET:
            order = tiling.iterateOrder
        partial = bool(self.type.config.get("is_partial_output"))
        return tiles_of(single, base, (tiling.stepM, tiling.stepN), order, partial)

    def settled(self) -> Tiling:
        """The tiling; UserError when there is none yet."""
        if self.tiling is None:
            raise UserError("Matmul is used before it has a tiling; pass one to register_matmul or call matmul.init")
        return self.tiling

    def start(self) -> None:
        """Begin a walk with what the setters left. A client's bias counts for one walk only, because its message's
        flags are cleared when it is sent; a cube core's own object keeps it."""
        self.settled()
        self.a = self.source(self.type.a, "a", self.given_a)
        self.b = self.source(self.type.b, "b", self.given_b)
        self.bias = self.next_bias
        if self.remote:
            self.next_bias = None
        self.fresh = False
        self.position = 0
        self.resident_a.clear()
        self.resident_b.clear()


def matmul_of(record: Record) -> Matmul:
    """The state behind a Matmul handle; UserError before register_matmul."""
    state: Any = record.__dict__.get("state")
    if state is None:
        raise UserError("Matmul is used before register_matmul, which ties it to a cube core")
    return state


def make(record: Record, client: Core, worker: Core) -> Matmul:
    """Give a Matmul handle its state."""
    state = Matmul(matmul_type(record.type), client, worker)
    record.__dict__["state"] = state
    return state
