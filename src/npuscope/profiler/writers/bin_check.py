"""What the viewer would not take of a `visualize_data.bin` (opprof.md 2.7, V1 to V9 and V11), and of a trace.json that
stands alone (V10). It reads the bytes by itself and shares nothing with the writer, so that it can judge it."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

NAMES = {
    1: "CODE", 2: "TRACE", 3: "FILE_API", 4: "INSTR_API", 5: "OP_BASIC_INFO", 6: "COMPUTE_LOAD_FIGURE",
    7: "COMPUTE_LOAD_TABLE", 8: "STORAGE_ACCESS_HEAT_MAP", 9: "STORAGE_ACCESS_TABLE", 12: "OCCUPANCY_MAP",
    13: "ROOF_LINE", 14: "CACHELINE_HEAT_MAP", 15: "TOP_STALL_REASON",
}  # fmt: skip
MEBIBYTE = 1 << 20
ROOF_TITLES = {
    "GM/L2", "Memory Unit(Cube)", "Memory Unit(Vector)", "Pipeline(Cube)", "Pipeline(Vector)", "Memory Transfer(Cube)",
    "Memory Transfer(Vector)", "Memory Unit",
}  # fmt: skip
FIXED = {"Line", "Address Range", "Address", "AscendC Inner Code", "Source", "Pipe", "GPR Status"}
"""Columns of the hot-spot tables that are not arrays over the cores."""


def viewer_complaints(path: Path) -> list[str]:
    """What is wrong with a file, each with the rule that it breaks; nothing for a file that the viewer takes whole."""
    found = list(_mode(path))
    data = path.read_bytes()
    if data[10:12] != b"\x5a\x5a" or not int.from_bytes(data[:8], "little"):
        return [*found, "V1: the file is not recognised: the first block is empty or not of version 5A"]
    if len(data) > 500 * MEBIBYTE:
        found.append(f"V9: the file has {len(data)} bytes; the viewer is made for 500 MB")
    for kind, payload, complaint in _blocks(data):
        name = NAMES.get(kind, f"{kind:#04x}")
        if complaint:
            return [*found, complaint]
        limit = {1: None, 2: None, 4: 200}.get(kind, 100)
        if limit and len(payload) > limit * MEBIBYTE:
            found.append(f"V9: block {name} has {len(payload)} bytes, more than {limit} MB")
        found.extend(f"{text} (block {name})" for text in _payload(kind, payload))
    return found


def trace_complaints(text: bytes, *, alone: bool) -> list[str]:
    """What the viewer would not take of a trace (V7, V8), or of a trace.json of its own (V10 too)."""
    found = []
    start = text[:MEBIBYTE]
    opening = re.search(rb'"traceEvents"\s*:\s*\[\s*(\{|\])', start)
    if opening is None or opening[1] != b"{":
        found.append("V7: no array of events begins in the first MiB")
    if alone:
        before = text.split(b"[", 1)[0]
        if not re.search(rb'"profilingType"\s*:\s*"op"', before):
            found.append('V10: "profilingType": "op" does not stand before the first [')
    try:
        document = json.loads(text)
    except ValueError as error:
        return [*found, f"V7: it is no JSON: {error}"]
    events = document.get("traceEvents", [])
    if not all(isinstance(event, dict) and "ph" in event for event in events):
        found.append("V7: an event has no ph")
    elif document.get("schemaVersion") == 2 or str(document.get("schemaVersion")) == "2":
        found.extend(_simulation(events))
    return found


def _simulation(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    """V8: what simulation mode handles."""
    kinds, tracks, zeros = set(), 0, 0
    for event in events:
        kinds.add(event["ph"])
        tracks += not all(isinstance(event[key], str) for key in ("pid", "tid") if key in event)
        zeros += event["ph"] == "C" and event.get("ts") == 0
    if other := sorted(kinds - set("XBEstMC")):
        yield f"V8: events of kind {', '.join(other)} are ignored"
    if tracks:
        yield f"V8: {tracks} events have a pid or tid that is no string"
    if zeros:
        yield f"V8: {zeros} counters at 0 are dropped"


def _mode(path: Path) -> Iterator[str]:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o022:
        yield f"V11: others may write the file (mode {mode:o})"


def _blocks(data: bytes) -> Iterator[tuple[int, bytes, str]]:
    """(type, payload, complaint) of each block; a complaint is the last."""
    at = 0
    while at < len(data):
        head = data[at : at + 12]
        if len(head) < 12:
            yield 0, b"", f"V2: the file ends inside a header at byte {at}"
            return
        size, kind, padding = int.from_bytes(head[:8], "little"), head[8], head[9]
        begin = at + 12 + (4096 if kind == 1 else 0)
        if head[11] != 0x5A or padding > 3:
            yield kind, b"", f"V2: no header at byte {at}"
            return
        if size > len(data) or size - padding < 1 or begin + size > len(data):
            yield kind, b"", f"V2: the block at byte {at} has an impossible size of {size}"
            return
        if kind == 1 and b"\0" not in data[at + 12 : begin]:
            yield kind, b"", f"V2: the path of the block at byte {at} has no end"
            return
        yield kind, data[begin : begin + size - padding], ""
        at = begin + size


def _payload(kind: int, payload: bytes) -> Iterable[str]:
    if kind == 1:
        return ()
    if kind == 2:
        return trace_complaints(payload, alone=False)
    try:
        document = json.loads(payload)
    except ValueError as error:
        return (f"V2: it is no JSON: {error}",)
    if kind == 3:
        lines = [line for file in document["Files"] for line in file["Lines"]]
        return _table(document["Files Dtype"]["Lines"], lines, len(document["Cores"]))
    if kind == 4:
        rows = document["Instructions"]
        bad = [row["Address"] for row in rows if not re.fullmatch(r"0[xX][0-9a-fA-F]+", str(row["Address"]))]
        hexes = [f"V4: addresses are not hex: {bad[:3]}"] if bad else []
        return [*hexes, *_table(document["Instructions Dtype"]["Instructions"], rows, len(document["Cores"]))]
    return _document(kind, document)


def _document(kind: int, document: Any) -> Iterator[str]:
    """Rules for the details blocks: counts fit, and what the viewer looks up by name has a name that it knows."""
    if large := [number for number in _integers(document) if not -(2**31) <= number < 2**31]:
        yield f"V3: {large[0]} does not fit 32 bits"
    if kind == 13:
        for chart in document["multiple_rooflines"]:
            if chart["title"] not in ROOF_TITLES:
                yield f"the viewer knows no roofline called {chart['title']}"
    if kind in (6, 7) and any(item["unit"] not in (0, 1, 2, 3) for item in document["subblock_detail"]):
        yield "D19: a unit is not one of 0 to 3"
    if kind == 8:
        paths = [unit["memory_path"] for core in document["core_memory_map"] for unit in core["memory_unit"]]
        if any(not 0 <= path <= 55 for path in paths):
            yield "a memory path is not one of 0 to 55"


def _table(kinds: dict[str, int], rows: list[dict[str, Any]], cores: int) -> Iterator[str]:
    """V3, V5 and V6 for a hot-spot table."""
    hidden = {name for row in rows for name in row} - kinds.keys()
    if hidden:
        yield f"V5: columns are not declared and so not shown: {', '.join(sorted(hidden))}"
    for name, kind in kinds.items():
        values = [row[name] for row in rows if name in row]
        if name not in FIXED and any(isinstance(value, list) and len(value) != cores for value in values):
            yield f"V6: {name} has not one figure for each of {cores} cores"
        flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
        if kind == 1 and any(type(item) is not int or not -(2**31) <= item < 2**31 for item in flat):
            yield f"V3: {name} has a figure that is no 32-bit integer"
        if kind in (2, 4) and any(type(item) is not float for item in flat):
            yield f"V3: {name} has a figure without a decimal point"
        if kind == 3 and any(type(item) is not str for item in flat):
            yield f"V3: {name} has something that is no text"


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _integers(item)
    elif isinstance(value, list):
        for item in value:
            yield from _integers(item)
    elif type(value) is int:
        yield value
