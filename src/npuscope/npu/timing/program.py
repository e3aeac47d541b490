"""A launch's trace as the arrays that the compiled schedule reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.timing import layout as at
from npuscope.npu.timing.kinds import FIX, MTE2, MTE3, SLOT_OF_PIPE, SLOTS, Kind, S, V, by_opcode, kind_of
from npuscope.npu.timing.library_rows import tell
from npuscope.npu.timing.library_tiles import spread, tiles_of
from npuscope.npu.timing.links import Links, kinds_waiting, links_of
from npuscope.npu.timing.operands import Operands, operands_of
from npuscope.npu.timing.shapes import HIGH, LOW
from npuscope.npu.timing.steps import Steps, steps_of
from npuscope.npu.timing.transfers import Transfers, transfers_of
from npuscope.npu.timing.work import Work, work_of
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import OPCODES, CoreType, Origin, Pipe, Space
from npuscope.trace.values import among


@dataclass(frozen=True)
class Program:
    """`row` of each op, and what :mod:`.layout` describes. `kind` and `slot` are (rows,)."""

    rows: LaunchRows
    row: np.ndarray
    slot: np.ndarray
    kind: np.ndarray
    steps: Steps
    operands: Operands
    work: Work
    transfers: Transfers
    links: Links
    ops: np.ndarray
    deps: np.ndarray
    ranges: np.ndarray
    first_op: np.ndarray
    first_of_pipe: np.ndarray


def program_of(rows: LaunchRows, chip: Chip) -> Program:
    """Everything that does not depend on time."""
    operands = operands_of(rows)
    tell(rows, operands)
    slot = SLOT_OF_PIPE[rows.column("pipe")]
    kind = _kinds(rows, slot, operands, chip)
    copies = kind == Kind.COPY
    steps = steps_of(rows, operands, chip)
    work = work_of(rows, slot, operands, chip)
    transfers = transfers_of(rows, slot, copies, operands, chip)
    tiles = tiles_of(rows, operands, chip)
    spread(tiles, rows, work, chip)
    busy = work.busy.copy()
    busy[transfers.row] = transfers.busy
    links = links_of(rows, slot, tiles, busy, chip)
    kind = kinds_waiting(kind, links)
    order = np.argsort(rows.column("core"), kind="stable")
    op_of_row = np.empty(order.size, np.int64)
    op_of_row[order] = np.arange(order.size)
    ops = np.empty(order.size, at.OP)
    by_core = slice(None) if (np.diff(rows.column("core")) >= 0).all() else order  # a slice copies nothing
    core, step, slots = rows.column("core")[by_core], steps.of_row[by_core], slot[by_core]
    following, ahead, first_of_pipe = _chain(core * SLOTS + slots, len(rows.launch.cores), chip.timing.scalar.depth)
    dep0, dep_issued, dep1, deps = _deps(links, op_of_row)
    ordered = _orders(rows) and not chip.timing.vector.ordered
    place, ranges = _ranges(slots, kind[by_core], operands, order, ordered)
    at.fill(ops, {
        "core": core, "slot": slots, "kind": kind[by_core], "next": following, "ahead": ahead,
        "line0": steps.first_line[step], "line1": steps.last_line[step], "range": place,
        "gm0": transfers.first[:-1][by_core], "gm1": transfers.first[1:][by_core], "dep0": dep0,
        "dep_issued": dep_issued, "dep1": dep1, "step": step,
        "place": operands.per_row(operands.gm, operands.address, 0)[by_core],
        "strict": np.where(copies, _guarded(rows), _strict(rows))[by_core], "waiting": -1,
        **dict.fromkeys(at.OP_TIMES, at.UNKNOWN_TIME),
        **{name: cost[by_core] for name, cost in _costs(rows, steps, work, busy, transfers, chip).items()},
    })  # fmt: skip
    cores = len(rows.launch.cores)
    first_op = np.searchsorted(core, np.arange(cores))
    first_op[np.bincount(rows.column("core"), minlength=cores) == 0] = -1
    _enter(ops, first_op[first_op >= 0], chip)
    return Program(
        rows, order, slot, kind, steps, operands, work, transfers, links, ops, deps, ranges, first_op, first_of_pipe
    )


def _kinds(rows: LaunchRows, slot: np.ndarray, operands: Operands, chip: Chip) -> np.ndarray:
    """How each row runs."""
    kind = by_opcode(rows.column("opcode"), kind_of)
    work = kind == Kind.WORK
    has_gm = operands.per_row(operands.gm, np.ones(operands.row.size, np.int64)) > 0
    has_local = operands.per_row(operands.local, np.ones(operands.row.size, np.int64)) > 0
    named = by_opcode(rows.column("opcode"), lambda name: "gm" in name or name == "fixpipe", bool)
    inside = (slot == FIX) & has_local & ~has_gm & (operands.target >= 0)  # L0C to L1 or UB
    moving = among(slot, (MTE2, MTE3, FIX)) & (has_gm | (named & ~inside))
    kind[work & moving] = Kind.COPY
    kind[work & (slot == S)] = Kind.SCALAR
    kind[(kind == Kind.LOAD_UB) & has_gm] = Kind.LOAD_GM
    kind[(kind == Kind.STORE_UB) & has_gm] = Kind.STORE_GM
    kind[(kind == Kind.BARRIER) & (rows.column("pipe") == Pipe.ALL)] = Kind.DRAIN
    if chip.timing.vector.ordered:  # the hardware orders vector instructions: a barrier holds nothing up
        kind[(kind == Kind.BARRIER) & (slot == V)] = Kind.WORK
    return kind


def _orders(rows: LaunchRows) -> bool:
    """Whether the compiler orders dependent vector instructions itself."""
    return rows.launch.options.get("auto_sync", "True") != "False"


def _strict(rows: LaunchRows) -> np.ndarray:
    """Whether a scalar access waits for the pipes: the compiler's flags are not in the trace, nor the library's."""
    result = among(rows.column("opcode"), [OPCODES.number(name) for name in ("get_rsvd_cnt", "get_vms4_sr")])
    return (rows.column("origin") == Origin.FRAMEWORK) | _orders(rows) | result


def _guarded(rows: LaunchRows) -> np.ndarray:
    """Whether unit flags make an instruction wait while it has its pipe (hardware.md 5)."""
    return (rows.column("opcode") == OPCODES.number("fixpipe")) & (rows.column("d") & 3 > 1)


def _chain(agent: np.ndarray, cores: int, depth: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(`next` and `ahead` of each op, the first op of each agent), -1 where there is none; `agent`: (ops,) whose it
    is."""
    order = np.argsort(agent, kind="stable")
    sorted_agents = agent[order]
    same = sorted_agents[1:] == sorted_agents[:-1]
    following, ahead = np.full(order.size, -1), np.full(order.size, -1)
    following[order[:-1][same]] = order[1:][same]
    if order.size > depth:
        far = sorted_agents[depth:] == sorted_agents[:-depth]
        ahead[order[depth:][far]] = order[:-depth][far]
    first = np.full(cores * SLOTS, -1, np.int64)
    starts = np.flatnonzero(np.concatenate([[True], ~same])) if order.size else np.empty(0, np.int64)
    first[sorted_agents[starts]] = order[starts]
    first[S::SLOTS] = -1
    return following, ahead, first


def _enter(ops: np.ndarray, first: np.ndarray, chip: Chip) -> None:
    """What a core does at the start of a kernel counts with its first instruction: its code comes before all other."""
    ops["line0"][first] = 0
    ops["hidden"][first] += chip.timing.calls["kernel"] * chip.timing.scalar.each


def _deps(links: Links, op_of_row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(`dep0`, `dep_issued` and `dep1` of each op, the links as records)."""
    later = op_of_row[links.later]
    order = np.argsort(2 * later + ~links.at_issue, kind="stable")  # those that hold up the scalar unit come first
    found = np.empty(order.size, at.LINK)
    found["op"], found["delay"] = op_of_row[links.earlier[order]], links.delay[order]
    issued, both = (np.bincount(mine, minlength=op_of_row.size) for mine in (later[links.at_issue], later))
    end = np.cumsum(both)
    return end - both, end - both + issued, end, found


def _ranges(
    slot: np.ndarray, kind: np.ndarray, operands: Operands, order: np.ndarray, ordered: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(`range` of each op, (vector instructions, 8)): bytes of UB written and read by vector instructions, as low and
    high of each operand. Where the compiler does not order them there are none."""
    vector = np.flatnonzero((slot == V) & (kind == Kind.WORK)) if ordered else np.empty(0, np.int64)
    ranges = np.zeros((2 * at.RANGES, max(vector.size, 1)), np.int64)
    number = np.full(slot.size, -1)
    number[vector] = np.arange(vector.size)
    if not vector.size:
        return number, ranges.T.copy()
    index = np.full(operands.rows, -1, np.int64)
    index[order[vector]] = np.arange(vector.size)
    place = np.flatnonzero((operands.space == Space.UB) & (index[operands.row] >= 0))
    row = operands.row[place]
    shape = operands.shape.of(place)
    low, high = operands.address[place] + shape[LOW], operands.address[place] + shape[HIGH]
    writes = operands.writes[place]
    reads = np.flatnonzero(~writes)
    rank = np.arange(reads.size) - np.searchsorted(row[reads], row[reads])
    for read in range(at.RANGES - 1):
        mine = reads[rank == read]
        ranges[2 * read + 2, index[row[mine]]], ranges[2 * read + 3, index[row[mine]]] = low[mine], high[mine]
    out = np.flatnonzero(writes)
    ranges[0] = np.iinfo(np.int64).max
    np.minimum.at(ranges[0], index[row[out]], low[out])
    np.maximum.at(ranges[1], index[row[out]], high[out])
    return number, np.ascontiguousarray(ranges.T)


def _costs(
    rows: LaunchRows, steps: Steps, work: Work, busy: np.ndarray, transfers: Transfers, chip: Chip
) -> dict[str, np.ndarray]:
    """layout.OP_COSTS by name, (rows,) each; `busy`: (rows,) cycles that each keeps its pipe by itself."""
    facts = chip.timing
    dcci = rows.column("opcode") == OPCODES.number("dcci")
    if dcci.any():
        whole = dcci & (rows.column("a") == 1)
        busy = np.where(whole, facts.sync.dcci_all, np.where(dcci, facts.sync.dcci, busy))
    barrier = rows.column("opcode") == OPCODES.number("pipe_barrier")
    latency, latency_hit, l2_bytes = np.where(barrier, 0.0, work.latency), work.latency.copy(), np.zeros(busy.size)
    latency[transfers.row], latency_hit[transfers.row] = transfers.latency, transfers.latency_hit
    l2_bytes[transfers.row] = transfers.l2_bytes
    return {
        "hidden": (steps.hidden * facts.scalar.each)[steps.of_row],
        "busy": np.where(barrier, 1.0, busy),
        "latency": latency,
        "latency_hit": latency_hit,
        "bytes": transfers.bytes,
        "l2_bytes": l2_bytes,
    }


def settings_of(rows: LaunchRows, chip: Chip) -> np.ndarray:
    """One record of layout.SETTINGS, (1,)."""
    facts, settings = chip.timing, np.zeros(1, at.SETTINGS)
    scalar, icache, memory = facts.scalar, facts.icache, facts.memory
    settings["issue"] = scalar.issue
    settings["icache_miss"], settings["icache_next"] = icache.miss, icache.next
    settings["ub_load"], settings["ub_store"] = scalar.ub_load, scalar.ub_store
    settings["dc_hit"] = scalar.cache_hit
    settings["dc_miss_l2"], settings["dc_miss_gm"] = scalar.cache_miss_l2, scalar.cache_miss_gm
    settings["flag"] = facts.sync.flag
    per_cycle = 1e3 / chip.frequency_mhz  # GB/s to bytes per cycle
    settings["gm_rate"] = chip.bandwidth.gm * memory.gm * per_cycle
    settings["l2_rate"] = chip.bandwidth.l2 * memory.l2 * per_cycle
    settings["write_weight"] = memory.write_weight
    mixed = len({core.type for core in rows.launch.cores}) > 1
    extra = facts.launch.mixed_us if mixed else 0.0
    settings["overhead"] = (facts.launch.overhead_us + extra) * chip.frequency_mhz
    settings["dispatch"] = facts.launch.dispatch
    settings["line"] = memory.line
    return settings


def units_of(rows: LaunchRows, chip: Chip) -> tuple[np.ndarray, int]:
    """((cores,) the block that each core starts with, how many blocks run at a time)."""
    cores = rows.launch.cores
    types = {core.type for core in cores}
    if len(types) > 1:
        return np.cumsum([core.type is CoreType.AIC for core in cores], dtype=np.int64) - 1, max(chip.cores.aic, 1)
    if not chip.split:
        return np.arange(len(cores), dtype=np.int64), max(chip.cores.aic + chip.cores.aiv, 1)
    places = chip.cores.aiv if types == {CoreType.AIV} else chip.cores.aic
    return np.arange(len(cores), dtype=np.int64), max(places, 1)
