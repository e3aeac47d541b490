"""What belongs together: an operator and its backward pass, an operator and the kernels that it launched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.agent.trace.parsing.model import OPERATOR, Model

Column = NDArray[Any]
FLOWS = 1 << 40
"""Added to the number of an arrow from the forward to the backward pass: other connections are correlations of
launches."""


@dataclass(frozen=True)
class Connections:
    """`of_row` has an operator's number (-1: none) by row of the slices; each pair below says that the operator of a
    number takes part in a connection."""

    of_row: Column
    number: Column
    connection: Column


def connections(model: Model) -> Connections:
    """All of a trace."""
    rows = np.concatenate([_flow_rows(model), _launch_rows(model)])
    what = np.concatenate([FLOWS + model.trace.flows.number, model.slices.correlation[model.kernels]])
    known = (rows >= 0) & (what >= 0)
    rows, what = rows[known], what[known]
    operators, number = np.unique(rows, return_inverse=True)
    of_row = np.full(len(model.slices), -1, np.int64)
    of_row[operators] = np.arange(len(operators))
    return Connections(of_row, number.reshape(-1), what)


def _flow_rows(model: Model) -> Column:
    """Of each end of an arrow, the operator that begins there; the outermost, where several do."""
    flows, slices = model.trace.flows, model.slices
    found = np.full(len(flows.time), -1, np.int64)
    operators = model.rows_of(OPERATOR)
    for thread in np.unique(flows.thread):
        ends = np.flatnonzero(flows.thread == thread)
        here = operators[slices.thread[operators] == thread]
        here = here[np.lexsort((-slices.end[here], slices.start[here]))]
        if len(here):
            place = np.minimum(np.searchsorted(slices.start[here], flows.time[ends]), len(here) - 1)
            hit = slices.start[here[place]] == flows.time[ends]
            found[ends[hit]] = here[place[hit]]
    return found


def _launch_rows(model: Model) -> Column:
    """Of each kernel, the operator that launched it."""
    slices = model.slices
    operators = model.rows_of(OPERATOR)
    operators = operators[np.argsort(slices.external[operators], kind="stable")]
    wanted = slices.external[model.kernels]
    if not len(operators):
        return np.full(len(wanted), -1, np.int64)
    place = np.minimum(np.searchsorted(slices.external[operators], wanted), len(operators) - 1)
    return np.where((slices.external[operators[place]] == wanted) & (wanted >= 0), operators[place], -1)
