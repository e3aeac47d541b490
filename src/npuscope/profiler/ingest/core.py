"""One core's logs as slices of the timeline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from npuscope.profiler.busy import union_lengths
from npuscope.profiler.ingest import scan
from npuscope.profiler.ingest.files import CoreFiles, LogKind
from npuscope.profiler.ingest.flags import flag_edges
from npuscope.profiler.ingest.groups import MERGED, REVERSED, UNMATCHED, number, pair
from npuscope.profiler.ingest.lanes import lane_of
from npuscope.profiler.ingest.lines import Lines, read_lines
from npuscope.profiler.ingest.losses import cut_line, missing_log, unpaired, unread_file
from npuscope.profiler.ingest.marks import SPECIAL, Mark, find_marks, is_marking
from npuscope.profiler.ingest.process_bytes import process_bytes
from npuscope.profiler.ingest.scalar import control_ticks, fetch_ticks, of_kind, read_points
from npuscope.profiler.ingest.text import LogText
from npuscope.trace.timeline import UNKNOWN, Lane, Loss

BY_IDENT = ("3510",)
"""Architectures whose logs pair by ID; the others pair by pc (opprof.md 4.3)."""
IDENT_KEYS = (b"id:", b"Id:")
"""Where logs without ``(ID: n)`` give the number of an instruction that transfer logs speak of."""
WARP_KEYS = ((b"[warpId", scan.BRACKETS), (b'"warp_id"', scan.QUOTES))
MASK_KEYS = (b"[prdctMask", b"[execMask")
MOVING = (Lane.MTE1, Lane.MTE2, Lane.MTE3, Lane.FIXP)
REGISTER = re.compile(r"=(?P<value>(?:0x)?[0-9a-fA-F]{1,4}),\s*SPR:\s*(?P<name>(?:SUB)?BLOCKID)\b")
DTYPE = re.compile(r"\b[Dd]type:\s*(?P<kind>BF|F|S|U)(?P<bits>\d+)")
DTYPES = {"BF": "bfloat", "F": "float", "S": "int", "U": "uint"}


@dataclass
class CoreLog:
    """What one core's logs give. `columns` are those of the slices that the logs tell; ``step`` indexes `steps`, which
    are (pc, text, lane, dtype). `source`, `starts` and `ends` say in which of `texts` and where the operands of each
    slice stand, `ident` is the number that transfer logs call it by. `block` and `sub` are logical where the core read
    its own numbers, else physical. `edges` index slices."""

    files: CoreFiles
    block: int
    sub: int
    columns: dict[str, np.ndarray]
    steps: list[tuple[int, str, Lane, str]]
    texts: tuple[LogText, ...]
    source: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    ident: np.ndarray
    edges: np.ndarray
    losses: list[Loss] = field(default_factory=list)
    misses: int = UNKNOWN
    has_cache: bool = False
    has_control: bool = False
    scalar_busy: int = UNKNOWN

    def column(self, name: str) -> np.ndarray:
        """A slice column that the logs tell."""
        return self.columns[name]

    @property
    def count(self) -> int:
        """How many slices there are."""
        return int(self.starts.size)

    def add(
        self,
        lane: Lane,
        steps: np.ndarray,
        start: np.ndarray,
        end: np.ndarray,
        text: LogText,
        starts: np.ndarray,
        ends: np.ndarray,
    ) -> None:
        """Add slices that are no instructions of a pipe; their operands are spans of `text`."""
        size = steps.size
        told = {
            "lane": np.full(size, lane),
            "step": steps,
            "start": start,
            "end": end,
            "bytes": np.zeros(size, np.int64),
        }
        for name, column in self.columns.items():
            self.columns[name] = np.concatenate([column, told.get(name, np.full(size, UNKNOWN))])
        if not any(held is text for held in self.texts):
            self.texts = (*self.texts, text)
        source = next(place for place, held in enumerate(self.texts) if held is text)
        self.source = np.concatenate([self.source, np.full(size, source)])
        self.starts, self.ends = np.concatenate([self.starts, starts]), np.concatenate([self.ends, ends])
        self.ident = np.concatenate([self.ident, np.full(size, UNKNOWN)])


class Logs:
    """The logs of one core, read when asked for; what cannot be read is told in `losses`."""

    def __init__(self, files: CoreFiles) -> None:
        self.files = files
        self.losses: list[Loss] = []

    def lines(self, kind: LogKind) -> Lines | None:
        """A popped or retire log, None where there is none with a readable line."""
        parts = self.files.logs.get(kind)
        if not parts:
            return None
        try:
            lines = read_lines(parts)
        except OSError as error:
            self._unread(parts[0], error)
            return None
        if lines.cut:
            self.losses.append(cut_line(self.files.name, kind))
        return lines if len(lines) else None

    def points(self, kind: LogKind) -> tuple[LogText, np.ndarray] | None:
        """An instruction cache or control unit log, None where there is none with a readable line."""
        parts = self.files.logs.get(kind)
        if not parts:
            return None
        try:
            text, points = read_points(parts)
        except OSError as error:
            self._unread(parts[0], error)
            return None
        return (text, points) if points.shape[1] else None

    def _unread(self, file: Path, error: OSError) -> None:
        self.losses.append(unread_file(Path(error.filename or file), error.strerror or str(error)))


def read_core(files: CoreFiles, arch: str, wanted: frozenset[int] | None) -> tuple[CoreLog | None, list[Loss]]:
    """(the slices of a core, what is missing); no slices where a needed log is missing, or the core is not `wanted`."""
    logs = Logs(files)
    popped = logs.lines(LogKind.POPPED)
    block, sub = logical(popped, files) if popped else (files.number, files.sub)
    if wanted is not None and block not in wanted:
        return None, []
    retired = logs.lines(LogKind.RETIRED)
    if popped is None or retired is None:
        held = popped or retired
        kind = LogKind.RETIRED if popped else LogKind.POPPED
        logs.losses.append(missing_log(files.name, kind, held.pc if held else np.zeros(0, np.int64)))
        return None, logs.losses
    return _assemble(logs, popped, retired, arch, block, sub), logs.losses


def logical(popped: Lines, files: CoreFiles) -> tuple[int, int]:
    """(block, sub-block) that the core itself read from its special registers; the physical ones where it did not."""
    found: dict[str, int] = {}
    for row in popped.holding(b"BLOCKID", np.flatnonzero(popped.named(lambda name: SPECIAL in name))).tolist():
        if match := REGISTER.search(popped.detail(row)):
            found.setdefault(match["name"], int(match["value"], 16))
        if len(found) == 2:
            break
    if "BLOCKID" not in found or (files.kind == "vec" and "SUBBLOCKID" not in found):
        return files.number, files.sub
    return found["BLOCKID"], 0 if files.kind == "cube" else found.get("SUBBLOCKID", files.sub)


def _assemble(logs: Logs, popped: Lines, retired: Lines, arch: str, block: int, sub: int) -> CoreLog:
    name = logs.files.name
    marks, marking, broken = find_marks(retired, name)
    logs.losses += broken
    if marking.any():
        popped = popped.only(~is_marking(popped))
    retires = np.flatnonzero(~marking)
    rows, partner = _pair(logs, popped, retired, retires, arch)
    columns: dict[str, np.ndarray] = {}
    lanes = np.array([lane_of(*word) for word in popped.words], np.int64)
    columns["lane"] = lanes[popped.word[rows]]
    columns["start"], columns["end"] = popped.tick[rows], retired.tick[partner]
    columns["bytes"] = process_bytes(popped, rows, columns["lane"])
    columns |= _warps(popped, rows, retired, partner)
    log = CoreLog(
        logs.files,
        block,
        sub,
        columns,
        [],
        (popped.text, retired.text),
        np.zeros(rows.size, np.int64),
        popped.starts[rows],
        popped.ends[rows],
        _idents(popped, rows, columns["lane"]),
        flag_edges(popped, rows),
    )
    _take_longer(log, retired, partner)
    log.scalar_busy = _busy(columns, Lane.SCALAR)
    columns["step"] = _steps(log, popped, rows)
    _scalar(logs, log, popped.pc[rows])
    if marks:
        _marks(log, marks, retired)
    return log


def _pair(logs: Logs, popped: Lines, retired: Lines, retires: np.ndarray, arch: str) -> tuple[np.ndarray, np.ndarray]:
    """(lines of the popped log that are slices, their lines of the retire log)."""
    by_ident = arch in BY_IDENT and bool((popped.ident >= 0).any())
    pc, ident = (np.concatenate([getattr(popped, key), getattr(retired, key)[retires]]) for key in ("pc", "ident"))
    codes, examples = number(ident, np.where(ident < 0, pc, 0)) if by_ident else number(pc)
    partner, pop_fate, retire_fate = pair(
        codes[: len(popped)], popped.tick, codes[len(popped) :], retired.tick[retires], examples.size, not by_ident
    )
    sides = (
        ("have a pop and no retirement", popped.pc[pop_fate == UNMATCHED], popped.pc.size - (pop_fate == MERGED).sum()),
        ("have a retirement and no pop", retired.pc[retires[retire_fate == UNMATCHED]], retires.size),
        ("retire before they are popped", popped.pc[pop_fate == REVERSED], popped.pc.size),
    )
    logs.losses += [unpaired(logs.files.name, what, pcs, int(total)) for what, pcs, total in sides if pcs.size]
    rows = np.flatnonzero(partner >= 0)
    return rows, retires[partner[rows]]


def _warps(popped: Lines, rows: np.ndarray, retired: Lines, partner: np.ndarray) -> dict[str, np.ndarray]:
    """Columns ``warp`` and ``threads``, UNKNOWN where a slice is not SIMT; none where no slice can be. Threads are the
    bits that both masks have."""
    keys = [key for key, bit in WARP_KEYS if (popped.held | retired.held) & bit]
    if not keys:
        return {}
    warp = popped.numbers(keys, rows)
    warp = np.where(warp == UNKNOWN, retired.numbers(keys, partner), warp)
    masks = []
    for key in MASK_KEYS:
        theirs = retired.text.numbers(key, retired.starts[partner], retired.ends[partner], 16)
        ours = popped.text.numbers(key, popped.starts[rows], popped.ends[rows], 16)
        masks.append(np.where(theirs == UNKNOWN, ours, theirs))
    known = (masks[0] >= 0) & (masks[1] >= 0)
    return {"warp": warp, "threads": np.where(known, _bits(masks[0] & masks[1]), UNKNOWN)}


def _bits(values: np.ndarray) -> np.ndarray:
    """How many bits are set in each of (n,) int64."""
    if not (values > 0).any():
        return np.zeros(values.size, np.int64)
    return np.unpackbits(values.astype(np.int64).view(np.uint8).reshape(-1, 8), axis=1).sum(axis=1).astype(np.int64)


def _idents(popped: Lines, rows: np.ndarray, lane: np.ndarray) -> np.ndarray:
    """The numbers by which transfer logs speak of instructions, UNKNOWN for those that move nothing."""
    found = np.full(rows.size, UNKNOWN, np.int64)
    moving = np.flatnonzero(np.isin(lane, MOVING))
    ident = popped.ident[rows[moving]]
    found[moving] = ident if (ident >= 0).any() else popped.numbers(IDENT_KEYS, rows[moving])
    return found


def _take_longer(log: CoreLog, retired: Lines, partner: np.ndarray) -> None:
    """The operands of a slice are those of its pop, or of its retirement where the pop has none."""
    bare = np.flatnonzero(log.starts == log.ends)
    log.source[bare] = 1
    log.starts[bare], log.ends[bare] = retired.starts[partner[bare]], retired.ends[partner[bare]]


def _busy(columns: Mapping[str, np.ndarray], lane: Lane) -> int:
    rows = np.flatnonzero(columns["lane"] == lane)
    return int(union_lengths(np.zeros_like(rows), columns["start"][rows], columns["end"][rows], 1)[0])


def _steps(log: CoreLog, popped: Lines, rows: np.ndarray) -> np.ndarray:
    """Number the steps of the slices, and put them into `log.steps`."""
    codes, examples = number(popped.pc[rows], popped.word[rows])
    words = [(mnemonic, lane_of(pipe, mnemonic)) for pipe, mnemonic in popped.words]
    for row in rows[examples].tolist():
        mnemonic, lane = words[popped.word[row]]
        log.steps.append((int(popped.pc[row]), mnemonic, lane, dtype_of(popped.detail(row))))
    return codes


def dtype_of(detail: str) -> str:
    """``float32`` for operands with ``Dtype:F32``, empty where they name no type."""
    match = DTYPE.search(detail)
    return f"{DTYPES[match['kind']]}{match['bits']}" if match else ""


def _scalar(logs: Logs, log: CoreLog, pc: np.ndarray) -> None:
    """Fill in fetch and control, and add a slice for each miss of the instruction cache."""
    control, cache = logs.points(LogKind.CONTROL), logs.points(LogKind.CACHE)
    start = log.column("start")
    taken = start
    if control is not None:
        log.has_control = True
        log.columns["control"] = control_ticks(pc, start, control[1])
        taken = np.where(log.column("control") == UNKNOWN, start, log.column("control"))
    if cache is None:
        return
    text, points = cache
    log.has_cache = True
    log.columns["fetch"] = fetch_ticks(pc, taken, points)
    misses = of_kind(points, scan.MISS)
    log.misses = int(misses.shape[1])
    address, tick = misses[scan.POINT_ADDRESS], misses[scan.POINT_TICK]
    codes, examples = number(address)
    steps = codes + len(log.steps)
    log.steps += [(place, f"0x{place:x}", Lane.CACHEMISS, "") for place in address[examples].tolist()]
    log.add(Lane.CACHEMISS, steps, tick, tick + 1, text, misses[scan.POINT_START], misses[scan.POINT_END])


def _marks(log: CoreLog, marks: Sequence[Mark], lines: Lines) -> None:
    """Add a slice for each user mark, whose operands are those of the instruction that begins it."""
    keys = [(mark.pc, mark.name, Lane.USERMARK, "") for mark in marks]
    known = {key: len(log.steps) + place for place, key in enumerate(dict.fromkeys(keys))}
    log.steps += known
    rows = np.array([mark.row for mark in marks], np.int64)
    start, end = (np.array([getattr(mark, key) for mark in marks], np.int64) for key in ("start", "end"))
    steps = np.array([known[key] for key in keys], np.int64)
    log.add(Lane.USERMARK, steps, start, end, lines.text, lines.starts[rows], lines.ends[rows])
