"""What the timing model knows of a chip: the ``[timing]`` tables of the chip files. Every value has its source there.

Times are core clock cycles unless the name says otherwise; fractions are real, because what is known of them are means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Launching:
    """What passes around the cores' work: `overhead_us` before the first core starts, `mixed_us` more where a launch
    has both core types, `close_us` after the last one ends; `dispatch` cycles from one block's start to the next
    one's."""

    overhead_us: float
    mixed_us: float
    close_us: float
    dispatch: float


@dataclass(frozen=True, slots=True)
class InstructionCache:
    """Lines of `line_bytes`. The first instruction from a line that is not there costs `miss`, or `next` where it
    follows the line before (the line was asked for while that one ran)."""

    bytes_aic: int
    bytes_aiv: int
    line_bytes: int
    miss: float
    next: float


@dataclass(frozen=True, slots=True)
class Scalar:
    """The scalar unit: cycles for each instruction that a call executes besides the one it issues (`each`), for a load
    and a store of UB, of GM through the data cache, and the `depth` of a pipe's queue before which it stalls."""

    each: float
    issue: float
    ub_load: float
    ub_store: float
    cache_hit: float
    cache_miss_l2: float
    cache_miss_gm: float
    depth: int


@dataclass(frozen=True, slots=True)
class Vector:
    """``start + repeats * rate * conflicts`` keeps the vector unit busy; results are there `latency` later.

    `rates` has, for each class of instruction, the cycles of a repeat of 256 bytes for elements of 1, 2, 4 and 8 bytes.
    `operands` is the least for two sources and one destination (the ports of UB). `read_conflict`: cycles for each
    further read of one bank group in a repeat; `write_conflict`: for a repeat whose eight blocks all meet a read of
    their bank by another block. `ordered`: the hardware orders dependent instructions without their results being
    complete. """

    start: float
    latency: float
    operands: float
    read_conflict: float
    write_conflict: float
    ordered: bool
    rates: Mapping[str, list[float]] = field(hash=False)
    composed: Mapping[str, float] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Banks:
    """The UB as banks: the group of an address is ``(address >> group_shift) % groups``, its bank in the group
    ``(address >> bank_shift) % banks``; `reads` at a time from one group, but from one bank only one."""

    groups: int
    group_shift: int
    banks: int
    bank_shift: int
    reads: int
    relief: bool


@dataclass(frozen=True, slots=True)
class Cube:
    """``gap + m * n * k`` in fractals keeps the cube busy, `latency` later the result is there. `k` has, by element
    type, how many elements of k it multiplies in a cycle."""

    gap: float
    latency: float
    k: Mapping[str, int] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Load:
    """L1 to L0: ``setup + bytes / width`` busy, complete `latency` later. `transposed` is the width of a transposing
    load to L0B."""

    setup: float
    latency: float
    transposed: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """Copies to and from GM: ``max(spacing, setup + rows * max(row, bytes / rate))`` busy, complete `latency` later
    (`latency_hit` where L2 has it all). `row_nz`: of a copy that rearranges to NZ."""

    spacing: float
    setup: float
    row: float
    latency: float
    latency_hit: float
    row_nz: float = 0.0


@dataclass(frozen=True, slots=True)
class Output:
    """L0C outwards: busy ``setup + rows * max(row, bytes / rate)``, complete `latency` later. `elements` per cycle that
    the unit converts: of 8 and 16 bits, of 32 bits."""

    setup: float
    row: float
    latency: float
    elements: int
    elements_wide: int


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """GM and L2 for all cores: the shares of the theoretical rates that they reach (`gm`, `l2`; of that one `l2_nz`
    for copies that rearrange, `l2_short_nz` with rows of up to 1024 bytes), how much a written byte weighs in GM
    beside a read one, the `unit` of requests in bytes, the `sector` to which a part of a unit is rounded up, the share
    of the rate that rows shorter than 512 bytes reach (`short_row`; in copies that rearrange `short_row_nz`, and
    `gm_nz` with longer rows). `line` bytes and `ways` of the modelled L2."""

    gm: float
    l2: float
    l2_nz: float
    l2_short_nz: float
    write_weight: float
    unit: int
    sector: int
    short_row: float
    short_row_nz: float
    gm_nz: float
    line: int
    ways: int


@dataclass(frozen=True, slots=True)
class Synchronisation:
    """`flag`: from a flag's rise to the pipe that waits going on; `cross`: from the last set of a group of cores to
    those that wait; `message`: from a Matmul client's message to its server and back; `poll`: from a store that
    another core polls to its seeing it; `dcci` of one line and `dcci_all` of the whole cache."""

    flag: float
    cross: float
    message: float
    poll: float
    dcci: float
    dcci_all: float


@dataclass(frozen=True, slots=True)
class Timing:
    """All of it. `calls`: instructions that the scalar unit executes for one call, by name of the row or of its class,
    besides the row itself."""

    launch: Launching
    icache: InstructionCache
    scalar: Scalar
    calls: Mapping[str, float] = field(hash=False)
    vector: Vector
    banks: Banks
    cube: Cube
    mte1: Load
    mte2: Transfer
    mte3: Transfer
    fix: Output
    memory: SharedMemory
    sync: Synchronisation
