"""The columns that slices have in every flavour of trace.json: names, times, arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from npuscope.profiler.instruction_timeline.drawn import NAMES, Drawn, kind_of
from npuscope.profiler.instruction_timeline.lanes import FLAG_COLOUR, lane_colour
from npuscope.profiler.writers.event_file import EVENT
from npuscope.profiler.writers.text_rows import Hex, Micros, Text, Texts, Whole, quoted
from npuscope.trace.schema import Site
from npuscope.trace.timeline import UNKNOWN, Step, Timeline, detail_parts
from npuscope.trace.values import few_distinct

RANGE = 1 << 18
"""Slices whose operands are held as text at a time."""

TIME, LENGTH, HEAD, TRACK, ARGUMENTS, DETAIL, NUMBER, TAIL, THREADS, BYTES, GROUP = range(11)
COLUMNS = 11
OPERANDS = (Text(DETAIL), Hex(NUMBER), Text(TAIL))
BODY = (
    Text(HEAD), b'"X","ts":', Micros(TIME), b',"dur":', Micros(LENGTH), Text(TRACK), Text(ARGUMENTS), *OPERANDS,
    Text(THREADS),
)  # fmt: skip
MOVED = (b'","process_bytes":', Whole(BYTES), b"}")
SPANNED = (b',"group_id":"', Whole(GROUP), b'"}')
FORMS = ((*BODY, b'"}}'), (*BODY, *MOVED, b"}"), (*BODY, b'"}', *SPANNED), (*BODY, *MOVED, *SPANNED))
"""A slice: plain, with bytes (1), in a group (2), with both (3)."""


def picoseconds(cycles: np.ndarray, mhz: float) -> np.ndarray:
    """Cycles as picoseconds, that is as microseconds with six decimals, (rows,) int64."""
    return np.rint(cycles * (1e6 / mhz)).astype(np.int64)


def stack_text(site: Site) -> str:
    """The lines that an instruction comes from, the innermost first, one to a line."""
    return "\n".join(f"{frame.file}:{frame.line}" for frame in site.frames)


def step_head(step: Step) -> bytes:
    """The beginning of the events of an instruction, up to the kind of event."""
    kind = kind_of(step.text)
    colour = FLAG_COLOUR if kind in NAMES else lane_colour(step.lane)
    return EVENT + b'{"name":' + quoted(NAMES.get(kind, step.text)) + b',"cname":"%s","ph":' % colour.encode()


def step_arguments(step: Step) -> bytes:
    """The arguments of the events of an instruction, up to the operands."""
    return b',"args":{"pc_addr":"0x%x","code":%s,"detail":"' % (step.address, quoted(stack_text(step.site)))


class SliceRows:
    """Columns of a timeline's slices, made for a range of them at a time. `tracks` are texts of which `track` (slices,)
    names the one of each slice: its pid and tid, with a comma before them."""

    def __init__(self, timeline: Timeline, drawn: Drawn, tracks: Sequence[bytes], track: np.ndarray) -> None:
        self.timeline = timeline
        self.drawn = drawn
        self.track = track
        self.start = picoseconds(drawn.start, timeline.mhz)
        self.end = picoseconds(drawn.end, timeline.mhz)
        self._tracks = tracks
        self._warps = bool((timeline.slice("warp") != UNKNOWN).any())
        self._heads = [step_head(step) for step in timeline.steps]
        self._arguments = [step_arguments(step) for step in timeline.steps]

    def tracks(self, texts: Texts, which: np.ndarray) -> np.ndarray:
        """The numbers of the texts of some slices' tracks."""
        numbers, place = few_distinct(self.track[which], len(self._tracks))
        return texts.numbers(self._tracks[number] for number in numbers.tolist())[place]

    def columns(self, texts: Texts, which: np.ndarray) -> np.ndarray:
        """:data:`COLUMNS` columns for the slices `which`."""
        timeline = self.timeline
        step = timeline.slice("step")[which]
        columns = np.zeros((COLUMNS, which.size), np.int64)
        columns[TIME], columns[LENGTH] = self.start[which], self.end[which] - self.start[which]
        columns[HEAD] = texts.numbers(self._heads)[step]
        columns[TRACK] = self.tracks(texts, which)
        columns[ARGUMENTS] = texts.numbers(self._arguments)[step]
        columns[DETAIL : TAIL + 1] = operand_columns(timeline, texts, which)
        columns[THREADS] = self._threads(texts, which)
        columns[BYTES] = timeline.slice("bytes")[which]
        columns[GROUP] = which
        return columns

    def _threads(self, texts: Texts, which: np.ndarray) -> np.ndarray:
        """What SIMT instructions say about their threads."""
        if not self._warps:
            return np.full(which.size, texts.number(b""))
        warp, threads = self.timeline.slice("warp")[which], self.timeline.slice("threads")[which]
        distinct, index = np.unique(np.where(warp == UNKNOWN, UNKNOWN, threads), return_inverse=True)
        words = (b"" if number == UNKNOWN else b", [threadNum:%d]" % number for number in distinct.tolist())
        return texts.numbers(words)[index]


def ranges(which: np.ndarray) -> Iterator[np.ndarray]:
    """Slices in pieces of a size that memory can bear."""
    for first in range(0, which.size, RANGE):
        yield which[first : first + RANGE]


def operand_columns(timeline: Timeline, texts: Texts, which: np.ndarray) -> np.ndarray:
    """(3, those): the operands of some slices as the inside of a JSON string; text, hexadecimal number, text."""
    parts = detail_parts(timeline.details, which)
    heads, tails = (texts.more([quoted(text)[1:-1] for text in side]) for side in (parts.heads, parts.tails))
    return np.stack([heads + parts.which, parts.number, tails + parts.which])
