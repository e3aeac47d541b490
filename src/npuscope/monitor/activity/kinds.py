"""The kinds of activity and the numbers that stand in their records, as in the vendor's public activity header."""

from __future__ import annotations

import enum


class Kind(enum.IntEnum):
    """A kind of record; `label` is how people write it."""

    MARKER = 1
    KERNEL = 2
    API = 3
    HCCL = 4
    MEMORY = 5
    MEMSET = 6
    MEMCPY = 7
    COMMUNICATION = 9
    ACL_API = 10
    NODE_API = 11
    RUNTIME_API = 12

    @property
    def label(self) -> str:
        """`Kernel`, `AclAPI`, ..."""
        return _LABELS[self]


_LABELS = {
    Kind.MARKER: "Marker",
    Kind.KERNEL: "Kernel",
    Kind.API: "API",
    Kind.HCCL: "Hccl",
    Kind.MEMORY: "Memory",
    Kind.MEMSET: "MemSet",
    Kind.MEMCPY: "MemCpy",
    Kind.COMMUNICATION: "Communication",
    Kind.ACL_API: "AclAPI",
    Kind.NODE_API: "NodeAPI",
    Kind.RUNTIME_API: "RuntimeAPI",
}

BY_LABEL = {label: kind for kind, label in _LABELS.items()}
APIS = (Kind.API, Kind.ACL_API, Kind.NODE_API, Kind.RUNTIME_API)
"""Calls on the host; their records look alike."""
UNFILTERED = frozenset({Kind.MEMORY, Kind.MEMSET, Kind.MEMCPY})
"""Kinds whose records have no name, so that no filter touches them."""


class Flag(enum.IntFlag):
    """What a marker's record stands for."""

    NONE = 0
    INSTANT = 1
    START = 2
    END = 4
    INSTANT_WITH_DEVICE = 8
    START_WITH_DEVICE = 16
    END_WITH_DEVICE = 32


ANY_INSTANT = Flag.INSTANT | Flag.INSTANT_WITH_DEVICE
ANY_START = Flag.START | Flag.START_WITH_DEVICE
ANY_END = Flag.END | Flag.END_WITH_DEVICE


class Side(enum.IntEnum):
    """Where a marker's record was taken."""

    HOST = 0
    DEVICE = 1


DATA_TYPES = {
    0: "INT8", 1: "INT16", 2: "INT32", 3: "FP16", 4: "FP32", 5: "INT64", 6: "UINT64", 7: "UINT8", 8: "UINT16",
    9: "UINT32", 10: "FP64", 11: "BFP16", 12: "INT128", 14: "HIF8", 15: "FP8E4M3", 16: "FP8E5M2", 17: "FP8E8M0",
    65535: "INVALID_TYPE",
}  # fmt: skip
"""Element types of a collective."""
