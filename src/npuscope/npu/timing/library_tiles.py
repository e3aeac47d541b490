"""The Matmul object's tiles: what one row of the trace does in many steps along K, and what its rows wait for.

The trace has one copy, one load and one product for each base tile (ascendc.adv.matmul_compute); the device takes K in
steps, as many as its L0 buffers ask for, and a step of one pipe begins when the step before it has passed the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.npu.chip import Chip
from npuscope.npu.timing.operands import Operands
from npuscope.npu.timing.work import Work
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import OPCODES
from npuscope.trace.values import among

COPY, LOAD, BIAS, MMAD = (OPCODES.number(name) for name in ("copy_gm_to_l1", "load_data", "copy_l1_to_bt", "mmad"))
FIXPIPE = OPCODES.number("fixpipe")
BUFFERS = 2
"""Halves of an L0 buffer, and tiles of operands that are in L1 at a time."""
FRACTAL = 16


@dataclass(frozen=True)
class Tiles:
    """`product`: (tiles,) the row of each tile's product; `steps`: (tiles,) along K; `inputs`: (rows,) the tile that a
    copy or load belongs to, -1 for other rows."""

    product: np.ndarray
    steps: np.ndarray
    inputs: np.ndarray


def tiles_of(rows: LaunchRows, operands: Operands, chip: Chip) -> Tiles:
    """The tiles of a launch. A product of the library shows no operands in L0; what the core copied and loaded since
    its last product is its input."""
    opcode, core = rows.column("opcode"), rows.column("core")
    silent = np.diff(operands.first) == 0
    product = np.flatnonzero((opcode == MMAD) & silent & (rows.column("work") > 0))
    inputs = np.full(opcode.size, -1, np.int64)
    if not product.size:
        return Tiles(product, np.ones(0, np.int64), inputs)
    size = np.array([_size(rows, row) for row in product.tolist()])
    widest = np.maximum(rows.column("a")[product], rows.column("b")[product])
    room = chip.memories.l0a.bytes // BUFFERS
    each = np.maximum(room // np.maximum(widest * size, 1) // FRACTAL * FRACTAL, FRACTAL)
    parts = np.flatnonzero(among(opcode, (COPY, LOAD, BIAS)))
    for number in np.unique(core[product]).tolist():
        mine = np.flatnonzero(core[product] == number)
        own = parts[core[parts] == number]
        tile = np.searchsorted(product[mine], own)
        inputs[own[tile < mine.size]] = mine[tile[tile < mine.size]]
    return Tiles(product, -(-rows.column("c")[product] // each), inputs)


def _size(rows: LaunchRows, product: int) -> int:
    """Bytes of an element of the operands: those of the loads before the product tell."""
    for row in range(product - 1, max(product - 64, -1), -1):
        if rows.column("opcode")[row] == LOAD and rows.column("core")[row] == rows.column("core")[product]:
            elements = int(rows.column("a")[row] * rows.column("b")[row])
            return max(int(rows.column("work")[row]) // max(elements, 1), 1)
    return 2


def spread(tiles: Tiles, rows: LaunchRows, work: Work, chip: Chip) -> None:
    """Every step of a load and a product pays for its start."""
    loads = np.flatnonzero((tiles.inputs >= 0) & (rows.column("opcode") == LOAD))
    work.busy[loads] += (tiles.steps[tiles.inputs[loads]] - 1) * chip.timing.mte1.setup
    work.busy[tiles.product] += (tiles.steps - 1) * chip.timing.cube.gap


def tile_links(tiles: Tiles, rows: LaunchRows, busy: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(earlier rows, later rows, delays): a load follows its copy and a product its loads by one step, which makes the
    delay negative; copies of the tile after the next one wait for L1, a product for the tile before it to leave L0C."""
    opcode = rows.column("opcode")
    found: list[tuple[int, int, float]] = []
    inputs = np.flatnonzero(tiles.inputs >= 0)
    order = inputs[np.argsort(tiles.inputs[inputs], kind="stable")]
    starts = np.searchsorted(tiles.inputs[order], np.arange(tiles.product.size + 1))
    last_loads: dict[int, list[list[int]]] = {}
    leaving = _fixpipes(rows, tiles)
    for tile, product in enumerate(tiles.product.tolist()):
        share = 1 - 1 / int(tiles.steps[tile])
        core = int(rows.column("core")[product])
        earlier = last_loads.setdefault(core, [])
        copy, loads = -1, []
        for row in order[starts[tile] : starts[tile + 1]].tolist():
            if opcode[row] == COPY:
                copy = row
                if len(earlier) >= BUFFERS:
                    found.extend((load, row, 0.0) for load in earlier[-BUFFERS])
                continue
            if copy >= 0:
                found.append((copy, row, -share * min(busy[copy], busy[row])))
            found.append((row, product, -share * min(busy[row], busy[product])))
            copy = -1
            loads.append(row)
        earlier.append(loads)
        if leaving[tile] >= 0:
            found.append((leaving[tile], product, 0.0))
    table = np.array(found, np.float64).reshape(-1, 3)
    return table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2]


def _fixpipes(rows: LaunchRows, tiles: Tiles) -> list[int]:
    """For each tile the last row of Fixpipe on its core before it, -1 where there is none."""
    core = rows.column("core")
    out = np.flatnonzero(rows.column("opcode") == FIXPIPE)
    found = []
    for product in tiles.product.tolist():
        mine = out[core[out] == core[product]] if out.size < 64 else out
        place = int(np.searchsorted(mine, product)) - 1
        while place >= 0 and core[mine[place]] != core[product]:
            place -= 1
        found.append(int(mine[place]) if place >= 0 else -1)
    return found


def leaving_links(tiles: Tiles, rows: LaunchRows) -> tuple[np.ndarray, np.ndarray]:
    """(products, rows of Fixpipe): what leaves L0C without a flag follows the product before it on its core. These are
    the library's tiles, and those that a unit flag guards."""
    opcode, core = rows.column("opcode"), rows.column("core")
    products, out = np.flatnonzero(opcode == MMAD), np.flatnonzero(opcode == FIXPIPE)
    own = np.zeros(opcode.size, bool)
    own[tiles.product] = True
    earlier, later = [], []
    for number in np.unique(core[out]).tolist():
        mine, leaves = products[core[products] == number], out[core[out] == number]
        place = np.searchsorted(mine, leaves) - 1
        leaves, before = leaves[place >= 0], mine[place[place >= 0]]
        guarded = own[before] | (rows.column("d")[leaves] & 3 > 1)
        earlier.append(before[guarded])
        later.append(leaves[guarded])
    nothing = np.empty(0, np.int64)
    return np.concatenate([nothing, *earlier]), np.concatenate([nothing, *later])
