"""Records a run: instructions and accesses as flat integer lists, cut into batches of columns for the tools."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from npuscope.trace.footprint import Explicit
from npuscope.trace.schema import (
    ACCESS_COLUMNS,
    HOST_MEMORY,
    INSTRUCTION_COLUMNS,
    NO_LAUNCH,
    Buffer,
    Fault,
    HostEvent,
    HostKind,
    Launch,
    Site,
)

BATCH_ROWS = 1 << 14
"""Instructions per batch: bounds memory, and is large enough that a tool's per-batch cost does not matter."""


@dataclass(slots=True)
class Batch:
    """A run of consecutive instructions of one launch.

    `instruction` is (columns, rows) int64 in the order of INSTRUCTION_COLUMNS, `access` likewise. `first` is the row
    number of the batch's first instruction in its launch. `buffers`, `explicit` and `sites` are the launch's tables so
    far. `last` is true for the launch's final batch. `host` is what the host did with device memory since the batch
    before; after the last launch, one batch without a launch brings the rest (see `closing`).
    """

    launch: Launch
    first: int
    instruction: np.ndarray
    access: np.ndarray
    buffers: list[Buffer]
    explicit: list[Explicit]
    sites: list[Site]
    faults: list[Fault]
    last: bool
    host: Sequence[HostEvent] = ()

    @property
    def closing(self) -> bool:
        """Whether this batch belongs to no launch and only ends the trace."""
        return self.launch.index == NO_LAUNCH

    def column(self, name: str) -> np.ndarray:
        """An instruction column by name, (rows,)."""
        return self.instruction[INSTRUCTION_COLUMNS.index(name)]

    def access_column(self, name: str) -> np.ndarray:
        """An access column by name, (rows,)."""
        return self.access[ACCESS_COLUMNS.index(name)]


Consumer = Callable[[Batch], None]


def _columns(flat: list[int], width: int) -> np.ndarray:
    """A flat row-major list of integers as a (width, rows) int64 array."""
    table = np.frombuffer(struct.pack(f"{len(flat)}q", *flat), np.int64)
    return np.ascontiguousarray(table.reshape(-1, width).T)


def _joined(blocks: list[np.ndarray], flat: list[int], width: int) -> np.ndarray:
    """Rows that came as columns, or else one by one; a launch uses one way or the other."""
    return np.concatenate(blocks, axis=1) if blocks else _columns(flat, width)


@dataclass(slots=True)
class Recorder:
    """Collects one session's trace and hands finished batches to `consumers`."""

    consumers: list[Consumer] = field(default_factory=list)
    sites: list[Site] = field(default_factory=lambda: [Site("")])
    launches: int = 0
    launch: Launch | None = None
    buffers: list[Buffer] = field(default_factory=list)
    explicit: list[Explicit] = field(default_factory=list)
    instructions: list[int] = field(default_factory=list)
    accesses: list[int] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    rows: int = 0
    flushed: int = 0
    host: list[HostEvent] = field(default_factory=list)
    host_events: int = 0
    _blocks: list[np.ndarray] = field(default_factory=list)
    _access_blocks: list[np.ndarray] = field(default_factory=list)

    def add_site(self, site: Site) -> int:
        """Register a source location; returns its number."""
        self.sites.append(site)
        return len(self.sites) - 1

    def begin(self, launch: Launch) -> None:
        """Start recording `launch`; its index is set here."""
        launch.index = self.launches
        self.launches += 1
        self.launch = launch
        self.buffers = []
        self.explicit = []
        self.faults = []
        self.rows = self.flushed = 0

    def add_buffer(self, buffer: Buffer) -> int:
        """Register a buffer of the current launch; returns its number."""
        self.buffers.append(buffer)
        return len(self.buffers) - 1

    def add_explicit(self, starts: np.ndarray, nbytes: int) -> int:
        """Register explicit offsets; returns the (negative) footprint number to put in an access row."""
        self.explicit.append(Explicit(starts, nbytes))
        return -len(self.explicit)

    def add_host_event(
        self, kind: HostKind, site: int, target: int, source: int = HOST_MEMORY, size: int = 0, room: int = 0
    ) -> int:
        """Note what the host does with device memory between launches; returns the event's serial number."""
        self.host.append(HostEvent(self.host_events, kind, site, target, source, size, room))
        self.host_events += 1
        return self.host_events - 1

    def add_fault(self, fault: Fault) -> None:
        """Note something the machine could not do."""
        self.faults.append(fault)

    def add_columns(self, rows: np.ndarray) -> None:
        """Append instruction rows, (columns, rows) int64 in the order of INSTRUCTION_COLUMNS."""
        self._blocks.append(rows)
        self.rows += rows.shape[1]

    def add_access_columns(self, rows: np.ndarray) -> None:
        """Append access rows, (columns, rows) int64 in the order of ACCESS_COLUMNS."""
        self._access_blocks.append(rows)

    def flush(self, last: bool = False) -> None:
        """Cut a batch from what was recorded since the previous one and hand it to every consumer."""
        if self.consumers and self.launch is not None:
            batch = Batch(
                self.launch,
                self.flushed,
                _joined(self._blocks, self.instructions, len(INSTRUCTION_COLUMNS)),
                _joined(self._access_blocks, self.accesses, len(ACCESS_COLUMNS)),
                self.buffers,
                self.explicit,
                self.sites,
                self.faults,
                last,
                self._taken(),
            )
            for consumer in self.consumers:
                consumer(batch)
        self.flushed = self.rows
        self.instructions.clear()
        self.accesses.clear()
        self._blocks.clear()
        self._access_blocks.clear()

    def _taken(self) -> Sequence[HostEvent]:
        taken, self.host = self.host, []
        return taken

    def end(self) -> None:
        """Finish the current launch."""
        self.flush(last=True)
        self.launch = None

    def finish(self) -> None:
        """End the trace: hand over what the host did after the last launch, when it ever touched device memory."""
        if self.host_events:
            self.launch = Launch(NO_LAUNCH, "", "", (), (), {}, {})
            self.buffers, self.explicit, self.faults = [], [], []
            self.rows = self.flushed = 0
            self.flush()
            self.launch = None
