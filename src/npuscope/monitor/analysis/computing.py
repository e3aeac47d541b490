"""What counts as computing: kernels that are no collectives, or the host's operators where a rank has no card."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.records import Ranges

COLLECTIVE = re.compile(r"nccl|hccl|hcom|gloo:|mpi:", re.IGNORECASE)
"""How the names of kernels begin that are collectives: these are recorded once more, as such."""
HOST_OPERATOR = "aten::"
"""How the names of PyTorch's own operators begin; others (autograd's, c10d's) contain such, or wait."""


def computing(kernels: Ranges, strings: Mapping[int, str]) -> Ranges:
    """Kernels that are no collectives."""
    talk = [number for number in np.unique(kernels.name).tolist() if COLLECTIVE.match(strings.get(number, ""))]
    return kernels.where(~np.isin(kernels.name, talk)) if talk else kernels


def host_operators(strings: Mapping[int, str]) -> list[int]:
    """The numbers of the names of operators that a host runs."""
    return [number for number, text in strings.items() if text.startswith(HOST_OPERATOR)]


def outermost(operators: Ranges, thread: Column) -> Ranges:
    """Operators that no other calls: its time is theirs."""
    if not len(operators):
        return operators
    order = np.lexsort((-operators.end, operators.start, thread))
    operators, thread = operators.where(order), thread[order]
    # Threads behind each other in time, so that one running maximum serves them all.
    first = operators.start.min()
    shift = (np.unique(thread, return_inverse=True)[1].reshape(-1)) * (operators.end.max() - first + 1) - first
    furthest = np.maximum.accumulate(operators.end + shift)
    return operators.where(np.append(True, operators.start[1:] + shift[1:] >= furthest[:-1]))
