"""What NVIDIA's activity library sees of a GPU, through the optional package ``cupti-python``.

The package gives records as objects with attributes. They are turned into columns a buffer at a time; the walk over
the records is the interpreter's own, in C.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from time import time_ns
from typing import Any

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.cupti_records import Decoder
from npuscope.monitor.agent.sources.source import Deliver, Unavailable

BUFFER_BYTES = 8 << 20
"""As the vendor's plug-in takes for its own activity library."""
NO_LIMIT = 0
"""Of the records in a buffer."""
FORCED = 1
"""Flush what is not complete too."""
DRIVER = "libcuda.so.1"
SAMPLES = 5
ACTIVITIES: Mapping[Kind, tuple[str, ...]] = {
    Kind.MARKER: ("MARKER",),
    Kind.KERNEL: ("CONCURRENT_KERNEL",),
    Kind.API: ("DRIVER",),
    Kind.RUNTIME_API: ("RUNTIME",),
    Kind.MEMORY: ("MEMORY2",),
    Kind.MEMSET: ("MEMSET",),
    Kind.MEMCPY: ("MEMCPY", "MEMCPY2"),
}
"""What the library calls the activities of a kind. Its driver's calls are our API: what stands above the runtime."""


class CuptiSource:
    """Kernels, copies, settings and allocations of memory, calls of driver and runtime, and NVTX ranges of a GPU."""

    name = "cupti"
    kinds = frozenset(ACTIVITIES)

    def __init__(self) -> None:
        self._library: Any = None
        self._registered = False
        self._enabled: set[Kind] = set()
        self._decoder: Decoder | None = None
        self._losses = Counter[str]()
        self._lock = threading.Lock()

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        """Collect. Raises Unavailable without the package, the driver, a GPU, or where another tool has the library."""
        self.stop()
        library = self._library = self._library or _load()
        self._losses.clear()
        try:
            self._decoder = Decoder(library, strings, deliver, _offset(library))
            if not self._registered:
                library.activity_register_callbacks(_buffer, self._completed)
                self._registered = True
            library.set_thread_id_type(library.ActivityThreadIdType.SYSTEM)
            self.change(kinds)
        except Exception as error:
            self._disable(frozenset(self._enabled))
            self._decoder = None
            raise Unavailable(f"the GPU's activity library does not start: {error}") from None

    def change(self, kinds: frozenset[Kind]) -> None:
        """Collect other kinds from now on."""
        wanted = self.kinds & kinds
        for kind in wanted - self._enabled:
            self._enabled.add(kind)
            for name in ACTIVITIES[kind]:
                self._library.activity_enable(self._library.ActivityKind[name])
        self._disable(frozenset(self._enabled) - wanted)

    def flush(self) -> None:
        """Deliver what is complete so far."""
        if self._decoder is not None:
            self._library.activity_flush_all(0)
            self._count_dropped()

    def stop(self) -> None:
        """Deliver the rest and stop."""
        if self._decoder is None:
            return
        self._disable(frozenset(self._enabled))
        self._library.activity_flush_all(FORCED)
        self._count_dropped()
        self._decoder = None

    @property
    def losses(self) -> Mapping[str, int]:
        """Records that the library dropped, and those that could not be read."""
        return dict(self._losses)

    def _disable(self, kinds: frozenset[Kind]) -> None:
        for kind in kinds:
            self._enabled.discard(kind)
            for name in ACTIVITIES[kind]:
                self._library.activity_disable(self._library.ActivityKind[name])

    def _completed(self, records: Sequence[Any]) -> None:
        """A buffer is full; called on a thread of the library, which no exception may reach."""
        decoder = self._decoder
        if decoder is None:
            return
        try:
            decoder.decode(records)
        except Exception:
            with self._lock:
                self._losses["records that could not be read"] += len(records)

    def _count_dropped(self) -> None:
        dropped = ctypes.c_size_t(0)
        try:
            self._library.activity_get_num_dropped_records(0, 0, ctypes.addressof(dropped))
        except Exception:  # some versions know of none but those of a context
            return
        if dropped.value:
            self._losses["records dropped by the library"] += dropped.value


def _load() -> Any:
    """The library's package. Looks for the driver first: the package takes long to import."""
    try:
        ctypes.CDLL(DRIVER)
    except OSError:
        raise Unavailable(f"no NVIDIA driver here ({DRIVER})") from None
    try:
        from cupti import cupti
    except ImportError:
        raise Unavailable("cupti-python is not installed (pip install 'npuscope[cupti]')") from None
    return cupti


def _buffer() -> tuple[int, int]:
    """(bytes, records) of the next buffer."""
    return BUFFER_BYTES, NO_LIMIT


def _offset(library: Any) -> int:
    """Nanoseconds from the library's clock to the wall clock, by the quickest of a few looks at both."""
    looks = []
    for _ in range(SAMPLES):
        before, there, after = time_ns(), library.get_timestamp(), time_ns()
        looks.append((after - before, (before + after) // 2 - there))
    return int(min(looks)[1])
