"""Which earlier rows a row waits for (hardware.md 3.2, 3.4): flags, cross-core flags, exchanges through memory,
messages.

The trace says which set let which wait go, because it is in the order of effects; only the times are to be found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.timing.kinds import MTE3, Kind
from npuscope.npu.timing.library_tiles import Tiles, leaving_links, tile_links
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import OPCODES
from npuscope.trace.timeline import UNKNOWN, EdgeKind
from npuscope.trace.values import among

SET_FLAG, WAIT_FLAG = OPCODES.number("set_flag"), OPCODES.number("wait_flag")
CROSS_SET, CROSS_WAIT = OPCODES.number("cross_core_set"), OPCODES.number("cross_core_wait")
IB_SET, IB_WAIT = OPCODES.number("ib_set"), OPCODES.number("ib_wait")
NOTIFY_NEXT, WAIT_BEFORE = OPCODES.number("notify_next_block"), OPCODES.number("wait_pre_block")
SYNC_ALL = OPCODES.number("sync_all")
POST, NOTIFY, KFC_WAIT = (OPCODES.number(name) for name in ("kfc_post", "kfc_notify", "kfc_wait"))
SOFT, LEAVE = 2, 1
NO_EDGE = -1
QUEUE_FLAGS = 16


@dataclass(frozen=True)
class Links:
    """(links,) each: row `later` goes on `delay` cycles after row `earlier` has fired; `kind` is an EdgeKind or
    NO_EDGE, `number` the flag's. `at_issue`: the scalar unit itself waits, before it issues `later`."""

    earlier: np.ndarray
    later: np.ndarray
    delay: np.ndarray
    kind: np.ndarray
    number: np.ndarray
    at_issue: np.ndarray


def links_of(rows: LaunchRows, slot: np.ndarray, tiles: Tiles, busy: np.ndarray, chip: Chip) -> Links:
    """Every link between two rows of a launch; `busy`: (rows,) cycles that each keeps its pipe."""
    sync = chip.timing.sync
    earlier, later, delay = tile_links(tiles, rows, busy)
    none = np.zeros(later.size, np.int64)
    products, leaving = leaving_links(tiles, rows)
    found = [
        _linked(*_flags(rows), sync.flag, EdgeKind.FLAG),
        _linked(*_tickets(rows), sync.cross, EdgeKind.CROSS),
        _linked(*_exchanges(rows, slot), sync.poll, EdgeKind.CROSS),
        _linked(*_soft_syncs(rows, slot), sync.poll, NO_EDGE),
        _linked(*_posts(rows), sync.message, EdgeKind.CROSS, at_issue=True),
        _linked(*_answers(rows), sync.message, EdgeKind.CROSS),
        (earlier, later, delay, none + NO_EDGE, none, none > 0),
        _linked(products, leaving, np.zeros(leaving.size, np.int64), 0.0, NO_EDGE),
    ]
    columns = [np.concatenate([one[index] for one in found]) for index in range(6)]
    return Links(*columns)


def _linked(
    earlier: np.ndarray, later: np.ndarray, number: np.ndarray, delay: float, kind: int, at_issue: bool = False
) -> tuple[np.ndarray, ...]:
    size = later.size
    return (earlier, later, np.full(size, delay), np.full(size, int(kind)), number, np.full(size, at_issue))


Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Earlier rows, later rows, numbers."""


def _pairs(found: list[tuple[int, int, int]]) -> Pairs:
    table = np.array(found, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _flags(rows: LaunchRows) -> Pairs:
    """Each wait_flag with the set_flag before it of the same core, event and flag. Flags of queue buffers have their
    number in d, those of the library's own copies the buffer in c, a program's their id in b."""
    opcode = rows.column("opcode")
    place = np.flatnonzero((opcode == SET_FLAG) | (opcode == WAIT_FLAG))
    core, a, b, c, d = (rows.column(name)[place] for name in ("core", "a", "b", "c", "d"))
    number = np.where(d >= QUEUE_FLAGS, d, np.where(c > 0, (c << 20) + b, b))
    key = (core * 64 + a) * (1 << 42) + number
    order = np.argsort(key, kind="stable")
    sets = opcode[place][order] == SET_FLAG
    same = key[order][1:] == key[order][:-1]
    hit = np.flatnonzero(same & sets[:-1] & ~sets[1:]) + 1
    return place[order[hit - 1]], place[order[hit]], b[order[hit]]


def _tickets(rows: LaunchRows) -> Pairs:
    """Each cross-core wait with all sets of its ticket."""
    opcode, ticket = rows.column("opcode"), rows.column("d")
    sets, waits = np.flatnonzero(opcode == CROSS_SET), np.flatnonzero(opcode == CROSS_WAIT)
    sets = sets[np.argsort(ticket[sets], kind="stable")]
    first = np.searchsorted(ticket[sets], ticket[waits], "left")
    count = np.searchsorted(ticket[sets], ticket[waits], "right") - first
    later = np.repeat(waits, count)
    within = np.arange(later.size) - np.repeat(np.cumsum(count) - count, count)
    return sets[np.repeat(first, count) + within], later, rows.column("a")[later]


def _exchanges(rows: LaunchRows, slot: np.ndarray) -> Pairs:
    """IBWait after IBSet and IBSet after the IBWait before it, WaitPreBlock after NotifyNextBlock, by the slot's
    address: what the later one sees is the store that follows the earlier one's row."""
    opcode = rows.column("opcode")
    codes = (IB_SET, IB_WAIT, NOTIFY_NEXT, WAIT_BEFORE)
    last: dict[int, int] = {}
    found: list[tuple[int, int, int]] = []
    for row in np.flatnonzero(among(opcode, codes)):
        address, code = int(rows.column("d")[row]), int(opcode[row])
        before = last.get(address)
        if before is not None and code != NOTIFY_NEXT:
            found.append((_next_on(rows, slot, before), int(row), int(rows.column("b")[row])))
        if code != WAIT_BEFORE:
            last[address] = int(row)
    return _pairs(found)


def _next_on(rows: LaunchRows, slot: np.ndarray, row: int) -> int:
    """The first row of MTE3 after `row` on its core, `row` itself where there is none."""
    core = rows.column("core")
    for start in range(row, min(row + (1 << 16), core.size), 256):
        part = slice(start, start + 256)
        found = np.flatnonzero((core[part] == core[row]) & (slot[part] == MTE3))
        if found.size:
            return start + int(found[0])
    return row


def _soft_syncs(rows: LaunchRows, slot: np.ndarray) -> Pairs:
    """The end of a SyncAll through GM with every core's store of its own slot."""
    place = np.flatnonzero((rows.column("opcode") == SYNC_ALL) & (rows.column("b") == SOFT))
    arrived: dict[int, list[int]] = {}
    found: list[tuple[int, int, int]] = []
    for row in place:
        phase, epoch = int(rows.column("a")[row]), int(rows.column("c")[row])
        if phase != LEAVE:
            arrived.setdefault(epoch, []).append(_next_on(rows, slot, int(row)))
        else:
            found.extend((one, int(row), 0) for one in arrived.get(epoch, ()))
    return _pairs(found)


def _posts(rows: LaunchRows) -> Pairs:
    """What a Matmul's server does first after each message, with the message."""
    core = rows.column("core")
    posts = np.flatnonzero(rows.column("opcode") == POST)
    if not posts.size:
        return _pairs([])
    order = np.argsort(core, kind="stable")
    starts = np.searchsorted(core[order], np.arange(core.max() + 2))
    found: dict[int, int] = {}
    for row, server in zip(posts.tolist(), rows.column("b")[posts].tolist(), strict=True):
        mine = order[starts[server] : starts[server + 1]]
        place = int(np.searchsorted(mine, row))
        if place < mine.size:
            found[int(mine[place])] = row
    return _pairs([(post, later, UNKNOWN) for later, post in found.items()])


def _answers(rows: LaunchRows) -> Pairs:
    """Each wait of a Matmul's client with its server's last answer."""
    opcode, core, b = rows.column("opcode"), rows.column("core"), rows.column("b")
    place = np.flatnonzero((opcode == NOTIFY) | (opcode == KFC_WAIT))
    last: dict[tuple[int, int], int] = {}
    found = []
    for row in place.tolist():
        if opcode[row] == NOTIFY:
            last[int(core[row]), int(b[row])] = row
        elif (int(b[row]), int(core[row])) in last:
            found.append((last[int(b[row]), int(core[row])], row, UNKNOWN))
    return _pairs(found)


def kinds_waiting(kind: np.ndarray, links: Links) -> np.ndarray:
    """(rows,) the kinds of rows, where what has a link but would not wait (the end of a SyncAll) is made to."""
    waiting = kind.copy()
    waiting[links.later[~links.at_issue & (kind[links.later] == Kind.DRAIN)]] = Kind.WAIT
    return waiting
