"""Chips: what is known of each one, read from ``chips/*.toml``. The files carry the source of every value."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar, get_type_hints

from npuscope.errors import UserError
from npuscope.npu.overrides import numbers_of, overridden
from npuscope.npu.timing_facts import Timing
from npuscope.trace.schema import Pipe, Space

DEFAULT_CHIP = "Ascend910B1"
"""What a launch runs on where nobody names a chip."""

FRACTAL_ROWS = 16
"""Rows and columns of what the cube multiplies in one step (hardware.md 2.4)."""

Table = dict[str, Any]
Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Cores:
    """How many cores. On a coupled chip (``Chip.split`` false) ``aic`` counts the coupled cores, ``aiv`` the separate
    vector cores beside them, and ``aiv_per_aic`` is 0 (hardware.md 1.2)."""

    aic: int
    aiv: int
    aiv_per_aic: int


@dataclass(frozen=True, slots=True)
class Memory:
    """One on-core memory, in bytes; ``bytes`` is 0 where the chip has none (hardware.md 1.3).

    ``user_bytes`` is what a kernel may address, ``mix_reserved`` what a mixed kernel loses of it at the top.
    """

    bytes: int
    user_bytes: int
    alignment: int
    mix_reserved: int = 0

    def limit(self, *, mix: bool) -> int:
        """First byte offset that a kernel may not touch; ``mix`` says that it runs on AIC and AIV together."""
        return self.user_bytes - self.mix_reserved if mix else self.user_bytes


@dataclass(frozen=True, slots=True)
class Memories:
    """The memories of one core (of an AIC and its AIV on a split chip)."""

    ub: Memory
    l1: Memory
    l0a: Memory
    l0b: Memory
    l0c: Memory
    bt: Memory
    fb: Memory
    ssb: Memory


@dataclass(frozen=True, slots=True)
class L2Cache:
    """The cache that all cores share; what is not published is None (hardware.md 1.2)."""

    bytes: int
    line_bytes: int | None = None
    ways: int | None = None
    sets: int | None = None


@dataclass(frozen=True, slots=True)
class DataCache:
    """The scalar unit's cache of GM in one core (hardware.md 1.4)."""

    bytes: int
    line_bytes: int


@dataclass(frozen=True, slots=True)
class DataCaches:
    """The scalar data cache of each kind of core."""

    aic: DataCache
    aiv: DataCache


@dataclass(frozen=True, slots=True)
class Identifiers:
    """How many ids there are of each kind, 0 where the chip lacks the kind (hardware.md 1.6).

    Event ids count per (source pipe, destination pipe), queue buffers per position, cross-core flags and mutexes per
    core. ``cross_core_depth`` is the highest count that one cross-core flag holds.
    """

    event_ids: int
    user_event_ids: int
    queue_buffers: int
    cross_core_flags: int
    cross_core_depth: int
    mode4_flags_aic: int
    mode4_flags_aiv: int
    mutex_ids: int


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Theoretical rates of the whole chip in GB/s (hardware.md 1.2)."""

    gm: float
    l2: float


@dataclass(frozen=True, slots=True)
class DataPath:
    """One way for data inside a core: the pipe that moves it and the width of the port in bytes per cycle (hardware.md
    2.1), and the rate that one core sustains in GB/s (hardware.md 6.5). None where not published."""

    name: str
    pipe: Pipe
    port: int | None
    ceiling: float | None


@dataclass(frozen=True, slots=True)
class PeakRates:
    """Rates in GB/s by name that usage is measured against (opprof.md 6.3): of boards with `memory` of that vendor,
    ``default`` for what holds for all boards."""

    memory: str
    rates: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip. ``arch`` is the NPU architecture ("2002", "2201", "3510"); ``split`` says that cube and vector cores
    are separate; ``max_blocks`` bounds the blocks of a launch; ``features`` are abilities other than data paths;
    ``peaks`` are read through `peak_rates`, ``widths`` through `width`."""

    name: str
    family: str
    arch: str
    split: bool
    frequency_mhz: int
    max_blocks: int
    cores: Cores
    memories: Memories
    l2: L2Cache
    dcache: DataCaches
    identifiers: Identifiers
    bandwidth: Bandwidth
    paths: tuple[DataPath, ...]
    features: tuple[str, ...]
    timing: Timing
    system_counter_mhz: int | None = None
    peaks: tuple[PeakRates, ...] = ()
    widths: tuple[tuple[str, int], ...] = ()

    def memory(self, space: Space) -> Memory:
        """The on-core memory of a space; KeyError for GM, which no core owns."""
        if space is Space.GM:
            raise KeyError("GM is not an on-core memory")
        memory: Memory = getattr(self.memories, space.name.lower())
        return memory

    def path(self, name: str) -> DataPath | None:
        """The data path of that name, such as ``gm_to_ub`` or ``fill_l1``; None where the chip has no such path."""
        return next((path for path in self.paths if path.name == name), None)

    def peak_rates(self, memory: str | None = None) -> dict[str, float]:
        """Rates in GB/s that usage is measured against: of one core by path, ``mte2_write`` of all that MTE2 writes,
        ``gm`` and ``l2`` of the whole chip (opprof.md 6.3). `memory` is the vendor of the board's memory where that
        makes a difference: "CJ". KeyError for another one."""
        rates = {path.name: path.ceiling for path in self.paths if path.ceiling is not None}
        rates |= {"gm": self.bandwidth.gm, "l2": self.bandwidth.l2}
        cases = {peaks.memory: dict(peaks.rates) for peaks in self.peaks}
        rates |= cases.get("default", {})
        return rates if memory is None else rates | cases[memory]

    def width(self, name: str) -> int | None:
        """Bytes a cycle that a unit of one core reads or writes at most, such as ``l1_write``; ``l1`` and ``ub`` are
        reading and writing together (opprof.md 6.3). None where the chip has none of that name."""
        return dict(self.widths).get(name)

    @property
    def l2_line(self) -> int:
        """Bytes of an L2 line as timelines count them, also where its size is not published."""
        return self.timing.memory.line

    def cube_operations(self, element: str) -> int:
        """Operations of one cube core in a cycle on elements of that type (``half``, ``hf32``, ``int8``, ``fp8``,
        ``fp4``): two for each multiply-accumulate of two fractals of 16 rows (opprof.md 6.4). `half` for a type that
        the cube does not take."""
        depths = self.timing.cube.k
        return 2 * FRACTAL_ROWS * FRACTAL_ROWS * depths.get(element, depths["half"])

    def has(self, name: str) -> bool:
        """Whether the chip has the data path or feature of that name."""
        return name in self.features or self.path(name) is not None


def chip_names() -> list[str]:
    """Names of the known chips as the vendor spells them, sorted."""
    return sorted(table["name"] for table in _tables().values())


Overrides = Mapping[str, float]
"""Values of one run in place of the file's, by dotted name: ``{"timing.mte2.setup": 30, "frequency_mhz": 1500}``."""


def load_chip(name: str, overrides: Overrides | None = None) -> Chip:
    """The chip of that name: ``Ascend910B1``, ``ascend910b1`` and ``910B1`` are the same, in any case.

    Raises UserError for any other name, listing the known chips, and for an override that names no number of the
    chip's file or does not fit it, listing near ones.
    """
    key = name.strip().lower()
    stem = _stems().get(key) or _stems().get(f"ascend{key}")
    if stem is None:
        raise UserError(f"unknown chip {name!r}; known chips: {', '.join(chip_names())}")
    if not overrides:
        return _chip(stem)
    return _made(stem, overridden(_resolve(stem, _tables()), overrides))


def fact_names(name: str) -> list[str]:
    """Every number of a chip that `load_chip` can override, by dotted name, sorted."""
    load_chip(name)  # for its error
    key = name.strip().lower()
    return numbers_of(_resolve(_stems().get(key) or _stems()[f"ascend{key}"], _tables()))


@cache
def _chip(stem: str) -> Chip:
    return _made(stem, _resolve(stem, _tables()))


def _made(stem: str, table: Table) -> Chip:
    ceilings: dict[str, float] = table.pop("ceilings", {})
    table["paths"] = tuple(
        DataPath(name, Pipe[path["pipe"]], path.get("port"), ceilings.pop(name, None))
        for name, path in table["paths"].items()
    )
    if ceilings:
        raise ValueError(f"{stem}: ceilings for paths that the chip lacks: {', '.join(sorted(ceilings))}")
    table["peaks"] = tuple(PeakRates(memory, tuple(rates.items())) for memory, rates in table.get("peaks", {}).items())
    table["widths"] = tuple(table.get("widths", {}).items())
    table["features"] = tuple(table["features"])
    return _record(Chip, table, stem)


@cache
def _tables() -> dict[str, Table]:
    """Every chip file as written, by file name without the ending."""
    folder = files("npuscope.npu").joinpath("chips")
    return {
        entry.name.removesuffix(".toml"): tomllib.loads(entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    }


@cache
def _stems() -> dict[str, str]:
    """File name without the ending, for every lower-case name that a chip answers to."""
    return {
        name.lower(): stem
        for stem, table in _tables().items()
        for name in (stem, table["name"], *table.get("aliases", ()))
    }


def _resolve(stem: str, tables: Mapping[str, Table], below: tuple[str, ...] = ()) -> Table:
    """A chip's table with what it extends merged in. Aliases belong to one chip and are not passed on."""
    if stem in below:
        raise ValueError(f"chip files extend each other in a circle: {' -> '.join((*below, stem))}")
    if stem not in tables:
        raise ValueError(f"{below[-1] if below else stem}: no chip file named {stem}")
    own = {key: value for key, value in tables[stem].items() if key not in ("extends", "aliases")}
    parent = tables[stem].get("extends")
    return _merge(_resolve(parent, tables, (*below, stem)) if parent else {}, own)


def _merge(base: Table, own: Table) -> Table:
    """``base`` with the values of ``own`` put over it, table by table."""
    merged = dict(base)
    for key, value in own.items():
        old = merged.get(key, {})
        merged[key] = _merge(old if isinstance(old, dict) else {}, value) if isinstance(value, dict) else value
    return merged


def _record(cls: type[Record], table: Table, where: str) -> Record:
    """A dataclass filled from a table; ValueError where a key is missing or unknown, or a value has the wrong type."""
    assert is_dataclass(cls)
    hints = get_type_hints(cls)
    known = {field.name for field in fields(cls)}
    needed = {field.name for field in fields(cls) if field.default is MISSING}
    if wrong := (table.keys() - known) | (needed - table.keys()):
        raise ValueError(f"{where}: missing or unknown keys: {', '.join(sorted(wrong))}")
    return cls(**{key: _value(hints[key], value, f"{where}.{key}") for key, value in table.items()})


def _value(hint: Any, value: Any, where: str) -> Any:
    if isinstance(hint, type) and is_dataclass(hint):
        if not isinstance(value, dict):
            raise ValueError(f"{where}: a table is expected, found {value!r}")
        return _record(hint, value, where)
    expected = int if hint == int | None else hint
    if hint is float and type(value) is int:
        return float(value)
    if isinstance(expected, type) and type(value) is not expected:
        raise ValueError(f"{where}: {expected.__name__} is expected, found {value!r}")
    return value
