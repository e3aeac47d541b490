"""Matmul: Iterate, GetTensorC and IterateAll (the vendor's Matmul kernel API pages).

Accumulation is float32 (int32 for int8), as in L0C. In a mixed kernel the vector cores are clients of their AIC
(:mod:`npuscope.ascendc.adv.kfc`); in a cube kernel the core works for itself.
"""

from __future__ import annotations

from typing import Any

from npuscope.ascendc.adv import kfc
from npuscope.ascendc.adv.kfc import Message
from npuscope.ascendc.adv.matmul_compute import accumulators, add_bias, compute_tile, record_tile
from npuscope.ascendc.adv.matmul_object import Matmul, Tile, matmul_of
from npuscope.ascendc.adv.matmul_output import copy_cached, deliver, write_accumulators, write_tile
from npuscope.ascendc.adv.matmul_setup import check_operand, reachable, refuse
from npuscope.ascendc.adv.matmul_types import OUTER_PRODUCT
from npuscope.ascendc.params import Record, construct
from npuscope.ascendc.registry import operation
from npuscope.errors import Unsupported, UserError
from npuscope.npu.core import Core
from npuscope.npu.tensor import Tensor, shifted

WHOLE_PRODUCT = 1 << 24
"""IterateAll multiplies the single core's matrices at once while none of them has more elements than this."""


# -- one base tile at a time -----------------------------------------------------------------------------------------


@operation("ascendc.matmul.iterate")
def iterate(core: Core, site: int, matmul: Record, partial_sum: int, third: Any, fourth: Any = None) -> int:
    """Iterate: computes the next base tile of C; 0 when all are done. `third` is a tensor in L0C where the kernel
    manages it, then `fourth` says whether the call is synchronous; else `third` does.

    Asynchronous: the first call computes all tiles into the workspace, one after the other, baseM * baseN apart.
    """
    local, sync = (third, bool(fourth)) if fourth is not None else (None, bool(third))
    state = matmul_of(matmul)
    if state.type.config.get("schedule_type") == OUTER_PRODUCT:
        raise Unsupported("matmul.iterate with ScheduleType.OUTER_PRODUCT is not simulated; use iterate_all")
    begun = state.fresh or state.a is None
    if begun:
        begin_walk(state, site)
    tiles = state.tiles()
    state.position = 0 if begun else state.position + 1
    if state.position >= len(tiles):
        return 0
    if sync or begun:
        kfc.post(core, state.worker, site, Message.ITERATE)
    state.synchronous = sync
    if partial_sum and len(tiles) > 1:
        refuse(core, site, "the number of base tiles of an iterate with partial sum", len(tiles), "1")
    if sync:
        _next_tile(state, site, tiles[state.position], bool(partial_sum), local)
    elif begun:
        _cache_tiles(state, site, tiles)
    return 1


def begin_walk(state: Matmul, site: int) -> None:
    """Start with the first tile; a single-core shape without elements has none."""
    state.start()
    single = (state.shape.single_m, state.shape.single_n, state.shape.single_k)
    if min(single) <= 0:
        refuse(state.client, site, "the single-core shape (M, N, K)", single, "sizes above 0")


def _next_tile(state: Matmul, site: int, tile: Tile, partial_sum: bool, local: Tensor | None) -> None:
    state.accumulator = compute_tile(state, site, tile, partial_sum)
    state.taken = False
    if local is not None:
        write_accumulators(state, local, tile, state.accumulator)


def _cache_tiles(state: Matmul, site: int, tiles: tuple[Tile, ...]) -> None:
    if state.workspace is None:
        raise UserError("matmul.iterate(sync=False) keeps its tiles in a workspace; call matmul.set_workspace before")
    tiling = state.settled()
    state.cached.clear()
    state.cache_next = 0
    for number, tile in enumerate(tiles):
        at = number * tiling.baseM * tiling.baseN
        room = shifted(state.workspace, at * state.workspace.dtype.itemsize)
        write_tile(state, site, room, tile, compute_tile(state, site, tile, False), True, 0)
        kfc.notify(state.client, state.worker, site, Message.ITERATE)
        state.cached.append((at, tile.rows * tile.columns))


@operation("ascendc.matmul.get_tensor_c", variadic=("operands",))
def get_tensor_c(core: Core, site: int, matmul: Record, tensor: Tensor, operands: list[Any]) -> None:
    """GetTensorC(tensor, [second], atomic, sequential, sync): the tile of the last Iterate goes to GM or on chip.

    With a second, local tensor the content of the first is then copied to it. After an asynchronous Iterate the next
    cached tile goes to a local tensor.
    """
    *second, atomic, sequential, sync = operands
    state = matmul_of(matmul)
    check_operand("get_tensor_c", state.type.c.dtype, tensor.dtype)
    if not state.synchronous:
        _take_cached(state, site, tensor)
        kfc.ready_in_ub(core, site, tensor)
        return
    tile = _current(state, site)
    if tile is None:
        return
    kfc.post(core, state.worker, site, Message.GET_TENSOR_C)
    assert state.accumulator is not None
    write_tile(state, site, reachable(state, tensor), tile, state.accumulator, bool(sequential), atomic)
    if sync:
        finish(state, site, Message.GET_TENSOR_C)
    if second:
        _fetch(core, site, second[0], tensor, tile)


def finish(state: Matmul, site: int, message: Message) -> None:
    """The server is done, the client goes on and fetches what is meant for its UB."""
    kfc.notify(state.client, state.worker, site, message)
    kfc.wait(state.client, state.worker, site, message)
    deliver(state, site)


def _fetch(core: Core, site: int, destination: Tensor, source: Tensor, tile: Tile) -> None:
    """The second tensor of GetTensorC: as many elements as it has, from the first tensor's start."""
    count = destination.length if destination.length >= 0 else tile.rows * tile.columns
    copy_cached(core, site, destination, source, count)
    kfc.ready_in_ub(core, site, destination)


def _current(state: Matmul, site: int) -> Tile | None:
    """The tile in L0C; None, with a fault, where no Iterate made one since the last GetTensorC."""
    if state.accumulator is None or state.taken:
        refuse(state.client, site, "the order of calls", "get_tensor_c without iterate", "one get_tensor_c per iterate")
        return None
    state.taken = True
    return state.tiles()[state.position]


def _take_cached(state: Matmul, site: int, destination: Tensor) -> None:
    """The oldest tile in the workspace, copied to a local tensor."""
    assert state.workspace is not None
    kfc.wait(state.client, state.worker, site, Message.ITERATE)
    if not state.cached:
        refuse(state.client, site, "the order of calls", "get_tensor_c past the last tile", "one per tile of C")
        return
    at, count = state.cached.popleft()
    source = shifted(state.workspace, at * state.workspace.dtype.itemsize)
    count = min(count, destination.length) if destination.length >= 0 else count
    copy_cached(state.client, site, destination, source, count)


@operation("ascendc.matmul.get_tensor_c_return")
def get_tensor_c_return(core: Core, site: int, matmul: Record, atomic: int, sequential: int, sync: int) -> Tensor:
    """GetTensorC without a destination: the next cached tile where it lies in the workspace, baseM * baseN elements."""
    state, tiling = matmul_of(matmul), matmul_of(matmul).settled()
    if state.workspace is None:
        raise UserError("matmul.get_tensor_c without a tensor reads the workspace; call matmul.set_workspace before")
    kfc.wait(core, state.worker, site, Message.ITERATE)
    return _next_room(state, tiling.baseM * tiling.baseN)


def _next_room(state: Matmul, elements: int) -> Tensor:
    """The next `elements` of the workspace that have not been handed out."""
    assert state.workspace is not None
    if state.cached:
        state.cached.popleft()
    room = shifted(state.workspace, state.cache_next * state.workspace.dtype.itemsize)
    room.length = elements
    state.cache_next += elements
    return room


@operation("ascendc.matmul.async_get_tensor_c")
def async_get_tensor_c(core: Core, site: int, matmul: Record, tensor: Tensor) -> None:
    """AsyncGetTensorC: the next cached tile; wait_get_tensor_c makes the vector unit wait for it."""
    state = matmul_of(matmul)
    if state.workspace is None:
        raise UserError("matmul.async_get_tensor_c reads the workspace; call matmul.set_workspace before")
    _take_cached(state, site, tensor)
    matmul.__dict__["fetched"] = tensor


@operation("ascendc.matmul.wait_get_tensor_c")
def wait_get_tensor_c(core: Core, site: int, matmul: Record) -> None:
    """WaitGetTensorC: the vector unit waits for what async_get_tensor_c copies."""
    fetched = matmul.__dict__.get("fetched")
    if fetched is not None:
        kfc.ready_in_ub(core, site, fetched)


@operation("ascendc.matmul.get_offset_c")
def get_offset_c(core: Core, site: int, matmul: Record) -> Record:
    """GetOffsetC: where the last tile lies in C, as MatrixOffset (offset, row, col, height, width) in elements."""
    state = matmul_of(matmul)
    tiles = state.tiles()
    tile = tiles[min(state.position, len(tiles) - 1)]
    offset = tile.row * state.shape.c_stride + tile.column
    fields = (offset, tile.row, tile.column, tile.rows, tile.columns)
    return construct("matrix_offset", "!ascendc.matrix_offset", *fields)


# -- all tiles at once -----------------------------------------------------------------------------------------------


@operation("ascendc.matmul.iterate_all")
def iterate_all(
    core: Core, site: int, matmul: Record, tensor: Tensor, atomic: int | None = None, sequential: int | None = None,
    wait_all: int | None = None, fake: int | None = None, sync: int = 1,
) -> None:  # fmt: skip
    """IterateAll: every base tile of the single core's C. Sequential: tile i at element i * baseM * baseN. A fake
    message only keeps the calls of the two vector cores in step."""
    state = matmul_of(matmul)
    check_operand("iterate_all", state.type.c.dtype, tensor.dtype)
    if state.type.config.get("is_partial_output"):
        raise UserError("matmul.iterate_all does not exist with MatmulConfig(is_partial_output=True); use iterate")
    begin_walk(state, site)
    kfc.post(core, state.worker, site, Message.ITERATE_ALL)
    if not fake:
        all_tiles(state, site, reachable(state, tensor), bool(sequential), atomic or 0)
    close(state, site, Message.ITERATE_ALL, bool(sync), bool(wait_all))


def close(state: Matmul, site: int, message: Message, sync: bool, wait_later: bool) -> None:
    """The end of a call that computed everything: the client waits now, later, or not at all."""
    state.synchronous = sync
    if sync:
        finish(state, site, message)
    elif wait_later:
        kfc.notify(state.client, state.worker, site, message)


def all_tiles(
    state: Matmul, site: int, tensor: Tensor, sequential: bool, atomic: int, stride: int = 0, step: int | None = None
) -> None:
    """Compute every tile of the single core's C and move it out; sequential tiles lie `step` elements apart."""
    tiling, tiles = state.settled(), state.tiles()
    shape = state.shape
    step = tiling.baseM * tiling.baseN if step is None else step
    m, n, k = shape.single_m, shape.single_n, shape.single_k
    whole = None
    if tiles and max(m * n, m * k, k * n) <= WHOLE_PRODUCT:
        everything = Tile(0, 0, m, n, 0, k)
        whole = add_bias(state, everything, accumulators(state, everything))
    for number, tile in enumerate(tiles):
        if whole is None:
            product = compute_tile(state, site, tile, False)
        else:
            record_tile(state, site, tile)
            product = whole[tile.row : tile.row + tile.rows, tile.column : tile.column + tile.columns]
        place = shifted(tensor, number * step * tensor.dtype.itemsize) if sequential else tensor
        write_tile(state, site, place, tile, product, sequential, atomic, stride)


@operation("ascendc.matmul.wait_iterate_all")
def wait_iterate_all(core: Core, site: int, matmul: Record) -> None:
    """WaitIterateAll: the client goes on when an asynchronous IterateAll is done."""
    kfc.wait(core, matmul_of(matmul).worker, site, Message.ITERATE_ALL)


@operation("ascendc.matmul.end")
def end(core: Core, site: int, matmul: Record) -> None:
    """End: the object gives its buffers back. On a cube core the next Iterate starts from the first tile; a client
    starts again only with set_tensor_a or set_tensor_b."""
    state = matmul_of(matmul)
    if state.synchronous:
        kfc.post(core, state.worker, site, Message.END)
    state.fresh = state.fresh or not state.remote
    state.accumulator, state.taken = None, True
