"""The streams of simulated devices: each does one thing after the other, at modelled times.

A simulated kernel takes long on the host and, by the model, microseconds on its device. So a device's times are those
of a device that would have got the same launches at the same moments of the wall clock: a kernel begins when its
launch has returned on the host, or when its stream is free, whichever is later.
"""

from __future__ import annotations

import threading
from typing import Any


class Streams:
    """When each stream of each device is free: nanoseconds of the wall clock."""

    def __init__(self) -> None:
        self.device = 0
        """The one that the script has chosen: where a stream lies that is given without its device."""
        self.watched = False
        """Whether somebody asks for times; they are right from then on."""
        self._free: dict[tuple[int, int], int] = {}
        self._lock = threading.Lock()

    def place(self, device: int, stream: int, ready: int, duration: int) -> tuple[int, int]:
        """(start, end) of something that takes `duration` and may begin at `ready`; the stream is taken until then."""
        with self._lock:
            start = max(ready, self._free.get((device, stream), 0))
            self._free[device, stream] = start + duration
        return start, start + duration

    def reached(self, stream: Any, now: int) -> tuple[int, int, int] | None:
        """(device, stream, time) at which a stream comes to what is put into it at `now`. `stream` is its number, or
        an object with the number as ``npu_stream``; None for anything else, which is no stream of a simulated device.
        """
        number = stream if isinstance(stream, int) else getattr(stream, "npu_stream", None)
        if not isinstance(number, int):
            return None
        device = self.device
        return device, number, max(now, self._free.get((device, number), 0))


STREAMS = Streams()
"""Those of this process."""
