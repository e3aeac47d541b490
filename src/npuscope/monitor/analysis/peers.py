"""Which ranks do the same work, so that one may be measured by the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.communicators import POINT_TO_POINT, Communicator
from npuscope.monitor.analysis.matrices import Matrices

PIPELINE = ("pp", "pipeline")


@dataclass(frozen=True)
class Peers:
    """Rows of ranks that do the same."""

    rows: Column
    about: str
    """What they have in common: `all ranks`, `position 0 of 4 in the pipeline`."""


def peers_of(matrices: Matrices, communicators: Sequence[Communicator]) -> list[Peers]:
    """Every rank in one class.

    Peers take part in communicators of the same sizes with the same collectives, stand at the same place of their
    pipeline (the first stage embeds, the last one has the loss) and run kernels of the same names. The last only where
    it leaves nobody alone: what only one rank runs may be what is wrong with it.
    """
    keys: list[list[tuple]] = [[] for _ in matrices.ranks]
    position: dict[int, tuple[int, int]] = {}
    for one in communicators:
        alike = (len(one.rows), one.count, tuple(sorted(one.operations)))
        pipeline = _is_pipeline(one)
        for place, row in enumerate(one.rows.tolist()):
            if pipeline:
                position[row] = (place, len(one.rows))
            else:
                keys[row].append(alike)
    classes: dict[tuple, list[int]] = {}
    for row, key in enumerate(keys):
        classes.setdefault((position.get(row), tuple(sorted(key))), []).append(row)
    made = []
    for (place, _), rows in classes.items():
        about = f"position {place[0]} of {place[1]} in the pipeline" if place else ""
        made += [Peers(np.array(part), about) for part in _by_kernels(matrices, rows)]
    if len(made) == 1:
        return [Peers(made[0].rows, "all ranks")]
    return [
        Peers(one.rows, one.about or f"{len(one.rows)} ranks with the same communicators and kernels") for one in made
    ]


def _is_pipeline(one: Communicator) -> bool:
    words = one.title.lower().replace("-", "_").split("_")
    return set(one.operations) == {POINT_TO_POINT} or any(word in PIPELINE for word in words)


def _by_kernels(matrices: Matrices, rows: list[int]) -> list[list[int]]:
    parts: dict[frozenset[str], list[int]] = {}
    for row in rows:
        parts.setdefault(frozenset(matrices.ranks[row].operators.names), []).append(row)
    return list(parts.values()) if min(map(len, parts.values())) > 1 else [rows]
