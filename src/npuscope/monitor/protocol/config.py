"""The text that tells a process what to trace: `KEY=value` lines, as Kineto reads them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

WARMUP_SECONDS = 5
START_DELAY_SECONDS = 2
LARGEST_INT = 2**31 - 1
LARGEST_TIME = 2**63 - 1
LATEST_PAST_SECONDS = 10
"""Kineto refuses a start that lies further back."""

FORBIDDEN = {"=": "'='", "#": "'#'", "\n": "a line break", "\r": "a line break"}
"""What splits a line, or cuts it."""

TRUE_WORDS = frozenset({"y", "yes", "t", "true", "1"})
BOOLEANS = TRUE_WORDS | {"n", "no", "f", "false", "0"}
BOOLEAN_KEYS = frozenset({
    "PROFILE_REPORT_INPUT_SHAPES", "PROFILE_PROFILE_MEMORY", "PROFILE_MEMORY", "PROFILE_WITH_STACK",
    "PROFILE_WITH_FLOPS", "PROFILE_WITH_MODULES", "ACTIVITIES_ENABLED",
})  # fmt: skip
INTEGER_KEYS = frozenset({
    "ACTIVITIES_DURATION_MSECS", "ACTIVITIES_DURATION_SECS", "PROFILE_START_ITERATION",
    "PROFILE_START_ITERATION_ROUNDUP", "ACTIVITIES_ITERATIONS", "PROFILE_MEMORY_DURATION_MSECS",
    "ACTIVITIES_WARMUP_PERIOD_SECS", "ACTIVITIES_WARMUP_ITERATIONS", "ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB",
})  # fmt: skip


class BadConfig(ValueError):
    """A configuration that the process would refuse without a word."""


@dataclass(frozen=True)
class Trace:
    """What to trace, as the flags of `dyno gputrace` say it. More than 0 iterations count instead of the duration."""

    log_file: str
    duration_ms: int = 500
    iterations: int = -1
    start_time_ms: int = 0
    roundup: int = 1
    record_shapes: bool = False
    profile_memory: bool = False
    with_stacks: bool = False
    with_flops: bool = False
    with_modules: bool = False


def build(trace: Trace) -> str:
    """The configuration text, keys in the order of the stock command line."""
    pairs: list[tuple[str, object]] = [("ACTIVITIES_LOG_FILE", trace.log_file)]
    if trace.iterations > 0:
        pairs += [
            ("PROFILE_START_ITERATION", 0),
            ("PROFILE_START_ITERATION_ROUNDUP", trace.roundup),
            ("ACTIVITIES_ITERATIONS", trace.iterations),
        ]
    else:
        pairs += [("PROFILE_START_TIME", trace.start_time_ms), ("ACTIVITIES_DURATION_MSECS", trace.duration_ms)]
    pairs.append(("PROFILE_REPORT_INPUT_SHAPES", trace.record_shapes))
    if trace.profile_memory:
        pairs += [
            ("PROFILE_PROFILE_MEMORY", True),
            ("PROFILE_MEMORY", True),
            ("PROFILE_MEMORY_DURATION_MSECS", trace.duration_ms),
        ]
    pairs += [
        ("PROFILE_WITH_STACK", trace.with_stacks),
        ("PROFILE_WITH_FLOPS", trace.with_flops),
        ("PROFILE_WITH_MODULES", trace.with_modules),
    ]
    return text(pairs)


def text(pairs: Iterable[tuple[str, object]]) -> str:
    """`KEY=value` lines. Raises BadConfig for a value that would end a line early or that no reader takes whole."""
    return "\n".join(f"{key}={_value(key, value)}" for key, value in pairs)


def _value(key: str, value: object) -> str:
    word = str(value).lower() if isinstance(value, bool) else str(value)
    for character, name in FORBIDDEN.items():
        if character in word:
            raise BadConfig(f"the value of {key} may not hold {name}: {word!r}")
    if any("\ud800" <= character <= "\udfff" for character in word):
        raise BadConfig(f"the value of {key} is not UTF-8: {word!r}")
    return word


def single(value: float) -> str:
    """A number in the fewest digits that still tell it from other 32-bit floats, without an exponent."""
    packed = struct.pack("=f", value)
    words = (f"{value:.{digits}g}" for digits in range(1, 10))
    shortest = next((word for word in words if struct.pack("=f", float(word)) == packed), f"{value:.9g}")
    return format(Decimal(shortest), "f")


def with_trace_id(config: str, trace_id: int, indent: int = 4) -> str:
    """The configuration as a process receives it, with the number by which its trace can be told."""
    space = "\n" + " " * indent
    return f"{space}{config}{space}REQUEST_TRACE_ID={trace_id}\n"


def read(config: str) -> dict[str, str]:
    """The keys and values of a text. Raises BadConfig at a line at which Kineto would stop reading."""
    require_plain(config)
    pairs: dict[str, str] = {}
    for line in _lines(config):
        parts = line.split("=")
        if len(parts) != 2:
            raise BadConfig(f"not one key and one value: {line!r}")
        pairs[parts[0].strip("\t\n ")] = parts[1].strip("\t\n ")
    return pairs


def loosely_read(config: str) -> dict[str, str]:
    """The keys and values of a text as the vendor's plug-in reads it: it skips every line that is not one of each."""
    pairs = (line.split("=") for line in config.split("\n") if line.count("=") == 1)
    return {key.strip(): value.strip() for key, value in pairs}


def require_plain(config: str) -> None:
    """Raises BadConfig for characters that no reader of a configuration expects."""
    if any((character < " " and character not in "\t\n") or "\ud800" <= character <= "\udfff" for character in config):
        raise BadConfig("the configuration holds control characters")


def _lines(config: str) -> Iterable[str]:
    for line in config.split("\n"):
        text = line.partition("#")[0].strip("\t\n ")
        if text:
            yield text


def validate(pairs: Mapping[str, str], now: float) -> None:
    """Raises BadConfig for a value that Kineto would abort at; `now` is Unix time."""
    for key, value in pairs.items():
        if key in BOOLEAN_KEYS and value.lower() not in BOOLEANS:
            raise BadConfig(f"{key} is yes or no, not {value!r}")
        if key in INTEGER_KEYS:
            _whole(key, value, LARGEST_INT)
    start = _whole("PROFILE_START_TIME", pairs.get("PROFILE_START_TIME", "0"), LARGEST_TIME)
    if 0 < start < (now - LATEST_PAST_SECONDS) * 1000:
        raise BadConfig("the start time is more than 10 seconds ago")


def _whole(key: str, value: str, largest: int) -> int:
    if not (value.isascii() and value.isdigit()) or int(value[:20]) > largest:
        raise BadConfig(f"{key} is a whole number between 0 and {largest}, not {value!r}")
    return int(value)


def expected_end(pairs: Mapping[str, str], now: float) -> float | None:
    """When a process that gets the configuration now will have stopped tracing; None when steps decide that."""
    if int(pairs.get("ACTIVITIES_ITERATIONS", "0") or 0) > 0:
        return None
    warmup = int(pairs.get("ACTIVITIES_WARMUP_PERIOD_SECS", WARMUP_SECONDS))
    start = int(pairs.get("PROFILE_START_TIME", "0")) / 1000 or now + warmup + START_DELAY_SECONDS
    length = int(pairs.get("ACTIVITIES_DURATION_MSECS", "500")) / 1000
    return start + int(pairs.get("ACTIVITIES_DURATION_SECS", "0")) + length


def trace_file(log_file: str, pid: int) -> str:
    """The file that a process really writes: its number goes before the first `.pt.trace.json`, else `.json`."""
    ending = ".pt.trace.json" if ".pt.trace.json" in log_file else ".json"
    return log_file.replace(ending, f"_{pid}{ending}", 1)


def snapshot_file(pid: int) -> str:
    """Where a process puts a memory snapshot, whatever the configuration says."""
    return f"/tmp/memory_snapshot_{pid}.pickle"


def output_file(pairs: Mapping[str, str], pid: int) -> str:
    """Where the outcome of a configuration will be: a file, or the plug-in's folder."""
    if pairs.get("PROFILE_MEMORY", "").lower() in TRUE_WORDS:
        return snapshot_file(pid)
    return pairs.get("NPU_MONITOR_LOG_FILE") or trace_file(pairs.get("ACTIVITIES_LOG_FILE", ""), pid)
