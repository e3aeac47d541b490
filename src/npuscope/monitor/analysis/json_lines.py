"""A rank's JSON lines, of one file or of several that rotation made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.computing import computing, host_operators, outermost
from npuscope.monitor.analysis.database import GROUPS, SIZES, STEP_DOMAIN, read_groups
from npuscope.monitor.analysis.records import Collectives, Marked, Ranges, Records, Unreadable
from npuscope.monitor.analysis.steps import labelled, marked

COLUMNS = {
    "kind": "string", "name": "string", "startNs": "int64", "endNs": "int64", "deviceId": "int64", "domain": "string",
    "sourceKind": "string", "commName": "string", "dataType": "string", "count": "int64", "correlationId": "int64",
    "threadId": "int64",
    "value": "string", "device": "list", "host": "string",
}  # fmt: skip
APIS = ("API", "AclAPI", "NodeAPI", "RuntimeAPI")
BLOCK = 1 << 24


def read_lines(paths: Sequence[Path], rank: int, pid: int) -> Records:
    """A rank's records. A line that is none is left out and counted. Raises Unreadable when nothing is left."""
    records = Records(rank, pid, str(paths[-1]))
    tables = []
    for path in paths:
        try:
            tables.append(_table(path.read_bytes(), path, records.notes))
        except OSError as error:
            raise Unreadable(error.strerror or str(error)) from None
    _fill(records, tables)
    if not len(records.kernels) and not len(records.collectives):
        raise Unreadable("neither kernels nor collectives are in it")
    return records


def _table(data: bytes, path: Path, notes: list[str]) -> Any:
    """The lines as columns, read by Arrow; one by one where a line is damaged."""
    import pyarrow as pa
    from pyarrow import json as arrow

    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        notes.append(f"{path.name}: the last line is cut off")
    fields = [(name, pa.list_(pa.int64()) if kind == "list" else kind) for name, kind in COLUMNS.items()]
    schema = pa.schema([(name, getattr(pa, kind)() if isinstance(kind, str) else kind) for name, kind in fields])
    if not whole:
        return schema.empty_table()
    options = arrow.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    read = arrow.ReadOptions(block_size=max(BLOCK, 1 + max(map(len, whole.split(b"\n")), default=0)))
    try:
        return arrow.read_json(pa.BufferReader(whole), read, options)
    except pa.ArrowInvalid:
        good = [line for line in map(_line, whole.splitlines()) if line is not None]
        lost = whole.count(b"\n") - len(good)
        notes.append(f"{path.name}: {lost:,} damaged lines are left out")
        return pa.Table.from_pylist(good, schema)


def _line(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
        return {name: found.get(name) for name in COLUMNS} if isinstance(found, dict) else None
    except ValueError:
        return None


def _fill(records: Records, tables: Iterable[Any]) -> None:
    import pyarrow as pa

    table = pa.concat_tables(tables)
    columns = _Columns(table)
    records.strings = dict(enumerate(columns.texts))
    kernels, collectives = columns.are("Kernel"), columns.are("Communication")
    start, end, name = columns["startNs"], columns["endNs"], columns["name"]
    records.kernels = computing(Ranges(start[kernels], end[kernels], name[kernels]), records.strings)
    records.steps = _steps(columns, records.strings)
    records.collectives = _collectives(columns, collectives)
    devices = columns["deviceId"][kernels | collectives]
    records.device = int(devices[0]) if len(devices) else -1
    if not len(records.kernels) and records.device < 0:
        own = columns.are("API") & np.isin(name, host_operators(records.strings))
        records.kernels = outermost(Ranges(start[own], end[own], name[own]), columns["threadId"][own])
    records.host = next((text for text in table["host"].drop_null().unique().to_pylist() if text), "")
    for at in np.flatnonzero(columns.are(GROUPS)).tolist():
        records.groups = read_groups(table["value"][at].as_py())


def _steps(columns: _Columns, strings: Mapping[int, str]) -> Marked:
    label = labelled(strings, columns["name"])
    steps = columns.are("Marker") & (label >= 0) & (columns["endNs"] > columns["startNs"])
    own = columns.are(STEP_DOMAIN, "domain")
    if np.any(steps & own):
        steps &= own
    device = steps & columns.are("Device", "sourceKind")
    host = steps & ~device
    on_device = bool(np.any(device)) and set(label[device]) >= set(label[host])
    chosen = device if on_device else host
    where = "device" if on_device else "host"
    times = columns["startNs"][chosen], columns["endNs"][chosen]
    return marked(label[chosen], *times, f"step marks on the {where}", on_device=on_device)


def _collectives(columns: _Columns, which: Column) -> Collectives:
    sizes = np.array([SIZES.get(text, 0) for text in columns.texts] + [0])
    size = np.maximum(columns["count"][which], 0) * sizes[columns["dataType"][which]]
    found = Collectives(
        columns["startNs"][which], columns["endNs"][which], columns["name"][which], columns["commName"][which],
        size, _launched(columns, columns["correlationId"][which], columns["startNs"][which]),
    )  # fmt: skip
    return found.where(np.argsort(found.start, kind="stable"))


def _launched(columns: _Columns, of: Column, start: Column) -> Column:
    """When the host called each collective; 0 where no call of that number was recorded."""
    apis = np.logical_or.reduce([columns.are(name) for name in APIS])
    call, began = columns["correlationId"][apis], columns["startNs"][apis]
    if not len(call):
        return np.zeros(len(of), np.int64)
    order = np.lexsort((began, call))
    call, began = call[order], began[order]
    at = np.minimum(np.searchsorted(call, of), len(call) - 1)
    return np.where((call[at] == of) & (of > 0) & (began[at] <= start), began[at], 0)


class _Columns:
    """Columns of a table as int64: whole numbers, -1 where there is none; texts as numbers of `texts`, -1 likewise."""

    def __init__(self, table: Any) -> None:
        self.texts: list[str] = []
        self._number: dict[str, int] = {}
        self._made = {
            name: self._coded(table[name]) if kind == "string" else self._whole(table[name])
            for name, kind in COLUMNS.items()
            if kind != "list"
        }

    def __getitem__(self, name: str) -> Column:
        return self._made[name]

    def are(self, text: str, column: str = "kind") -> Column:
        """Which records have that text in a column."""
        return self._made[column] == self._number.get(text, -2)

    def _whole(self, column: Any) -> Column:
        import pyarrow.compute as pc

        return pc.fill_null(column, -1).to_numpy().astype(np.int64)

    def _coded(self, column: Any) -> Column:
        import pyarrow.compute as pc

        coded = pc.dictionary_encode(column.combine_chunks())
        known = np.array([self._of(text) for text in coded.dictionary.to_pylist()] + [-1], np.int64)
        return known[pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)]

    def _of(self, text: str) -> int:
        number = self._number.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number
