"""What a configuration asks to be traced."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from npuscope.monitor.agent.trace.unmet import unmet

NEXT_STEP = -1
FALLBACK_MS = 500
"""Traced where steps were asked for and the process takes none; stock Kineto does the same."""
LONGEST_MS = 2**31 - 1
LONGEST_PATH = 4096


class Refused(Exception):
    """A request that is not carried out; the text says why."""


@dataclass(frozen=True)
class Request:
    """A trace to take: by steps, or for a length of time."""

    folder: str
    """Where the folder of the trace is made."""
    start_step: int | None
    """The first step, `NEXT_STEP`, or None for a trace by time."""
    steps: int = 1
    warmup: int = 0
    """Steps that are traced and thrown away before the first one."""
    duration_ms: int = FALLBACK_MS
    start_ms: int = 0
    """Unix time in milliseconds; 0: at once."""
    shapes: bool = False
    memory: bool = False
    stack: bool = False
    flops: bool = False
    modules: bool = False
    cpu: bool = True
    device: bool = True
    analyse: bool = False
    asynchronous: bool = False
    export: str = "text"
    """`text` or `db`."""
    collections_ms: float | None = None
    """Garbage collections that take longer are recorded."""
    host: frozenset[str] = frozenset()
    """Of `cpu` and `mem`."""
    marks: bool = False
    include: tuple[str, ...] = ()
    """Domains of marks: these only."""
    exclude: tuple[str, ...] = ()
    ranks: frozenset[int] | None = None
    """None: all."""
    trace_id: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    """The configuration as it came."""


def read_request(pairs: Mapping[str, str]) -> tuple[Request, list[str]]:
    """The request in a configuration, and a sentence for each part of it that is not followed. Keys are those of the
    vendor's command line. Raises Refused for a request that cannot be carried out."""
    reader = _Reader(pairs)
    stepwise = "PROFILE_START_STEP" in pairs or "ACTIVITIES_DURATION_MSECS" not in pairs
    cpu, device = reader.activities()
    analyse, asynchronous = reader.parsing()
    include, exclude = reader.domains()
    request = Request(
        folder=reader.folder(),
        start_step=reader.start_step() if stepwise else None,
        steps=max(reader.whole("ACTIVITIES_ITERATIONS", 1), 1),
        warmup=max(reader.whole("WARMUP_ITERATIONS", 0), 0),
        duration_ms=FALLBACK_MS if stepwise else reader.duration(),
        start_ms=0 if stepwise else max(reader.whole("PROFILE_START_TIME", 0), 0),
        shapes=reader.flag("PROFILE_RECORD_SHAPES"),
        memory=reader.flag("PROFILE_PROFILE_MEMORY"),
        stack=reader.flag("PROFILE_WITH_STACK"),
        flops=reader.flag("PROFILE_WITH_FLOPS"),
        modules=reader.flag("PROFILE_WITH_MODULES"),
        cpu=cpu,
        device=device,
        analyse=analyse,
        asynchronous=asynchronous,
        export=reader.export(),
        collections_ms=reader.threshold(),
        host=reader.host(),
        marks=reader.flag("PROFILE_MSPROF_TX") or reader.flag("PROFILE_MSTX"),
        include=include,
        exclude=exclude,
        ranks=reader.ranks(),
        trace_id=pairs.get("REQUEST_TRACE_ID", ""),
        options=dict(pairs),
    )
    return request, reader.notes + unmet(pairs)


class _Reader:
    """Reads values; whatever cannot be read is noted, and the default is taken, as the vendor's plug-in does."""

    def __init__(self, pairs: Mapping[str, str]) -> None:
        self.pairs = pairs
        self.notes: list[str] = []

    def flag(self, key: str) -> bool:
        word = self.pairs.get(key, "false")
        if word.lower() not in ("true", "false"):
            self.notes.append(f"{key} is true or false, not '{word}': taken as false")
        return word.lower() == "true"

    def whole(self, key: str, default: int) -> int:
        word = self.pairs.get(key, str(default))
        try:
            return int(word)
        except ValueError:
            self.notes.append(f"{key} is a whole number, not '{word}': taken as {default}")
            return default

    def folder(self) -> str:
        folder = self.pairs.get("ACTIVITIES_LOG_FILE", "") or "./"
        if len(folder.encode(errors="surrogateescape")) > LONGEST_PATH:
            raise Refused(f"the output folder's name is longer than {LONGEST_PATH} bytes")
        return folder

    def start_step(self) -> int:
        step = self.whole("PROFILE_START_STEP", 0)
        if step == 0:
            raise Refused("step 0 has passed: --start-step is the number of a step to come, or -1 for the next one")
        return max(step, NEXT_STEP)

    def duration(self) -> int:
        duration = self.whole("ACTIVITIES_DURATION_MSECS", FALLBACK_MS)
        if not 0 < duration <= LONGEST_MS:
            raise Refused(f"a trace takes between 1 and {LONGEST_MS} milliseconds, not {duration}")
        return duration

    def activities(self) -> tuple[bool, bool]:
        words = {word.strip() for word in self.pairs.get("PROFILE_ACTIVITIES", "CPU,NPU").split(",")}
        if bad := sorted(words - {"CPU", "NPU"}):
            self.notes.append(f"--activities knows CPU and NPU, not '{','.join(bad)}'")
        cpu, device = "CPU" in words, "NPU" in words
        return (cpu, device) if cpu or device else (True, True)

    def parsing(self) -> tuple[bool, bool]:
        """Whether to parse, and whether in a process of its own."""
        analyse, asynchronous = self.flag("PROFILE_ANALYSE"), self.flag("PROFILE_ASYNC_MODE")
        if asynchronous and not analyse:
            self.notes.append("--async-mode has no effect without --analyse: the data stays raw")
        if analyse and not asynchronous and self.ranks() is not None:
            # Parsing in some ranks only would let the others wait for them in the next collective.
            self.notes.append("--analyse is off with --rank-list unless --async-mode is given: the data stays raw")
            analyse = False
        return analyse, asynchronous and analyse

    def export(self) -> str:
        word = self.pairs.get("PROFILE_EXPORT_TYPE", "Text").lower()
        if word not in ("text", "db"):
            self.notes.append(f"--export-type is Text or Db, not '{word}': taken as Text")
        return word if word == "db" else "text"

    def threshold(self) -> float | None:
        word = self.pairs.get("PROFILE_GC_DETECT_THRESHOLD", "None")
        if word in ("None", ""):
            return None
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= 0):
            self.notes.append(f"--gc-detect-threshold is a number of milliseconds, not '{word}': left out")
            return None
        return value

    def host(self) -> frozenset[str]:
        return frozenset(_words(self.pairs.get("PROFILE_HOST_SYS", "None"))) & {"cpu", "mem"}

    def domains(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Domains of marks to keep, and to leave out; the first wins, as with the vendor."""
        include = _words(self.pairs.get("PROFILE_MSTX_DOMAIN_INCLUDE", "None"))
        exclude = _words(self.pairs.get("PROFILE_MSTX_DOMAIN_EXCLUDE", "None"))
        marks = "true" in (self.pairs.get(key, "").lower() for key in ("PROFILE_MSPROF_TX", "PROFILE_MSTX"))
        if (include or exclude) and not marks:
            self.notes.append("--mstx-domain-include and --mstx-domain-exclude have no effect without --msprof-tx")
        if include and exclude:
            self.notes.append("--mstx-domain-exclude has no effect beside --mstx-domain-include")
        return include, () if include else exclude

    def ranks(self) -> frozenset[int] | None:
        if self.pairs.get("PROFILE_IS_RANK", "false").lower() != "true":
            return None
        words = _words(self.pairs.get("PROFILE_RANK_LIST", "None"))
        return frozenset(int(word) for word in words if word.isascii() and word.isdigit())


def _words(text: str) -> tuple[str, ...]:
    """The words of a list by comma; `None` is the empty list."""
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    return () if words == ("None",) else words
