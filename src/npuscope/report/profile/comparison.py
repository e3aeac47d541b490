"""Two profiles compared, as text, as JSON, and as JUnit XML for CI."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree as Xml

import orjson

from npuscope.profiler.compare.difference import Change, Difference, LaunchChange
from npuscope.profiler.compare.limits import Verdict
from npuscope.report.profile.figures import signed, signed_share

MOST_LINES = 12
HEAD = ("cycles", "time_us")
GROUPS = {
    "critical": "critical path", "busy": "pipes at work", "wait": "pipes waiting",
    "overlap": "pipes at work together with computation", "share": "speed of light",
}  # fmt: skip


def comparison_text(difference: Difference, verdicts: Sequence[Verdict] = ()) -> str:
    """What changed, launch by launch, then what the limits say."""
    lines = [line for launch in difference.launches for line in (*_launch(launch), "")]
    lines += [f"only in the old run: {kernel} ({_nth(number)})" for kernel, number in difference.only_old]
    lines += [f"only in the new run: {kernel} ({_nth(number)})" for kernel, number in difference.only_new]
    if not difference.changed:
        lines.append("nothing changed")
    lines += [_verdict(verdict) for verdict in verdicts]
    return "\n".join(lines).rstrip() + "\n"


def comparison_json(difference: Difference, verdicts: Sequence[Verdict] = ()) -> bytes:
    """The document: every metric and line of both runs, with its change."""
    found = {
        "format": "npuscope comparison",
        "version": 1,
        "changed": difference.changed,
        "failed": any(verdict.broken for verdict in verdicts),
        "launches": [
            {
                "kernel": launch.kernel,
                "number": launch.number,
                "provenance": list(launch.provenance),
                "chips": list(launch.chips),
                "partial": launch.partial,
                "metrics": {name: _record(change) for name, change in launch.metrics.items()},
                "lines": [
                    {
                        "file": line.file, "text": line.text, "old_line": line.old_line, "new_line": line.new_line,
                        "cycles": _record(line.cycles), "critical": _record(line.critical),
                    }
                    for line in launch.lines
                ],
            }
            for launch in difference.launches
        ],
        "only_old": [list(one) for one in difference.only_old],
        "only_new": [list(one) for one in difference.only_new],
        "limits": [
            {
                "limit": verdict.limit.text, "kernel": verdict.kernel, "number": verdict.number,
                "metric": verdict.worst.name, "broken": verdict.broken, **_record(verdict.worst),
            }
            for verdict in verdicts
        ],
    }  # fmt: skip
    return orjson.dumps(found, option=orjson.OPT_INDENT_2) + b"\n"


def comparison_junit(verdicts: Sequence[Verdict]) -> bytes:
    """A test case for each limit and launch."""
    broken = sum(verdict.broken for verdict in verdicts)
    suite = Xml.Element("testsuite", name="npuscope profile", tests=str(len(verdicts)), failures=str(broken))
    for verdict in verdicts:
        name = f"{verdict.kernel} ({_nth(verdict.number)}): {verdict.limit.text}"
        case = Xml.SubElement(suite, "testcase", classname="npuscope.profile", name=name, time="0")
        if verdict.broken:
            Xml.SubElement(case, "failure", type="limit", message=_verdict(verdict))
    Xml.indent(suite)
    data: bytes = Xml.tostring(suite, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _record(change: Change) -> dict[str, Any]:
    # JSON has no infinity: a figure that was 0 has no relative change.
    relative = change.relative if change.old else (0.0 if change.delta == 0 else None)
    return {"old": change.old, "new": change.new, "delta": change.delta, "relative": relative}


def _launch(launch: LaunchChange) -> Iterator[str]:
    old, new = launch.provenance
    came = old if old == new else f"{old}, then {new}"
    chips = dict.fromkeys(launch.chips)
    yield f"{launch.kernel} ({_nth(launch.number)}), {' and '.join(chips)}, {came}"
    if old != new or len(chips) > 1:
        yield "  warning: the two runs do not compare like with like"
    if launch.partial:
        yield "  PARTIAL: one of the runs lacks something"
    for name in HEAD:
        if change := launch.metrics.get(name):
            yield _row(change)
    for prefix, title in GROUPS.items():
        moved = [
            change
            for name, change in launch.metrics.items()
            if name.startswith(f"{prefix}:") and change.old != change.new
        ]
        if moved:
            yield f"  {title}"
            yield from (f"  {_row(change, change.name.partition(':')[2])}" for change in _ordered(moved))
    lines = [line for line in launch.lines if line.cycles.delta or line.critical.delta]
    if lines:
        yield "  lines (cycles of all cores; on the critical path)"
        for line in lines[:MOST_LINES]:
            yield (
                f"  {_row(line.cycles, line.place)}   critical {signed(line.critical.delta):>9}  {line.text or ''}"
            ).rstrip()
        if len(lines) > MOST_LINES:
            yield f"    {len(lines) - MOST_LINES} more lines changed"


def _ordered(changes: Sequence[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: -abs(change.delta or 0))


def _row(change: Change, name: str | None = None) -> str:
    cells = (_plain(change.old), _plain(change.new), signed(change.delta), signed_share(change.relative))
    return f"  {name or change.name:<22}" + "".join(f"{cell:>14}" for cell in cells)


def _plain(value: float | None) -> str:
    if value is None:
        return "NA"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"


def _verdict(verdict: Verdict) -> str:
    change = verdict.worst
    word = "FAILED" if verdict.broken else "ok"
    return (
        f"{word}: {verdict.limit.text}: {verdict.kernel} ({_nth(verdict.number)}): {change.name} "
        f"{_plain(change.old)} -> {_plain(change.new)} ({signed(change.delta)}, {signed_share(change.relative)})"
    )


def _nth(number: int) -> str:
    return f"launch {number + 1}"
