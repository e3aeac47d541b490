"""What a trace says, worked out once for all deliverables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.agent.trace.parsing.events import Slices, Trace
from npuscope.monitor.agent.trace.parsing.nesting import Nesting, nest

Column = NDArray[Any]

OPERATOR, ANNOTATION, FUNCTION = "cpu_op", "user_annotation", "python_function"
KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver", "xpu_runtime", "privateuse1_runtime", "privateuse1_driver")
"""Of the host to the device."""
STEP = re.compile(r"ProfilerStep#(\d+)$")
COLLECTIVE = re.compile(r"(gloo|mpi|ucc|nccl|hccl|xccl):(.+)$")
"""What torch.distributed annotates. Such a range may end on another thread, later than what it began in."""
DEVICE_COLLECTIVE = re.compile(r"nccl|hcom_|rccl|oneccl", re.IGNORECASE)
"""Kernels that communicate."""


@dataclass(frozen=True)
class Steps:
    """The whole steps of a trace, in order; times in ns."""

    number: Column
    start: Column
    end: Column

    def __len__(self) -> int:
        return len(self.number)

    def of(self, times: Column) -> Column:
        """The number of the step in which each moment lies, -1 for none."""
        if not len(self):
            return np.full(len(times), -1, np.int64)
        row = np.searchsorted(self.start, times, "right") - 1
        inside = (row >= 0) & (times < self.end[row])
        return np.where(inside, self.number[row], -1)


class Model:
    """A trace, its metadata, and what was recorded beside it."""

    def __init__(self, trace: Trace, metadata: Mapping[str, Any], extras: Mapping[str, Any]) -> None:
        self.trace = trace
        self.metadata = metadata
        self.extras = extras
        self.texts = trace.names.array()

    @property
    def rank(self) -> int:
        """-1 when unknown."""
        return int(self.metadata.get("rank", -1))

    @property
    def pid(self) -> int:
        """Of the process that was traced."""
        return int(self.metadata.get("pid", -1))

    @property
    def slices(self) -> Slices:
        """Everything that takes time."""
        return self.trace.slices

    def rows_of(self, *categories: str) -> Column:
        """The rows of some categories."""
        known = self.trace.categories.texts
        numbers = [number for number, text in enumerate(known) if text in categories]
        return np.flatnonzero(np.isin(self.slices.category, numbers))

    @cached_property
    def steps(self) -> Steps:
        """Those that were recorded from their beginning to their end."""
        matches = {number: found for number, text in enumerate(self.texts) if (found := STEP.match(text))}
        rows = self.rows_of(ANNOTATION)
        rows = rows[np.isin(self.slices.name[rows], list(matches))]
        numbers = np.array([int(matches[name][1]) for name in self.slices.name[rows]], np.int64)
        whole = numbers != int(self.metadata.get("unfinished_step", -1))
        rows, numbers = rows[whole], numbers[whole]
        order = np.argsort(self.slices.start[rows], kind="stable")
        return Steps(numbers[order], self.slices.start[rows[order]], self.slices.end[rows[order]])

    @cached_property
    def collective_annotations(self) -> Column:
        """Rows of collectives that the host runs, or asks for."""
        rows = self.rows_of(ANNOTATION)
        names = [number for number, text in enumerate(self.texts) if COLLECTIVE.match(text)]
        return rows[np.isin(self.slices.name[rows], names)]

    @cached_property
    def host(self) -> Column:
        """Rows of what the host's threads do one within another: operators, ranges, calls to the device."""
        return np.setdiff1d(self.rows_of(OPERATOR, ANNOTATION, *CALLS), self.collective_annotations)

    @cached_property
    def nesting(self) -> Nesting:
        """Of `host`; its numbers are places in `host`."""
        return _nest(self.slices, self.host)

    @cached_property
    def operators(self) -> Column:
        """Places in `host` of operators and of the ranges that the program or PyTorch named, but for the steps."""
        wanted = np.isin(self.host, self.rows_of(OPERATOR, ANNOTATION))
        steps = [number for number, text in enumerate(self.texts) if STEP.match(text)]
        return np.flatnonzero(wanted & ~np.isin(self.slices.name[self.host], steps))

    @cached_property
    def kernels(self) -> Column:
        """Rows of what devices did, in the order of their starts."""
        rows = self.rows_of(*KERNELS)
        return rows[np.argsort(self.slices.start[rows], kind="stable")]

    @cached_property
    def launches(self) -> Column:
        """Of each kernel, the row of the call that launched it, -1 when that was not recorded."""
        calls = self.rows_of(*CALLS)
        calls = calls[np.argsort(self.slices.correlation[calls], kind="stable")]
        wanted = self.slices.correlation[self.kernels]
        if not len(calls):
            return np.full(len(wanted), -1, np.int64)
        place = np.minimum(np.searchsorted(self.slices.correlation[calls], wanted), len(calls) - 1)
        return np.where((self.slices.correlation[calls[place]] == wanted) & (wanted >= 0), calls[place], -1)

    @cached_property
    def kernel_steps(self) -> Column:
        """Of each kernel, the step that launched it."""
        launched = np.where(self.launches >= 0, self.slices.start[self.launches], self.slices.start[self.kernels])
        return self.steps.of(launched)

    @cached_property
    def communicating(self) -> Column:
        """Of each kernel, whether it communicates."""
        names = [number for number, text in enumerate(self.texts) if DEVICE_COLLECTIVE.search(text)]
        return np.isin(self.slices.name[self.kernels], names)

    @cached_property
    def lengths(self) -> Column:
        """Of each slice, in ns."""
        return self.slices.end - self.slices.start


def _nest(slices: Slices, rows: Column) -> Nesting:
    return nest(slices.thread[rows], slices.start[rows], slices.end[rows])
