"""Activities of Ascend devices, from the vendor's activity library in this process.

The library fills buffers and hands them over; a thread of ours turns each into columns and delivers them. The training
loop's threads never run a line of Python for it.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources import mspti_abi as abi
from npuscope.monitor.agent.sources.mspti_pool import COUNT, SIZE, Pool
from npuscope.monitor.agent.sources.records import Decoder
from npuscope.monitor.agent.sources.source import Deliver, Unavailable

REFUSED = f"requests for a buffer while all {COUNT} of {SIZE >> 20} MiB were full"
FOREIGN = "buffers of somebody else"
UNDECODED = "buffers that could not be decoded"

_DOMAIN = "communication"
"""Markers that the library makes for collectives; they are activities of their own kind."""
_FLUSHING, _STOPPING = 5.0, 30.0
"""Seconds that `flush` and `stop` wait at most for what is still being delivered."""
_HOLDERS = {
    "mspti_C": "the Python package mspti",
    "IPCMonitor_C": "the vendor's monitor, IPCMonitor",
    "libmsprofiler": "msprof or torch_npu.profiler",
}
"""By the file whose presence in the process makes them suspects."""


class _Process:
    """What a process has one of."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.library = abi.Library(abi.find())
        self.pool = Pool()
        self.decoder = Decoder(self.library, SIZE)
        self.lock = threading.Lock()
        """Held by the source that runs."""


_process: _Process | None = None


def _this_process() -> _Process:
    """Made at the first start; a child of `fork` makes its own. Raises Unavailable."""
    global _process
    if _process is None or _process.pid != os.getpid():
        _process = _Process()
    return _process


class MsptiSource:
    """Records of the vendor's activity library. `refusals` says why the library does not give a kind that was wanted,
    when it gives others."""

    name = "mspti"
    kinds = frozenset(Kind)

    def __init__(self, flush_period: int = 1000) -> None:
        """`flush_period`: milliseconds after which the library hands over full buffers; 0 leaves it to the library."""
        self._period = flush_period
        self._run: _Run | None = None
        self._losses: Mapping[str, int] = {}
        self.refusals: dict[Kind, str] = {}

    def start(self, kinds: frozenset[Kind], strings: Strings, deliver: Deliver) -> None:
        """Raises Unavailable when the library is missing, has a subscriber already or gives none of the kinds."""
        self.stop()
        process = _this_process()
        if not process.lock.acquire(blocking=False):
            raise Unavailable("this process collects from the activity library already")
        self.refusals = {}
        run = _Run(process, strings, deliver)
        try:
            run.subscribe(self._period)
        except BaseException:
            process.lock.release()
            raise
        self._run = run
        self.change(kinds)
        if kinds and not run.enabled:
            reasons = "; ".join(dict.fromkeys(self.refusals.values()))
            self.stop()
            raise Unavailable(reasons)

    def change(self, kinds: frozenset[Kind]) -> None:
        """Kinds that the library does not give are in `refusals` then."""
        if (run := self._mine()) is not None:
            self.refusals = run.change(kinds)

    def flush(self) -> None:
        """Returns when everything that was complete is delivered, or after five seconds."""
        if (run := self._mine()) is not None:
            run.flush()

    def stop(self) -> None:
        run, self._run = self._mine(), None
        if run is not None:
            run.stop()
            self._losses = run.losses()

    def abandon(self) -> None:
        """In a child of `fork`: what runs is the parent's."""
        self._run = None

    @property
    def losses(self) -> Mapping[str, int]:
        return self._run.losses() if self._run is not None else self._losses

    def _mine(self) -> _Run | None:
        """The run, unless it is that of the process that this one was forked from."""
        if self._run is not None and self._run.process.pid != os.getpid():
            self._run = None
        return self._run


class _Run:
    """From a start to a stop."""

    def __init__(self, process: _Process, strings: Strings, deliver: Deliver) -> None:
        self.process = process
        self.enabled: set[Kind] = set()
        self._library, self._pool = process.library, process.pool
        self._strings, self._deliver = strings, deliver
        self._before = (self._pool.refused, self._pool.foreign)
        self._lost: Counter[str] = Counter()
        self._handled = self._pool.turns - self._pool.complete
        self._progress = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="npuscope-mspti", daemon=True)

    def subscribe(self, period: int) -> None:
        """Raises Unavailable, and then nothing runs."""
        result = self._library.subscribe()
        if result == abi.Result.MULTIPLE_SUBSCRIBERS:
            raise Unavailable(f"the activity library has its one subscriber already: {_suspects()}; stop that first")
        if result != abi.Result.SUCCESS:
            raise Unavailable(self._why("msptiSubscribe", result))
        self.process.decoder.lost.clear()
        self._pool.open()
        callbacks = self._pool.callbacks
        result = self._library.register(callbacks.request, callbacks.completed)
        try:
            if result != abi.Result.SUCCESS:
                raise Unavailable(self._why("msptiActivityRegisterCallbacks", result))
            self._thread.start()
        except BaseException:
            self._pool.close()
            self._library.unsubscribe()
            raise
        self._library.disable_domain(_DOMAIN)
        self._library.flush_period(period)

    def change(self, kinds: frozenset[Kind]) -> dict[Kind, str]:
        """Enable and disable; why not, for kinds that the library does not give."""
        refused: dict[int, list[Kind]] = {}
        for kind in sorted(kinds - self.enabled):
            result = self._library.enable(kind)
            if result == abi.Result.SUCCESS:
                self.enabled.add(kind)
            else:
                refused.setdefault(result, []).append(kind)
        for kind in sorted(self.enabled - kinds):
            self._library.disable(kind)
            self.enabled.discard(kind)
        reasons = {
            result: self._why(", ".join(kind.label for kind in those), result) for result, those in refused.items()
        }
        return {kind: reasons[result] for result, those in refused.items() for kind in those}

    def flush(self) -> None:
        """Returns when what is complete is delivered, or after `_FLUSHING`."""
        self._library.flush()
        wanted = self._pool.turns
        with self._progress:
            self._progress.wait_for(lambda: self._handled >= wanted, _FLUSHING)

    def stop(self) -> None:
        """Deliver the rest and unsubscribe. Flushed twice: disabling a kind completes its last records."""
        self._library.flush()
        self.change(frozenset())
        self._library.flush()
        self._library.flush_period(0)
        self._library.unsubscribe()
        self._pool.close()
        self._stopping = True
        self._pool.wake()
        self._thread.join(_STOPPING)

    def losses(self) -> Mapping[str, int]:
        """What was lost since the start, by reason."""
        refused, foreign = self._before
        counts = {
            REFUSED: self._pool.refused - refused,
            FOREIGN: self._pool.foreign - foreign,
            **self.process.decoder.lost,
            **self._lost,
        }
        return {reason: count for reason, count in counts.items() if count}

    def _work(self) -> None:
        """The thread: each returned buffer in its turn, until stopped and nothing is left."""
        try:
            while True:
                stopping = self._stopping  # before looking: what came until then is seen
                if (item := self._pool.oldest()) is not None:
                    self._handle(*item)
                elif stopping:
                    return
                else:
                    self._pool.wait(1)
        finally:
            self._pool.trim()
            self.process.lock.release()

    def _handle(self, index: int, address: int, valid: int) -> None:
        try:
            batches = self.process.decoder.decode(address, valid, self._strings)
        except Exception as error:  # whatever it is, the next buffer may be good
            self._lost[f"{UNDECODED} ({type(error).__name__}: {error})"] += 1
            batches = []
        finally:
            self._pool.give_back(index)
        for batch in batches:
            self._deliver(batch)
        with self._progress:
            self._handled += 1
            self._progress.notify_all()

    def _why(self, what: str, result: int) -> str:
        if result == abi.Result.WITHOUT_PRELOAD:
            others = os.environ.get("LD_PRELOAD", "")
            preload = f"{self._library.path}:{others}" if others else self._library.path
            return f"the activity library must be preloaded for {what}: start the job with LD_PRELOAD={preload}"
        return f"the activity library refuses {what}: {abi.describe(result)}"


def _suspects() -> str:
    """Who may hold the library, by what the process has loaded."""
    loaded = [who for file, who in _HOLDERS.items() if abi.mapped(file)]
    return " or ".join(loaded or [*_HOLDERS.values(), "another agent"]) + " in this process"
