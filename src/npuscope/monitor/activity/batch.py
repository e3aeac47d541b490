"""Records of one kind as columns.

Schema: each kind has the columns below and no others, all of one length. Times are nanoseconds of the host's wall
clock (int64). Names (`name`, `domain`, `type`, `comm`, `algorithm`) are numbers of texts in the process's `Strings`
(int32). A device, stream, process or thread that does not apply is -1 (int64 columns, because the wire has unsigned 32
bits).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.activity.kinds import APIS, Kind

Column = NDArray[Any]

_API = {"start": "i8", "end": "i8", "process": "i8", "thread": "i8", "correlation": "u8", "name": "i4"}
_MEMORY_SET = {"bytes": "u8", "start": "i8", "end": "i8", "device": "i8", "stream": "i8", "correlation": "u8",
               "asynchronous": "u1"}  # fmt: skip

COLUMNS: Mapping[Kind, Mapping[str, str]] = {
    **dict.fromkeys(APIS, _API),
    Kind.MARKER: {
        "flag": "u4", "side": "u4", "time": "i8", "id": "u8", "process": "i8", "thread": "i8", "device": "i8",
        "stream": "i8", "name": "i4", "domain": "i4",
    },
    Kind.KERNEL: {
        "start": "i8", "end": "i8", "device": "i8", "stream": "i8", "correlation": "u8", "type": "i4", "name": "i4",
    },
    Kind.HCCL: {
        "start": "i8", "end": "i8", "device": "i8", "stream": "i8", "bandwidth": "f8", "name": "i4", "comm": "i4",
    },
    Kind.MEMORY: {
        "operation": "u4", "memory": "u4", "correlation": "u8", "start": "i8", "end": "i8", "address": "u8",
        "bytes": "u8", "process": "i8", "device": "i8", "stream": "i8",
    },
    Kind.MEMSET: {"value": "u4", **_MEMORY_SET},
    Kind.MEMCPY: {"direction": "u4", **_MEMORY_SET},
    Kind.COMMUNICATION: {
        "data_type": "u4", "count": "u8", "device": "i8", "stream": "i8", "start": "i8", "end": "i8",
        "algorithm": "i4", "name": "i4", "comm": "i4", "correlation": "u8",
    },
}  # fmt: skip
"""Columns and their numpy types, by kind."""


@dataclass(frozen=True)
class Batch:
    """Records of one kind, in the order in which their source gave them."""

    kind: Kind
    columns: Mapping[str, Column]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def where(self, keep: Column) -> Batch:
        """The records for which `keep` (bool, or indices) says so."""
        return Batch(self.kind, {name: column[keep] for name, column in self.columns.items()})

    @property
    def end(self) -> Column:
        """When each record ended; a marker's record has one time only."""
        return self.columns["time" if self.kind is Kind.MARKER else "end"]


def batch(kind: Kind, columns: Mapping[str, Any]) -> Batch:
    """A batch from columns or lists. Raises ValueError unless they are the kind's, all of one length."""
    schema = COLUMNS[kind]
    if columns.keys() != schema.keys():
        raise ValueError(f"{kind.label} has the columns {', '.join(schema)}, not {', '.join(columns)}")
    made = {name: np.asarray(columns[name], dtype) for name, dtype in schema.items()}
    if len({len(column) for column in made.values()}) > 1:
        raise ValueError(f"the columns of {kind.label} differ in length")
    return Batch(kind, made)


def joined(batches: Sequence[Batch]) -> Batch:
    """Batches of one kind, at least one, behind each other."""
    names = batches[0].columns
    return Batch(batches[0].kind, {name: np.concatenate([part[name] for part in batches]) for name in names})
