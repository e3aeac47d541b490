"""The text that starts, changes or stops the monitor inside the vendor's plug-in, and the syntax of its filter."""

from __future__ import annotations

from dataclasses import dataclass

from npuscope.monitor.activity.kinds import BY_LABEL
from npuscope.monitor.protocol.config import single, text

KINDS = tuple(BY_LABEL)
"""The kinds of activity, as people write them."""


@dataclass(frozen=True)
class NpuMonitor:
    """What the monitor is to do, as the flags of `dyno npu-monitor` say it."""

    start: bool = False
    stop: bool = False
    report_interval_s: int = 60
    duration_s: float = 0.0
    kinds: str = "Marker"
    folder: str = ""
    export_type: str = "DB"
    rotate_lines: str = ""
    rotate_files: str = ""
    filter: str = ""


def build(monitor: NpuMonitor) -> str:
    """The configuration text; its first key tells it from a trace's. Raises BadConfig for a value that breaks it."""
    return text([
        ("NPU_MONITOR_START", monitor.start),
        ("NPU_MONITOR_STOP", monitor.stop),
        ("REPORT_INTERVAL_S", monitor.report_interval_s),
        ("DURATION", single(monitor.duration_s)),
        ("MSPTI_ACTIVITY_KIND", monitor.kinds),
        ("NPU_MONITOR_LOG_FILE", monitor.folder),
        ("NPU_MONITOR_EXPORT_TYPE", monitor.export_type),
        ("JSONL_ROTATE_LOG_LINES", monitor.rotate_lines),
        ("JSONL_ROTATE_LOG_FILES", monitor.rotate_files),
        ("NPU_MONITOR_FILTER", monitor.filter),
    ])  # fmt: skip


def filter_entries(rules: str) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """The entries of `Kind:name,name;Kind:name` as (kind, names), and a sentence for each that is none."""
    good, faults = [], []
    entries = [entry.strip(" ") for entry in rules.split(";")]
    for entry in [entry for entry in entries if entry]:
        kind, colon, words = (part.strip(" ") for part in entry.partition(":"))
        names = [name for word in words.split(",") if (name := word.strip(" "))]
        if not colon or ":" in words:
            faults.append(f"the filter entry '{entry}' is skipped: it is not Kind:name,name")
        elif kind not in KINDS:
            faults.append(f"the filter entry '{entry}' is skipped: there is no kind '{kind}' ({' '.join(KINDS)})")
        elif not names:
            faults.append(f"the filter entry '{entry}' is skipped: it names nothing")
        else:
            good.append((kind, names))
    return good, faults


def filter_faults(rules: str) -> list[str]:
    """What the plug-in would skip without a word in `Kind:name,name;Kind:name`, one sentence each."""
    good, faults = filter_entries(rules)
    if faults and not good:
        faults.append("no filter entry is left, so the plug-in may keep everything")
    return faults
