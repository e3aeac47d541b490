"""The error codes of the vendor's plug-in, which its log lines carry."""

from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """What came of a command."""

    SUC = 0
    PARAM = 1
    TYPE = 2
    VALUE = 3
    PTR = 4
    INTERNAL = 5
    MEMORY = 6
    NOT_SUPPORT = 7
    NOT_FOUND = 8
    UNAVAIL = 9
    SYSCALL = 10
    TIMEOUT = 11
    PERMISSION = 12

    @property
    def text(self) -> str:
        """The code in the vendor's words."""
        return _TEXTS[self]


_TEXTS = {
    Code.SUC: "success",
    Code.PARAM: "invalid parameter",
    Code.TYPE: "invalid type",
    Code.VALUE: "invalid value",
    Code.PTR: "invalid pointer",
    Code.INTERNAL: "internal error",
    Code.MEMORY: "memory error",
    Code.NOT_SUPPORT: "feature not supported",
    Code.NOT_FOUND: "resource not found",
    Code.UNAVAIL: "resource unavailable",
    Code.SYSCALL: "system call failed",
    Code.TIMEOUT: "timeout error",
    Code.PERMISSION: "permission error",
}
