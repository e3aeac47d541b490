"""A folder of simulator dumps as a timeline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from npuscope.errors import UserError
from npuscope.npu.chip import Chip, load_chip
from npuscope.profiler.ingest.blocks import block_edges
from npuscope.profiler.ingest.code import CodeMap, NoCode, kernel_name, read_code
from npuscope.profiler.ingest.core import CoreLog, read_core
from npuscope.profiler.ingest.details import Details
from npuscope.profiler.ingest.files import DumpFolder, LogKind, find_folders
from npuscope.profiler.ingest.groups import number
from npuscope.profiler.ingest.losses import (
    NO_DUMPS,
    empty_file,
    large_file,
    missing_spans,
    no_code,
    no_control,
)
from npuscope.profiler.ingest.movement import transfer_table
from npuscope.trace.schema import CoreInfo, CoreType, Launch, Origin, Site, Space
from npuscope.trace.timeline import (
    CORE_COLUMNS,
    EDGE_COLUMNS,
    SLICE_COLUMNS,
    UNKNOWN,
    Lane,
    Loss,
    Source,
    Step,
    Timeline,
    empty,
)

SPANS_ON = ("2201",)
"""Architectures with scalar spans (D4)."""
CUBE_NUMBERS = {"2201": (range(0, 25),), "3510": (range(0, 18), range(54, 72))}
"""Physical numbers of cube cores, for files that do not say what their core is (opprof.md 4.1)."""


def read_dumps(folder: Path, chip: Chip | None = None, cores: Collection[int] | None = None) -> list[Timeline]:
    """The launches whose dumps lie in `folder` or below it, one for each folder with logs.

    `chip` is the one that was simulated; without it a likely one of its family is taken, see :func:`likely_chip`.
    `cores` limits what is read to blocks of these numbers. What is missing or broken is told in `Timeline.losses`; the
    rest is whole. Raises UserError where nothing can be read at all.
    """
    try:
        folders = find_folders(folder)
    except OSError as error:
        raise UserError(f"{folder} cannot be read: {error.strerror}") from None
    wanted = frozenset(cores) if cores is not None else None
    found: list[Timeline] = []
    lost: list[Loss] = []
    for dumps in folders:
        timeline, losses = read_folder(dumps, chip or likely_chip(dumps), wanted, len(found))
        if timeline is None:
            lost += losses
        else:
            found.append(timeline)
    if not found:
        why = [loss.text for loss in lost[:3]] or (
            ["none of the cores asked for is there"] if folders and wanted else []
        )
        raise UserError("; ".join([NO_DUMPS, *why]))
    found[0] = replace(found[0], losses=(*lost, *found[0].losses))
    return found


def likely_chip(dumps: DumpFolder) -> Chip:
    """A chip that leaves such logs: cores without sub-cores are those of Ascend310P3; instructions with IDs come from
    Ascend950PR; all else from Ascend910B1."""
    if all(core.kind in ("", "mix") for core in dumps.cores):
        return load_chip("Ascend310P3")
    for core in dumps.cores:
        for part in core.logs.get(LogKind.POPPED, [])[:1]:
            with part.open("rb") as file:
                if b"(ID:" in file.read(1 << 16):
                    return load_chip("Ascend950PR")
    return load_chip("Ascend910B1")


def read_folder(
    dumps: DumpFolder, chip: Chip, wanted: frozenset[int] | None, index: int
) -> tuple[Timeline | None, list[Loss]]:
    """(the launch of one folder, what it lacks); no launch where no core has both logs."""
    losses = [empty_file(file) for file in dumps.empty] + [large_file(file) for file in dumps.refused]
    logs: list[CoreLog] = []
    for files in dumps.cores:
        log, missing = read_core(files, chip.arch, wanted)
        losses += missing
        if log is not None:
            logs.append(log)
    if not logs:
        return None, losses
    losses += _missing_spans(logs) if chip.arch in SPANS_ON else []
    code, start = _code(dumps, logs, losses)
    timeline = _timeline(dumps, chip, logs, code, start, index)
    timeline.transfers, homeless = transfer_table(dumps, logs, timeline.slices)
    _bytes_of_transfers(timeline)
    return replace(timeline, losses=(*losses, *homeless)), []


def _missing_spans(logs: Sequence[CoreLog]) -> list[Loss]:
    """One sentence for all cores that lack the instruction cache log, one for those that lack the control unit's."""
    lacking = [log for log in logs if not log.has_cache]
    found = []
    if lacking:
        pcs = np.concatenate([_pcs(log) for log in lacking])
        found.append(missing_spans([log.files.name for log in lacking], pcs))
    if halves := [log.files.name for log in logs if log.has_cache and not log.has_control]:
        found.append(no_control(halves))
    return found


def _pcs(log: CoreLog) -> np.ndarray:
    return np.array([pc for pc, *_ in log.steps], np.int64)[log.column("step")]


def _code(dumps: DumpFolder, logs: Sequence[CoreLog], losses: list[Loss]) -> tuple[CodeMap, int]:
    """(source lines, the address at which the kernel was loaded): that of the folder's file, else the lowest pc."""
    lowest = min((pc for log in logs for pc, _, lane, _ in log.steps if lane is not Lane.CACHEMISS), default=0)
    start = dumps.start if dumps.start is not None else lowest
    if dumps.kernel is None:
        losses.append(no_code())
        return CodeMap(), start
    try:
        return read_code(dumps.kernel), start
    except NoCode as error:
        losses.append(no_code(str(error)))
        return CodeMap(), start


def _timeline(
    dumps: DumpFolder, chip: Chip, logs: Sequence[CoreLog], code: CodeMap, start: int, index: int
) -> Timeline:
    infos = _cores(logs, chip)
    steps, numbers = _steps(logs, code, start)
    offsets = np.cumsum([0] + [log.count for log in logs])
    slices = _slice_table(logs, numbers, offsets)
    begins, ends = (slices[SLICE_COLUMNS.index(name)] for name in ("start", "end"))
    blocks = len({info.block for info in infos})
    launch = Launch(index, _kernel(dumps, code), chip.name, infos, (blocks,), {}, {}, arch=chip.arch)
    return Timeline(
        launch,
        chip.name,
        float(chip.frequency_mhz),
        Source.SIMULATOR,
        int(ends.max(initial=0)),
        int(begins.min()) if begins.size else 0,
        steps,
        slices,
        _details(logs),
        edges=_edges(logs, infos, steps, slices, offsets),
        cores=_core_table(logs),
        notes={"dumps": str(dumps.path)},
    )


def _slice_table(logs: Sequence[CoreLog], numbers: Sequence[np.ndarray], offsets: np.ndarray) -> np.ndarray:
    """(SLICE_COLUMNS, slices) of all cores, one after the other; `numbers` are those of each core's steps."""
    table = np.empty((len(SLICE_COLUMNS), int(offsets[-1])), np.int64)
    for row, name in enumerate(SLICE_COLUMNS):
        for place, log in enumerate(logs):
            part = table[row, offsets[place] : offsets[place + 1]]
            if name == "core":
                part[:] = place
            elif name == "step":
                part[:] = numbers[place][log.column(name)]
            else:
                part[:] = log.columns.get(name, UNKNOWN)
    return table


def _kernel(dumps: DumpFolder, code: CodeMap) -> str:
    """The kernel's name: from its object, or from the folders ``<name>/<order>/dump``."""
    place = dumps.path.resolve()
    while place.name == "dump" or place.name.isdigit():
        place = place.parent
    return kernel_name(list(code.functions)) or place.name


def _cores(logs: Sequence[CoreLog], chip: Chip) -> list[CoreInfo]:
    """What each core is. Two cores that claim one logical number keep their physical ones."""
    claimed = [(_type(log, chip), log.block, log.sub) for log in logs]
    vectors = chip.cores.aiv_per_aic if any(kind is CoreType.AIC or sub for kind, _, sub in claimed) else 0
    infos = []
    for log, (kind, block, sub) in zip(logs, claimed, strict=True):
        if claimed.count((kind, block, sub)) > 1:
            block, sub = log.files.number, log.files.sub
        ending = f".{log.files.kind}core{sub}" if log.files.kind else ""
        counts = block * vectors + sub if vectors and kind is CoreType.AIV else block
        infos.append(CoreInfo(kind, counts, sub, f"core{block}{ending}"))
    return infos


def _type(log: CoreLog, chip: Chip) -> CoreType:
    kind = log.files.kind
    if kind == "vec":
        return CoreType.AIV
    if kind or not chip.split:
        return CoreType.AIC
    cube = any(log.files.number in numbers for numbers in CUBE_NUMBERS.get(chip.arch, ()))
    return CoreType.AIC if cube else CoreType.AIV


def _steps(logs: Sequence[CoreLog], code: CodeMap, start: int) -> tuple[list[Step], list[np.ndarray]]:
    """(the steps of all cores by address, for each core the number of each of its own)."""
    places: dict[tuple[int, str, Lane], str] = {}
    for log in logs:
        for pc, text, lane, dtype in log.steps:
            if not places.get((pc, text, lane)):
                places[pc, text, lane] = dtype
    order = sorted(places, key=lambda key: (key[0], key[2], key[1]))
    numbers = {key: place for place, key in enumerate(order)}
    frames = {pc: code.frames(pc - start) for pc in {key[0] for key in order}} if code.addresses else {}
    steps = [
        Step(pc, text, lane, Site(text, frames.get(pc, ())), Origin.USER, places[pc, text, lane])
        for pc, text, lane in order
    ]
    return steps, [np.array([numbers[key[:3]] for key in log.steps], np.int64) for log in logs]


def _details(logs: Sequence[CoreLog]) -> Details:
    texts = [text for log in logs for text in log.texts]
    offsets = np.cumsum([0] + [len(log.texts) for log in logs])
    source = np.concatenate([log.source + offset for log, offset in zip(logs, offsets, strict=False)])
    return Details(
        texts, source, np.concatenate([log.starts for log in logs]), np.concatenate([log.ends for log in logs])
    )


def _edges(
    logs: Sequence[CoreLog], infos: Sequence[CoreInfo], steps: Sequence[Step], slices: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    found = [empty(EDGE_COLUMNS)]
    for log, offset in zip(logs, offsets, strict=False):
        found.append(log.edges + np.array([[offset], [offset], [0], [0]]))
    found.append(block_edges(logs, infos, steps, slices, offsets))
    return np.concatenate(found, axis=1)


def _core_table(logs: Sequence[CoreLog]) -> np.ndarray:
    table = np.full((len(CORE_COLUMNS), len(logs)), UNKNOWN, np.int64)
    for place, log in enumerate(logs):
        if log.count:
            table[CORE_COLUMNS.index("start"), place] = log.column("start").min()
            table[CORE_COLUMNS.index("end"), place] = log.column("end").max()
        table[CORE_COLUMNS.index("scalar_busy"), place] = log.scalar_busy
        table[CORE_COLUMNS.index("icache_misses"), place] = log.misses
    return table


def _bytes_of_transfers(timeline: Timeline) -> None:
    """Process bytes that the operands do not tell are those of the slice's transfers to or from GM."""
    held = timeline.slice("bytes")
    with_gm = (timeline.transfer("source") == Space.GM) | (timeline.transfer("target") == Space.GM)
    owner = timeline.transfer("slice")[with_gm]
    codes, examples = number(owner)
    sums = np.bincount(codes, timeline.transfer("bytes")[with_gm], examples.size).astype(np.int64)
    slices = owner[examples]
    open_ones = held[slices] == UNKNOWN
    held[slices[open_ones]] = sums[open_ones]
