"""The trace schema, version 2. Everything a tool may know about a kernel run is defined here.

Tables (all integers are int64 columns unless said otherwise):

* ``instruction``: one row per instruction in the order it took effect, columns :data:`INSTRUCTION_COLUMNS`.
* ``access``: zero or more rows per instruction, columns :data:`ACCESS_COLUMNS`. The bytes touched are those of the
  footprint (:mod:`npuscope.trace.footprint`) laid at ``address``.
* ``site``: where in the user's source an instruction comes from, :class:`Site`.
* ``buffer``: a piece of memory that something owns, :class:`Buffer`. A TQue buffer gets a new id each time it is
  allocated, so that the use of a stale tensor can be told from the use of its successor.
* ``launch``: one kernel launch, :class:`Launch`.
* ``host``: what the host does with device memory between launches, :class:`HostEvent`, in order.
* ``fault``: what the machine itself refused or could not go on with, :class:`Fault`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod
from typing import Any

VERSION = 2

INSTRUCTION_COLUMNS = ("core", "pipe", "opcode", "site", "origin", "a", "b", "c", "d", "work")
"""``core`` indexes ``Launch.cores``; ``a``..``d`` are up to four operands (event or flag id; m, n, k; repeat; buffer);
``work`` is elements on V, bytes on MTE and FIX pipes, multiply-accumulates on M."""

ACCESS_COLUMNS = ("instruction", "role", "buffer", "address", "footprint")
"""``instruction`` is the row number in the launch; ``footprint`` >= 0 indexes the footprint table, < 0 the launch's
explicit offsets (``-1`` is the first)."""

NO_SITE = 0
"""Row 0 of the site table: no source location."""

HOST_MEMORY = 0
"""Stands for an address in the host's own memory."""

NO_BLOCK = -1
"""Stands for a device address that belongs to no block, and for no block at all."""


class Pipe(IntEnum):
    """Execution pipes, with the numbers Ascend C gives them."""

    S = 0
    V = 1
    M = 2
    MTE1 = 3
    MTE2 = 4
    MTE3 = 5
    ALL = 6
    FIX = 10


class Space(IntEnum):
    """Memory spaces of the device."""

    GM = 0
    UB = 1
    L1 = 2
    L0A = 3
    L0B = 4
    L0C = 5
    BT = 6
    FB = 7


class Role(IntEnum):
    """What an access does to its bytes."""

    READ = 0
    WRITE = 1
    ATOMIC = 2
    SPOIL = 3  # a write whose bytes the device leaves undefined
    REWRITE = 4  # a write to GM of what is there already; told apart where a launch has several cores and is recorded


class Origin(IntEnum):
    """Who asked for an instruction: the user's line, the Ascend C framework, the device compiler, the hardware."""

    USER = 0
    FRAMEWORK = 1
    COMPILER = 2
    HARDWARE = 3


class HostKind(IntEnum):
    """What the host does with device memory."""

    MALLOC = 0
    FREE = 1
    COPY = 2
    SET = 3


class CoreType(IntEnum):
    """AIC: cube core. AIV: vector core."""

    AIC = 0
    AIV = 1


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """One line of the user's source."""

    file: str
    line: int
    column: int = 0
    function: str | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """Where an instruction comes from: the innermost user frame first, then its callers; ``name`` is the operation."""

    name: str
    frames: tuple[SourceFrame, ...] = ()


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory with an owner. ``base`` is a device address (GM) or a byte offset inside the space; ``size`` in bytes.

    ``undefined`` are the bytes of a kernel's argument that had no value when the launch began: (start, end) offsets
    from ``base``, sorted, not empty and not touching. Only an allocation without content (``np.empty``) leaves any.
    An argument that lies in memory which the script allocated on the device itself names that ``block``.
    """

    space: Space
    core: int  # index in Launch.cores, -1 when all cores share it
    base: int
    size: int
    kind: str  # "argument", "tensor", "queue", "tbuf", "workspace", "space"
    name: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    site: int = NO_SITE
    generation: int = 0
    writeable: bool = True
    undefined: tuple[tuple[int, int], ...] = ()
    block: int = NO_BLOCK  # serial of the HostEvent that allocated the memory an argument lies in
    strides: tuple[int, ...] = ()  # of a view, in elements; () where the elements follow each other row by row


VOLATILE, AGREES, REWRITES, TURN = 16, 32, 64, 128
"""Bits of the operand ``d`` of a memory operation of a tile program, beside the number of its memory semantics (1
relaxed, 2 acquire, 3 release, 4 both): a volatile load; a store of a value that no other program which stored there at
the same time differs from; a store of what was there before; set for every other batch of programs, so that two batches
can be told apart. The operand ``a`` tells the shape of the tile, ``b`` and
``c`` which lane touches what: where all three are equal, each lane of two operations touches the same place."""

UNIT_FLAG, ADDS, TYPED = 3, 4, 8
"""The operand ``d`` of mmad: bits of the unit flag; set where it adds to what L0C holds; and what the place of its
element type in ELEMENT_TYPES is multiplied by. The last two are there only where the row shows no operands in L0: those
of the library's own tiles. Such a row of load_data has in ``d`` the memory that it fills."""

ELEMENT_TYPES = (
    "", "int4", "int8", "uint8", "float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu",
)  # fmt: skip
"""Types of elements that the cube multiplies, "" for one that is not told."""

INSIDE_BLOCK = "npuscope: inside the shape of the block pointer"
"""What a kernel swears, without its author's knowing, of each block pointer that it uses."""

AFTER_LAUNCH = "kernel launch"
"""Name of the site of a free that the DSL itself does when a launch has ended."""


@dataclass(frozen=True, slots=True)
class HostEvent:
    """One operation of the host on device memory. `serial` counts them over the whole session.

    ``target`` is the device address of a new or freed block, or of what a copy or set writes; ``source`` what a copy
    reads (each HOST_MEMORY or NO_BLOCK where that is so); `size` in bytes; `room` what a copy says its target holds.
    Addresses are made up and none is given out twice.
    """

    serial: int
    kind: HostKind
    site: int
    target: int
    source: int = HOST_MEMORY
    size: int = 0
    room: int = 0


@dataclass(frozen=True, slots=True)
class CoreInfo:
    """One core of a launch. ``block`` is what get_block_idx returns, ``sub_block`` the half of a mixed kernel.
    ``label`` is what a vendor's log calls the core, ``core3.veccore1``; a trace has none."""

    type: CoreType
    block: int
    sub_block: int = 0
    label: str = ""

    @property
    def name(self) -> str:
        """For people: ``AIV 3``."""
        return f"{self.type.name} {self.block}"


@dataclass(frozen=True, slots=True)
class ProgramInfo:
    """One program of a tile kernel's grid."""

    block: int
    place: tuple[int, ...]
    type: CoreType = CoreType.AIV
    sub_block: int = 0

    @property
    def name(self) -> str:
        """For people: ``program (3, 0, 0)``, shorter where the grid has fewer axes."""
        return f"program {self.place[0]}" if len(self.place) == 1 else f"program {self.place}"


class Programs(Sequence[Any]):
    """The programs of a grid, the first axis counting fastest; made when asked for, because there may be millions."""

    __slots__ = ("grid",)

    def __init__(self, grid: tuple[int, ...]) -> None:
        self.grid = grid

    def __len__(self) -> int:
        return prod(self.grid)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        number = rest = int(index) % len(self)
        place = []
        for extent in self.grid:
            place.append(rest % extent)
            rest //= extent
        while len(place) > 1 and self.grid[len(place) - 1] == 1:
            place.pop()
        return ProgramInfo(number, tuple(place))


NO_LAUNCH = -1
"""The index of the launch that is none: it carries the host's events after the last one."""


@dataclass(slots=True)
class Launch:
    """One kernel launch: what ran, where, with which arguments."""

    index: int
    kernel: str
    chip: str
    cores: Sequence[Any]  # CoreInfo, or Programs for a tile kernel
    grid: tuple[int, ...]
    arguments: dict[str, str]
    options: dict[str, str]
    frame: SourceFrame | None = None
    arch: str = ""  # NPU architecture of the chip: "2201", "2002", "3510"
    capacity: dict[Space, int] = field(default_factory=dict)  # bytes of each on-chip memory that a kernel may use
    device: int = 0  # the number of the device that the script had chosen

    @property
    def of_programs(self) -> bool:
        """Whether it ran the programs of a tile kernel: there are no pipes, and nothing orders two programs but
        atomic operations."""
        return isinstance(self.cores, Programs)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something the machine could not do. ``code`` is a stable word, ``facts`` its particulars as plain values."""

    code: str
    instruction: int
    core: int
    site: int
    facts: Mapping[str, Any] = field(default_factory=dict)


class Opcodes:
    """Names of instructions and their numbers; numbers are given in order of first use and saved with a trace."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """The number of the instruction called `name`."""
        known = self._numbers.get(name)
        if known is None:
            known = self._numbers[name] = len(self.names)
            self.names.append(name)
        return known


OPCODES = Opcodes()
