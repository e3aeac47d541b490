"""What the monitor is told to do, read from the pairs of a configuration. Missing keys have defaults, so that older
and newer command lines and agents understand each other."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from npuscope.monitor.activity.kinds import BY_LABEL, Kind
from npuscope.monitor.protocol.codes import Code

EXPORTS = {"db": "DB", "jsonl": "Jsonl"}
MOST_INTERVAL = 2**32 - 1
LONGEST_PATH = 4096
NUMBER = re.compile(r"-?[0-9.]+(e-?[0-9]+)?", re.ASCII | re.IGNORECASE)


class Refused(Exception):
    """A command that is not carried out; the text says why, the code is the vendor's for it."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Command:
    """One command to the monitor. Stop wins over start; neither of them changes a monitor that runs."""

    start: bool = False
    stop: bool = False
    interval: int = 0
    """Seconds between reports; 0 leaves it as it is."""
    duration: float = 0.0
    """Seconds; 0: until told to stop."""
    kinds: frozenset[Kind] = frozenset()
    """Empty: as they are."""
    folder: str = ""
    """Empty: measurements go to the daemon."""
    export: str = "DB"
    rotate_lines: str = ""
    rotate_files: str = ""
    filter: str = ""


def read_command(pairs: Mapping[str, str]) -> tuple[Command, list[str]]:
    """The command in a configuration, and what of it was skipped, a sentence each. Raises Refused for a value that
    means nothing, so that no half of a command is carried out."""
    kinds, skipped = _kinds(pairs.get("MSPTI_ACTIVITY_KIND", ""))
    folder = pairs.get("NPU_MONITOR_LOG_FILE", "")
    if len(folder.encode(errors="surrogateescape")) > LONGEST_PATH:
        raise Refused(Code.PARAM, f"NPU_MONITOR_LOG_FILE is longer than {LONGEST_PATH} bytes")
    command = Command(
        start=_flag(pairs, "NPU_MONITOR_START"),
        stop=_flag(pairs, "NPU_MONITOR_STOP"),
        interval=_interval(pairs.get("REPORT_INTERVAL_S", "")),
        duration=_duration(pairs.get("DURATION", "")),
        kinds=kinds,
        folder=folder,
        export=_export(pairs.get("NPU_MONITOR_EXPORT_TYPE", "")),
        rotate_lines=pairs.get("JSONL_ROTATE_LOG_LINES", ""),
        rotate_files=pairs.get("JSONL_ROTATE_LOG_FILES", ""),
        filter=pairs.get("NPU_MONITOR_FILTER", ""),
    )
    return command, skipped


def _flag(pairs: Mapping[str, str], key: str) -> bool:
    word = pairs.get(key, "").lower()
    if word not in ("", "true", "false"):
        raise Refused(Code.VALUE, f"{key} is true or false, not '{pairs[key]}'")
    return word == "true"


def _interval(word: str) -> int:
    if word and not (word.isascii() and word.isdigit() and int(word[:20]) <= MOST_INTERVAL):
        raise Refused(Code.VALUE, f"REPORT_INTERVAL_S is a whole number of seconds, not '{word}'")
    return int(word or 0)


def _duration(word: str) -> float:
    """Seconds. Neither infinity nor what is no number; less than nothing is no limit, as with the vendor's plug-in."""
    try:
        seconds = float(word or 0) if not word or NUMBER.fullmatch(word) else math.nan
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise Refused(Code.VALUE, f"DURATION is a number of seconds, not '{word}'")
    return max(seconds, 0.0)


def _kinds(words: str) -> tuple[frozenset[Kind], list[str]]:
    named = [word for part in words.split(",") if (word := part.strip())]
    bad = [word for word in named if word not in BY_LABEL]
    if named and len(bad) == len(named):
        raise Refused(Code.PARAM, f"no kind of activity is called '{', '.join(bad)}' ({' '.join(BY_LABEL)})")
    skipped = [f"the kind '{word}' is skipped: there are {' '.join(BY_LABEL)}" for word in bad]
    return frozenset(BY_LABEL[word] for word in named if word in BY_LABEL), skipped


def _export(word: str) -> str:
    if word and word.lower() not in EXPORTS:
        raise Refused(Code.VALUE, f"NPU_MONITOR_EXPORT_TYPE is DB or Jsonl, not '{word}'")
    return EXPORTS.get(word.lower(), "DB")
