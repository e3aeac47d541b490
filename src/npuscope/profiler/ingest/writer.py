"""A timeline as the logs that a vendor simulator would have left (opprof.md 4.1, 4.2).

What the format has no place for is left out: source lines, queue entry times, bank conflicts, cache hits, work.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from npuscope.profiler.cores import core_names
from npuscope.profiler.ingest.files import SMALLEST_TRANSFERS, LogKind
from npuscope.profiler.ingest.marks import BEGIN, END, IDS
from npuscope.profiler.ingest.process_bytes import MOVERS
from npuscope.trace.schema import Space
from npuscope.trace.timeline import UNKNOWN, EdgeKind, Lane, Timeline

PIPES = {Lane.VECTOR: "VEC"}
"""What logs call a lane, where that is not its own name."""
UNIT_NAMES = {
    Space.GM: "B",
    Space.L1: "L1",
    Space.L0A: "L0A",
    Space.L0B: "L0B",
    Space.L0C: "L0C",
    Space.BT: "BT",
    Space.FB: "FB",
}
NO_INSTRUCTIONS = (Lane.CACHEMISS, Lane.USERMARK)
NAME = re.compile(r"core(?P<number>\d+)(?:\.\w+?core(?P<sub>\d+))?")
WARP_THREADS = 32
SCHEDULERS = 4


def write_dumps(timeline: Timeline, folder: Path) -> list[Path]:
    """Write the logs of every core into `folder`, which is made where it is missing; returns the files' paths. Raises
    OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    names = core_names(timeline.launch)
    numbers = np.array([int(NAME.match(name)["number"]) for name in names], np.int64)  # type: ignore[index]
    idents = _idents(timeline, numbers)
    operands = _operands(timeline)
    logs: dict[str, list[str]] = {}
    core = timeline.slice("core")
    order = np.argsort(core, kind="stable")
    bounds = np.searchsorted(core[order], np.arange(len(names) + 1))
    for place, name in enumerate(names):
        rows = order[bounds[place] : bounds[place + 1]]
        if rows.size:
            for kind, lines in _core_logs(timeline, rows, idents, operands).items():
                logs[f"{name}.{kind.value}_log.dump"] = lines
    for number, lines in _transfer_logs(timeline, numbers, names, idents).items():
        logs[f"core{number}.{LogKind.TRANSFERS.value}_log.dump"] = lines
    written = []
    for name, lines in logs.items():
        file = folder / name
        text = "\n".join(lines) + "\n"
        if name.endswith(f".{LogKind.TRANSFERS.value}_log.dump"):
            text = text.ljust(SMALLEST_TRANSFERS, "\n")  # a shorter one would pass for empty
        file.write_text(text, encoding="utf-8")
        written.append(file)
    return written


def _idents(timeline: Timeline, numbers: np.ndarray) -> np.ndarray:
    """A number for each instruction, counted over the sub-cores of a core."""
    block = numbers[timeline.slice("core")]
    order = np.argsort(block, kind="stable")
    counted = np.empty(block.size, np.int64)
    first = np.searchsorted(block[order], block[order])
    counted[order] = np.arange(block.size) - first
    return counted


def _operands(timeline: Timeline) -> dict[int, str]:
    """The operands of slices that set a flag or wait for it: both name the two pipes and the flag."""
    lane = timeline.slice("lane")
    found = {}
    for source, target, kind, number in timeline.edges.T.tolist():
        if kind == EdgeKind.FLAG:
            text = f"PIPE:{_pipe(int(lane[source]))}, TRIGGER PIPE:{_pipe(int(lane[target]))}, FLAG ID:{number}, "
            found[source] = found[target] = text
    return found


def _pipe(lane: int) -> str:
    return PIPES.get(Lane(lane), Lane(lane).name)


def _core_logs(
    timeline: Timeline, rows: np.ndarray, idents: np.ndarray, operands: dict[int, str]
) -> dict[LogKind, list[str]]:
    lane, step, start, end = (timeline.slice(name)[rows] for name in ("lane", "step", "start", "end"))
    plain = ~np.isin(lane, NO_INSTRUCTIONS)
    heads, names = _heads(timeline)
    tails = [
        f"{heads[number]} (ID: {ident:06d}) {names[number]}  {_detail(timeline, row, operands)}"
        for number, row, ident in zip(
            step[plain].tolist(), rows[plain].tolist(), idents[rows[plain]].tolist(), strict=True
        )
    ]
    logs = {
        LogKind.POPPED: _timed(start[plain], tails),
        LogKind.RETIRED: _timed(
            np.concatenate([end[plain], start[lane == Lane.USERMARK], end[lane == Lane.USERMARK]]),
            [*tails, *_mark_lines(timeline, step[lane == Lane.USERMARK])],
        ),
    }
    address = np.array([held.address for held in timeline.steps], np.int64)[step]
    fetch, control = timeline.slice("fetch")[rows], timeline.slice("control")[rows]
    misses, fetched, taken = lane == Lane.CACHEMISS, plain & (fetch != UNKNOWN), plain & (control != UNKNOWN)
    cache = [
        (int(tick), f"icache read address is 0x{place:x}, size is 0x80, type:1, last:1, status is MISS")
        for tick, place in zip(start[misses], address[misses].tolist(), strict=True)
    ]
    cache += [
        (int(tick), f"lookup_tag is fetch req addr:0x{place:x}")
        for tick, place in zip(fetch[fetched], address[fetched].tolist(), strict=True)
    ]
    if cache:
        logs[LogKind.CACHE] = _points(cache)
    if taken.any():
        logs[LogKind.CONTROL] = _points(
            (int(tick), f"is_single_issue instr, pc:0x{place:x}")
            for tick, place in zip(control[taken], address[taken].tolist(), strict=True)
        )
    return logs


def _heads(timeline: Timeline) -> tuple[list[str], list[str]]:
    """(what stands between tick and ID, mnemonic) of each step. The encoding is made up."""
    heads = [
        f"(PC: 0x{step.address:08x}) {_pipe(step.lane):<9}: (Binary: 0x{(step.address >> 2) & 0xFFFFFFFF:08x})"
        for step in timeline.steps
    ]
    return heads, [step.text for step in timeline.steps]


def _detail(timeline: Timeline, row: int, operands: dict[int, str]) -> str:
    """The operands of one slice, with what else the format can say of it."""
    text = operands.get(row)
    if text is not None:
        return text
    text = timeline.details[row]
    moved, warp, threads = (int(timeline.slice(name)[row]) for name in ("bytes", "warp", "threads"))
    if moved >= 0 and timeline.slice("lane")[row] in MOVERS:
        text = f"{text}, processed_bytes:{moved}"
    if warp != UNKNOWN:
        masks = (
            f", [prdctMask:{(1 << WARP_THREADS) - 1:08x}],[execMask:{(1 << threads) - 1:08x}]" if threads >= 0 else ""
        )
        text = f"{text} [warpId:{warp}] [schId:{warp % SCHEDULERS}]{masks}"
    return text


def _mark_lines(timeline: Timeline, steps: np.ndarray) -> list[str]:
    """First the beginnings of all marks, then their ends."""
    numbers = {text: place % IDS for place, text in enumerate(sorted({timeline.steps[step].text for step in steps}))}
    lines = []
    for base in (BEGIN, END):
        for step in steps.tolist():
            mark = timeline.steps[step]
            digits = re.fullmatch(r"Mark 0x([0-9])", mark.text)
            number = int(digits[1]) if digits else numbers[mark.text]
            lines.append(
                f"(PC: 0x{mark.address:08x}) SCALAR   : (Binary: 0x02106900) MOV_SPR_XN  SPR:LPCNT, "
                f"XN:X6=0x{base + number:x},"
            )
    return lines


def _timed(ticks: np.ndarray, tails: list[str]) -> list[str]:
    order = np.argsort(ticks, kind="stable")
    return [
        f"[info] [{tick:08d}] {tails[place]}" for tick, place in zip(ticks[order].tolist(), order.tolist(), strict=True)
    ]


def _points(points: Iterable[tuple[int, str]]) -> list[str]:
    return [f"[info] {tick}: {text}" for tick, text in sorted(points)]


def _transfer_logs(
    timeline: Timeline, numbers: np.ndarray, names: list[str], idents: np.ndarray
) -> dict[int, list[str]]:
    """By core number: each request is sent and answered at the side of GM, or at the side that is read where GM takes
    no part; the other side is named once."""
    subs = [int(NAME.match(name)["sub"] or 0) for name in names]  # type: ignore[index]
    core = timeline.slice("core")[timeline.transfer("slice")]
    lines: dict[int, list[tuple[int, str]]] = defaultdict(list)
    columns = [
        timeline.transfer(name).tolist()
        for name in ("slice", "source", "target", "address", "bytes", "requests", "start", "end")
    ]
    request = 0
    for tag, (place, (row, source, target, address, size, requests, start, end)) in enumerate(
        zip(core.tolist(), zip(*columns, strict=True), strict=True)
    ):
        out = lines[int(numbers[place])]
        units = [UNIT_NAMES.get(Space(space), f"UB{subs[place]}") for space in (source, target)]
        told, other = f"{units[0]}RIF", f"{units[1]}WIF"
        if target == Space.GM:
            told, other = other, told
        count = max(requests, 1)
        ids = f"tag_id: {tag}, instr_id: {int(idents[row])}"
        each, rest = divmod(size, count)
        at = max(address, 0)
        for number in range(count):
            part = each + (number < rest)
            sent, answered = (start + (end - start) * step // count for step in (number, number + 1))
            where = f"addr: 0x{at:x}, " if address != UNKNOWN else ""
            out.append((sent, f"{told} send_req, {where}size: {part}, {ids}, req_id: {request}"))
            out.append((answered, f"{told} recv_rsp, uop_cnt: 1, {ids}, req_id: {request}"))
            at += part
            request += 1
        out.append((end, f"{other} send_req, size: {size}, {ids}, req_id: {request}"))
        request += 1
    return {number: _points(points) for number, points in sorted(lines.items())}
