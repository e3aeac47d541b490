"""IterateBatch and IterateNBatch: many small products in one call, in the layouts of a batch.

Product i of max(batchA, batchB) multiplies A number i * batchA / batch and B number i * batchB / batch in layout
NORMAL. In BSNGD, SBNGD and BNGS1S2 an axis (G, N or B) of 1 on one side is broadcast against the other's, and a G axis
of 1 in C against more in A or B is a sum: C is then written with atomic adds (the vendor's IterateBatch page).

============  ================================  ============================================
layout        matrix i starts at element        elements from row to row
============  ================================  ============================================
NORMAL        i * rows * columns                columns of the single core's matrix
BNGS1S2       i * rows * columns                columns
BSNGD         i * columns                       N * G * D of the tiling's layout
SBNGD         i * columns                       B * N * G * D
============  ================================  ============================================

A matrix stride given in the call replaces the distance of matrices of A or B.
"""

from __future__ import annotations

from typing import NamedTuple

from npuscope.ascendc.adv import kfc
from npuscope.ascendc.adv.kfc import Message
from npuscope.ascendc.adv.matmul import all_tiles, begin_walk, close
from npuscope.ascendc.adv.matmul_matrix import Source
from npuscope.ascendc.adv.matmul_object import Matmul, matmul_of
from npuscope.ascendc.adv.matmul_output import copy_cached
from npuscope.ascendc.adv.matmul_setup import check_operand, reachable, refuse
from npuscope.ascendc.adv.matmul_types import BNGS1S2, BSNGD, NONE, NORMAL, SBNGD, Tiling
from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.errors import Unsupported, UserError
from npuscope.npu.core import Core
from npuscope.npu.tensor import Tensor, shifted
from npuscope.trace.schema import Space


class Axes(NamedTuple):
    """Layout axes of one matrix: batch, rows, N, G, columns."""

    b: int
    s: int
    n: int
    g: int
    d: int


def axes_of(tiling: Tiling, side: str) -> Axes:
    """The layout axes that the tiling gives A, B or C; an axis that is not set counts 1."""
    names = "BS1NGS2" if side == "C" else "BSNGD"
    keys = ("B", "S1", "N", "G", "S2") if names == "BS1NGS2" else tuple("BSNGD")
    return Axes(*(max(getattr(tiling, f"{side}LayoutInfo{key}"), 1) for key in keys))


def broadcast_index(number: int, own: Axes, other: Axes) -> int:
    """Which matrix of a side belongs to batch `number`, where one axis of this side is 1 and the other's is not."""
    if own.g == 1 and other.g != 1:
        return number // other.g
    if own.n == 1 and other.n != 1:
        return number % other.g + number // (other.g * other.n)
    if own.b == 1 and other.b != 1:
        return number % (other.g * other.n) + number // (other.g * other.n * other.b)
    return number


def row_stride(layout: int, axes: Axes, columns: int) -> int:
    """Elements from row to row of one matrix of a batch."""
    if layout == BSNGD:
        return axes.n * axes.g * axes.d
    if layout == SBNGD:
        return axes.b * axes.n * axes.g * axes.d
    return columns


def batch_offset(layout: int, axes: Axes, count: int, turn: int) -> int:
    """Where round `turn` of IterateNBatch starts in A, B or C, `count` matrices a round, in elements."""
    done = turn * count
    if layout == SBNGD:
        return axes.d * done
    if layout == BSNGD:
        line, rest = divmod(done, axes.n * axes.g)
        return line * axes.d * axes.s * axes.n * axes.g + rest * axes.d
    return axes.d * axes.s * done


class Batch(NamedTuple):
    """One call: how many matrices A and B have, the strides it gives (0: none), and how C is written."""

    a: int
    b: int
    stride_a: int
    stride_b: int
    sequential: bool
    atomic: int

    @property
    def products(self) -> int:
        """Products of the call."""
        return max(self.a, self.b)


def _sources(state: Matmul, batch: Batch, tiling: Tiling) -> tuple[Source, Source, int, int]:
    """A and B of the first product with the rows of a batch, and the distances of their matrices."""
    found: list[tuple[Source, int]] = []
    shape = state.shape
    for side, source, operand, rows, columns, given in (
        ("A", state.a, state.type.a, shape.single_m, shape.single_k, batch.stride_a),
        ("B", state.b, state.type.b, shape.single_k, shape.single_n, batch.stride_b),
    ):
        assert source is not None
        if source.tensor is None or source.private or source.space != Space.GM:
            raise Unsupported(f"matmul.iterate_batch with {side} outside GM is not simulated; keep {side} in GM")
        if source.transposed:
            rows, columns = columns, rows
        length = row_stride(operand.layout, axes_of(tiling, side), columns)
        apart = given or (columns if operand.layout in (BSNGD, SBNGD) else rows * columns)
        stride = rows if source.format else length
        found.append((Source(source.tensor, source.format, stride, source.transposed), apart))
    (a, apart_a), (b, apart_b) = found
    return a, b, apart_a, apart_b


def _numbers(state: Matmul, batch: Batch, tiling: Tiling, number: int) -> tuple[int, int, int]:
    """Which matrices of A, B and C product `number` takes."""
    if state.type.a.layout == NORMAL:
        return number * batch.a // batch.products, number * batch.b // batch.products, number
    a, b, group = axes_of(tiling, "A"), axes_of(tiling, "B"), _reduced(tiling)
    return broadcast_index(number, a, b), broadcast_index(number, b, a), number // group


def _reduced(tiling: Tiling) -> int:
    """How many products are summed into one C: the G axis of A or B where C has none."""
    a, b, c = (axes_of(tiling, side) for side in "ABC")
    return max(a.g, b.g) if c.g == 1 else 1


def run_batch(state: Matmul, site: int, destination: Tensor, batch: Batch, bias_offset: int = 0) -> None:
    """All products of one call; `state` must have begun a walk."""
    tiling, shape, layout = state.settled(), state.shape, state.type.c.layout
    first_a, first_b, apart_a, apart_b = _sources(state, batch, tiling)
    bias, group = state.bias, _reduced(tiling) if state.type.a.layout != NORMAL else 1
    c_axes = axes_of(tiling, "C")
    packed = layout not in (BSNGD, SBNGD)
    stride = 0 if packed else row_stride(layout, c_axes, shape.single_n)
    apart_c = shape.single_m * shape.single_n if packed else shape.single_n
    for number in range(batch.products):
        at_a, at_b, at_c = _numbers(state, batch, tiling, number)
        state.a, state.b = first_a.moved(at_a * apart_a), first_b.moved(at_b * apart_b)
        state.bias = _bias(state, bias, number, group, bias_offset)
        state.resident_a.clear()
        state.resident_b.clear()
        place = shifted(destination, at_c * apart_c * destination.dtype.itemsize)
        all_tiles(state, site, place, batch.sequential, 1 if group > 1 else batch.atomic, stride, step=0)


def _bias(state: Matmul, bias: Tensor | None, number: int, group: int, offset: int) -> Tensor | None:
    """The bias of one product: its own row of N, or the only one where the object shares it; the later products of a
    sum get none."""
    if bias is None or number % group:
        return None
    own = number // group if state.type.config.get("is_bias_batch", 1) else 0
    return shifted(bias, (own * state.shape.single_n + offset) * bias.dtype.itemsize)


def _check(state: Matmul, batch: Batch, name: str, site: int) -> None:
    """What the IterateBatch page demands: a layout, batch numbers that divide, and in BSNGD matrices of one B only."""
    if state.type.a.layout == NONE or state.type.b.layout == NONE:
        raise UserError(f"matmul.{name} takes MatmulTypes with a layout; give a and b LayoutMode NORMAL or another")
    if min(batch.a, batch.b) < 1 or max(batch.a, batch.b) % min(batch.a, batch.b):
        raise UserError(f"matmul.{name}: batch_a {batch.a} and batch_b {batch.b} must be multiples of one another")
    layouts = (state.type.a.layout, state.type.b.layout, state.type.c.layout)
    if batch.sequential and (BSNGD in layouts or SBNGD in layouts):
        refuse(state.client, site, f"en_sequential_write of {name} in layout BSNGD or SBNGD", "True", "False")
    for side, layout, number in (("A", layouts[0], batch.a), ("B", layouts[1], batch.b)):
        axes = axes_of(state.settled(), side)
        if layout == BSNGD and axes.n * axes.g % number:
            limit = f"a divisor of {side}LayoutInfoN * {side}LayoutInfoG = {axes.n * axes.g}"
            refuse(state.client, site, f"batch_{side.lower()} of {name} in layout BSNGD", number, limit)


@operation("ascendc.matmul.set_batch_num")
def set_batch_num(core: Core, site: int, matmul: Record, batch_a: int, batch_b: int) -> None:
    """SetBatchNum: matrices of A and B in the next calls of a cube kernel."""
    matmul_of(matmul).batch = (batch_a, batch_b)


@operation("ascendc.matmul.iterate_batch")
def iterate_batch(
    core: Core, site: int, matmul: Record, tensor: Tensor, batch_a: int, batch_b: int, sequential: int,
    stride_a: int, stride_b: int, stride_c: int, partial_sum: int | None = None, atomic: int | None = None,
    sync: int = 1, wait_batch: int | None = None,
) -> None:  # fmt: skip
    """IterateBatch to GM or UB. `stride_c` is reserved on the device. A partial sum would add to L0C, which a batch of
    new products does not leave; it counts for one product only."""
    state = matmul_of(matmul)
    _batch(state, site, tensor, Batch(batch_a, batch_b, stride_a, stride_b, bool(sequential), atomic or 0), partial_sum)
    if stride_c:
        refuse(core, site, "matrix_stride_c", stride_c, "0")
    close(state, site, Message.ITERATE_BATCH, bool(sync), bool(wait_batch))


@operation("ascendc.matmul.iterate_batch_cube_only")
def iterate_batch_cube_only(
    core: Core, site: int, matmul: Record, tensor: Tensor, partial_sum: int, atomic: int, sequential: int,
    stride_a: int, stride_b: int, stride_c: int,
) -> None:  # fmt: skip
    """IterateBatch of a cube kernel, with the numbers of set_batch_num."""
    state = matmul_of(matmul)
    _batch(state, site, tensor, Batch(*state.batch, stride_a, stride_b, bool(sequential), atomic), partial_sum)
    if stride_c:
        refuse(core, site, "matrix_stride_c", stride_c, "0")


def _batch(state: Matmul, site: int, tensor: Tensor, batch: Batch, partial_sum: int | None) -> None:
    check_operand("iterate_batch", state.type.c.dtype, tensor.dtype)
    _check(state, batch, "iterate_batch", site)
    if partial_sum:
        raise Unsupported("matmul.iterate_batch with partial sum is not simulated; use en_atomic=1 to add to C")
    begin_walk(state, site)
    kfc.post(state.client, state.worker, site, Message.ITERATE_BATCH)
    run_batch(state, site, reachable(state, tensor), batch)


@operation("ascendc.matmul.iterate_n_batch")
def iterate_n_batch(
    core: Core, site: int, matmul: Record, batch_loop: int, batch_a: int, batch_b: int, sequential: int,
    stride_a: int, stride_b: int, stride_c: int, sync: int, wait_batch: int,
) -> None:  # fmt: skip
    """IterateNBatch: `batch_loop` rounds of IterateBatch into the workspace. Without MatmulConfig(is_n_batch=True) the
    device does nothing, and neither does this."""
    state = matmul_of(matmul)
    if not state.type.config.get("is_n_batch"):
        refuse(core, site, "is_n_batch of the MatmulConfig of a Matmul with iterate_n_batch", "False", "True")
        return
    if state.workspace is None:
        raise UserError("matmul.iterate_n_batch writes to a workspace; call matmul.set_workspace before")
    batch = Batch(batch_a, batch_b, stride_a, stride_b, bool(sequential), 0)
    _check(state, batch, "iterate_n_batch", site)
    if NORMAL in (state.type.a.layout, state.type.b.layout, state.type.c.layout):
        raise UserError("matmul.iterate_n_batch takes LayoutMode BSNGD, SBNGD or BNGS1S2, not NORMAL")
    begin_walk(state, site)
    kfc.post(core, state.worker, site, Message.ITERATE_N_BATCH)
    tiling, bias = state.settled(), state.bias
    made = batch.products // _reduced(tiling)
    a, b = state.a, state.b
    assert a is not None and b is not None
    for turn in range(batch_loop):
        state.a = a.moved(batch_offset(state.type.a.layout, axes_of(tiling, "A"), batch_a, turn))
        state.b = b.moved(batch_offset(state.type.b.layout, axes_of(tiling, "B"), batch_b, turn))
        state.bias = bias
        offset = batch_offset(state.type.c.layout, axes_of(tiling, "C"), made, turn)
        room = shifted(state.workspace, offset * state.workspace.dtype.itemsize)
        run_batch(state, site, room, batch, bias_offset=turn * made * tiling.CLayoutInfoS2)
        if not sync and not wait_batch:
            kfc.notify(core, state.worker, site, Message.ITERATE_N_BATCH)
    state.cache_next = 0
    matmul.__dict__["rounds_taken"] = 0
    close(state, site, Message.ITERATE_N_BATCH, bool(sync), bool(wait_batch))


@operation("ascendc.matmul.wait_iterate_batch")
def wait_iterate_batch(core: Core, site: int, matmul: Record) -> None:
    """WaitIterateBatch: the client goes on when an asynchronous IterateBatch or IterateNBatch is done."""
    kfc.wait(core, matmul_of(matmul).worker, site, Message.ITERATE_BATCH)


@operation("ascendc.matmul.get_batch_tensor_c")
def get_batch_tensor_c(
    core: Core, site: int, matmul: Record, batch_a: int, batch_b: int, sequential: int, sync: int
) -> Tensor:
    """GetBatchTensorC: the next max(batch_a, batch_b) matrices of C where they lie in the workspace."""
    state = matmul_of(matmul)
    workspace = _filled(state)
    tiling = state.settled()
    kfc.wait(core, state.worker, site, Message.ITERATE_N_BATCH)
    elements = max(batch_a, batch_b) * tiling.singleCoreM * tiling.singleCoreN
    room = shifted(workspace, state.cache_next * workspace.dtype.itemsize)
    room.length = elements
    state.cache_next += elements
    return room


@operation("ascendc.matmul.get_batch_tensor_c_local_mem")
def get_batch_tensor_c_local_mem(
    core: Core, site: int, matmul: Record, tensor: Tensor, batch_a: int, batch_b: int, sequential: int, sync: int
) -> None:
    """GetBatchTensorC into UB: the matrices of the next round, one after the other. Only layouts whose matrices lie one
    after the other in the workspace are simulated."""
    state = matmul_of(matmul)
    workspace = _filled(state)
    tiling = state.settled()
    if state.type.c.layout not in (BNGS1S2, NORMAL):
        raise Unsupported("matmul.get_batch_tensor_c into UB is simulated for C in layout BNGS1S2; use that layout")
    turn = matmul.__dict__.get("rounds_taken", 0)
    matmul.__dict__["rounds_taken"] = turn + 1
    made = max(batch_a, batch_b) // _reduced(tiling)
    axes = axes_of(tiling, "C")._replace(d=tiling.singleCoreN)
    source = shifted(workspace, batch_offset(state.type.c.layout, axes, made, turn) * workspace.dtype.itemsize)
    kfc.wait(core, state.worker, site, Message.ITERATE_N_BATCH)
    copy_cached(core, site, tensor, source, made * tiling.singleCoreM * tiling.singleCoreN)
    kfc.ready_in_ub(core, site, tensor)


def _filled(state: Matmul) -> Tensor:
    if state.workspace is None:
        raise UserError("matmul.get_batch_tensor_c reads the workspace; call matmul.set_workspace before")
    return state.workspace


