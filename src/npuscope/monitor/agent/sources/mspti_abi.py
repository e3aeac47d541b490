"""The public C interface of the vendor's activity library, `libmspti.so`.

Names, signatures and numbers are those of its public headers (mspti_activity.h, mspti_callback.h, mspti_result.h).
Three things the headers do not say but that its open source shows, and that matter here:

* The library calls the buffer callbacks while it holds the lock that every recording thread needs, from threads of
  its own and from those of the job. A callback that waits for the interpreter's lock can therefore stop a job for
  good: ours run without it (`mspti_code`).
* Its next-record call remembers in a thread-local variable how far the walk has come. A walk that is left before its
  end must be wound back: a call that says that the buffer has 0 bytes does so (`Library.rewind`).
* Once it was given no buffer it asks again for every record, and hands the missing buffer back as null.
"""

from __future__ import annotations

import ctypes
import enum
import os
from collections.abc import Iterator
from pathlib import Path

from npuscope.monitor.agent.sources.source import Unavailable

NAME = "libmspti.so"
INVALID = 0xFFFFFFFF
"""A device or stream that does not apply."""


class Result(enum.IntEnum):
    """What the library's functions return (msptiResult)."""

    SUCCESS = 0
    INVALID_PARAMETER = 1
    MULTIPLE_SUBSCRIBERS = 2
    MAX_LIMIT_REACHED = 3
    DEVICE_OFFLINE = 4
    QUEUE_EMPTY = 5
    WITHOUT_PRELOAD = 6
    INNER = 999


_TEXTS: dict[int, str] = {
    Result.INVALID_PARAMETER: "it does not know this",
    Result.MULTIPLE_SUBSCRIBERS: "it has a subscriber already",
    Result.MAX_LIMIT_REACHED: "a limit is reached",
    Result.DEVICE_OFFLINE: "the device is offline",
    Result.WITHOUT_PRELOAD: "it was not preloaded",
    Result.INNER: "an error inside it",
}

_U32, _SIZE, _POINTER, _TEXT = ctypes.c_uint32, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
_NEEDED = {
    "msptiSubscribe": (ctypes.POINTER(_POINTER), _POINTER, _POINTER),
    "msptiUnsubscribe": (_POINTER,),
    "msptiActivityRegisterCallbacks": (_POINTER, _POINTER),
    "msptiActivityEnable": (_U32,),
    "msptiActivityDisable": (_U32,),
    "msptiActivityGetNextRecord": (_POINTER, _SIZE, ctypes.POINTER(_POINTER)),
    "msptiActivityFlushAll": (_U32,),
}
_WELCOME = {
    "msptiActivityFlushPeriod": (_U32,),
    "msptiActivityDisableMarkerDomain": (_TEXT,),
    "msptiActivityEnableMarkerDomain": (_TEXT,),
}
"""What older versions of the library may lack."""


def describe(result: int) -> str:
    """What a result means, with its number: `it was not preloaded (result 6)`."""
    return f"{_TEXTS.get(result, 'an error')} (result {result})"


class Library:
    """The loaded library. Its functions return a result (`Result`, or another number) and release the interpreter's
    lock while they run."""

    def __init__(self, path: str) -> None:
        """Raises Unavailable when the file cannot be loaded or lacks a function."""
        self.path = path
        try:
            self._handle = ctypes.CDLL(path)
        except OSError as error:
            raise Unavailable(f"{path} cannot be loaded: {error}") from None
        for name, arguments in {**_NEEDED, **_WELCOME}.items():
            function = getattr(self._handle, name, None)
            if function is not None:
                function.argtypes, function.restype = arguments, ctypes.c_int
            elif name in _NEEDED:
                raise Unavailable(f"{path} has no function {name}: it is not a version of the library that can be used")
        self._subscriber = _POINTER()

    def subscribe(self) -> int:
        return int(self._handle.msptiSubscribe(ctypes.byref(self._subscriber), None, None))

    def unsubscribe(self) -> int:
        return int(self._handle.msptiUnsubscribe(self._subscriber))

    def register(self, request: int, completed: int) -> int:
        """Set the addresses of the two buffer callbacks."""
        return int(self._handle.msptiActivityRegisterCallbacks(request, completed))

    def enable(self, kind: int) -> int:
        return int(self._handle.msptiActivityEnable(kind))

    def disable(self, kind: int) -> int:
        return int(self._handle.msptiActivityDisable(kind))

    def flush(self) -> int:
        """Have every buffer with complete records handed over; returns when that is done."""
        return int(self._handle.msptiActivityFlushAll(1))

    def flush_period(self, milliseconds: int) -> int:
        """Hand over full buffers this often; 0 leaves it to the library."""
        return self._welcome("msptiActivityFlushPeriod", milliseconds)

    def disable_domain(self, name: str) -> int:
        """Take no markers of a domain; all domains are on at first."""
        return self._welcome("msptiActivityDisableMarkerDomain", name.encode())

    def _welcome(self, name: str, argument: int | bytes) -> int:
        function = getattr(self._handle, name, None)
        return int(Result.SUCCESS if function is None else function(argument))

    def rewind(self, address: int) -> None:
        """Forget a walk of this thread that was not finished."""
        self._handle.msptiActivityGetNextRecord(address, 0, ctypes.byref(_POINTER()))

    def walk(self, address: int, valid: int) -> Iterator[int]:
        """Addresses of the records in a buffer of `valid` bytes, as the library finds them, until it finds no more.
        Whoever leaves before the end rewinds."""
        record = _POINTER()
        while self._handle.msptiActivityGetNextRecord(address, valid, ctypes.byref(record)) == Result.SUCCESS:
            if not record.value:
                return
            yield record.value


def mapped(name: str) -> str | None:
    """The path of a file in this process's memory whose own name begins with `name`."""
    try:
        lines = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    paths = (line.partition("/")[2] for line in lines if "/" in line)
    return next((f"/{path}" for path in paths if path.rpartition("/")[2].startswith(name)), None)


def _folders() -> Iterator[Path]:
    yield from (Path(part) for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part)
    for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
        if home := os.environ.get(variable):
            yield Path(home, "lib64")


def find() -> str:
    """The library's file: what is loaded already, then LD_LIBRARY_PATH, then the toolkit's own folder. Raises
    Unavailable when there is none."""
    if loaded := mapped(NAME):
        return loaded
    for folder in _folders():
        if (folder / NAME).is_file():
            return str(folder / NAME)
    try:
        ctypes.CDLL(NAME)  # what the loader's own cache knows
    except OSError:
        raise Unavailable(
            f"no {NAME}: it is not loaded, nor in LD_LIBRARY_PATH, $ASCEND_HOME_PATH/lib64 or"
            " $ASCEND_TOOLKIT_HOME/lib64; source the CANN toolkit's set_env.sh before the job"
        ) from None
    return mapped(NAME) or NAME
