"""Collectives and transfers between ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.agent.trace.parsing.model import COLLECTIVE, Model

Column = NDArray[Any]
POINT_TO_POINT = ("send", "recv", "receive")
RECEIVE = ("recv", "receive")
ITEM_BYTES = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "long int": 8, "int": 4, "short": 2, "signed char": 1,
    "unsigned char": 1, "bool": 1, "Float": 4, "Double": 8, "Half": 2, "BFloat16": 2, "Long": 8, "Int": 4, "Byte": 1,
    "Bool": 1, "Char": 1,
}  # fmt: skip
"""Bytes of an element, by PyTorch's names of types: as the operators' shapes have them, and the collectives."""


@dataclass(frozen=True)
class Communication:
    """Operations between ranks, in the order of their starts."""

    row: Column
    """In the slices."""
    operation: list[str]
    """`all_reduce`, `send`, ..."""
    group: list[str]
    """The group's name, "" when the trace does not tell."""
    items: Column
    """Elements, -1 when unknown."""
    type: list[str]
    """PyTorch's name of the elements' type, "" when unknown."""
    device: Column
    """-1: the host."""
    stream: Column

    def __len__(self) -> int:
        return len(self.row)

    def bytes(self) -> list[int]:
        """Sizes; -1 when unknown."""
        return [
            items * ITEM_BYTES[kind] if items >= 0 and kind in ITEM_BYTES else -1
            for items, kind in zip(self.items.tolist(), self.type, strict=True)
        ]

    def receives(self) -> Column:
        """Whether each one waits for another rank's data."""
        return np.array([operation.startswith(RECEIVE) for operation in self.operation], bool)

    def point_to_point(self) -> list[bool]:
        """Whether each one is between two ranks."""
        return [operation.startswith(POINT_TO_POINT) for operation in self.operation]


def communication(model: Model) -> Communication:
    """What the devices did, where they did anything; what the host did else."""
    on_device = model.kernels[model.communicating]
    if len(on_device):
        return _on_device(model, on_device)
    rows = model.collective_annotations
    return _on_host(model, rows[np.argsort(model.slices.start[rows], kind="stable")])


def _on_host(model: Model, rows: Column) -> Communication:
    slices, groups = model.slices, model.metadata.get("parallel_group_info") or {}
    # PyTorch annotates no group: where there is one only, it is that one.
    group = next(iter(groups)) if len(groups) == 1 else ""
    matches = [COLLECTIVE.match(model.texts[name]) for name in slices.name[rows]]
    return Communication(
        row=rows,
        operation=[found[2] if found else "" for found in matches],
        group=[group] * len(rows),
        items=np.array([_items(model.texts[shape]) for shape in slices.shapes[rows]], np.int64),
        type=[model.texts[kind].partition(";")[0] for kind in slices.types[rows]],
        device=np.full(len(rows), -1, np.int64),
        stream=np.full(len(rows), -1, np.int64),
    )


def _on_device(model: Model, rows: Column) -> Communication:
    details = [model.trace.details.get(row, {}) for row in rows.tolist()]
    names = model.texts[model.slices.name[rows]]
    return Communication(
        row=rows,
        operation=[str(one.get("Collective name") or name) for one, name in zip(details, names, strict=True)],
        group=[str(one.get("Process Group Name", "")) for one in details],
        items=np.array([int(one.get("In msg nelems", -1)) for one in details], np.int64),
        type=[str(one.get("dtype", "")) for one in details],
        device=model.slices.process[rows],
        stream=model.slices.thread[rows],
    )


def _items(shape: str) -> int:
    """Elements of the first operand of a text of shapes; -1 when there is none."""
    dimensions = shape.partition(";")[0].strip("[]").split("|")[0].split(",")
    if not shape or not all(word.isdigit() for word in dimensions):
        return -1
    return int(np.prod([int(word) for word in dimensions], dtype=np.int64))
