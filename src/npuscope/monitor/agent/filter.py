"""Which records are kept: `Kind:name,name;Kind:name`, each name a part of the record's own.

A record's name is a number, so each name is looked at once and a batch costs one look-up a record.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from npuscope.monitor.activity.batch import Batch, Column
from npuscope.monitor.activity.kinds import ANY_INSTANT, ANY_START, BY_LABEL, UNFILTERED, Kind, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.protocol.npu_monitor import filter_entries

UNKNOWN, DROP, KEEP = -1, 0, 1
FIRST_SIZE = 1024


class Table:
    """What the rules of one kind say of each name, by its number. Safe for several threads."""

    def __init__(self, parts: Sequence[str]) -> None:
        # A part that holds another one keeps nothing that the shorter does not.
        self._parts = [part for part in parts if not any(other != part and other in part for other in parts)]
        self._verdicts: NDArray[np.int8] = np.full(FIRST_SIZE, UNKNOWN, np.int8)
        self._lock = threading.Lock()

    def keeps(self, numbers: Column, strings: Strings) -> NDArray[np.bool_]:
        """For each number of a text whether the text holds one of the parts; an empty one never does."""
        if not len(numbers):
            return np.zeros(0, np.bool_)
        if int(numbers.max()) >= len(self._verdicts):
            self._grow(int(numbers.max()))
        found = self._verdicts[numbers]
        if int(found.min()) == UNKNOWN:
            self._judge(np.unique(numbers[found == UNKNOWN]), strings)
            found = self._verdicts[numbers]
        return found.view(np.bool_)

    def _grow(self, number: int) -> None:
        with self._lock:
            if number >= len(self._verdicts):
                longer = np.full(max(number + 1, 2 * len(self._verdicts)), UNKNOWN, np.int8)
                longer[: len(self._verdicts)] = self._verdicts
                self._verdicts = longer

    def _judge(self, numbers: Column, strings: Strings) -> None:
        parts, texts = self._parts, strings.texts
        verdicts = []
        for number in numbers.tolist():
            text = texts[number]
            verdicts.append(any(part in text for part in parts))
        with self._lock:
            self._verdicts[numbers] = verdicts


class Filter:
    """Rules by kind. Without any it is not active and keeps everything."""

    def __init__(self, rules: Mapping[Kind, Sequence[str]] | None = None, *, active: bool | None = None) -> None:
        """`active` is said where no rule is left of those that a person wrote: such a filter keeps nothing."""
        self.rules = {kind: tuple(parts) for kind, parts in (rules or {}).items()}
        self.active = bool(self.rules) if active is None else active
        self._strings: Strings | None = None
        self._tables: dict[Kind, Table] = {}
        self._lock = threading.Lock()

    @classmethod
    def parse(cls, text: str) -> tuple[Filter, list[str]]:
        """The filter in a text, and what is wrong with the text, a sentence each. Bad entries are left out; a text of
        bad entries only is a filter that keeps nothing but the kinds that no filter touches."""
        entries, faults = filter_entries(text)
        rules: dict[Kind, list[str]] = {}
        for label, parts in entries:
            rules.setdefault(BY_LABEL[label], []).extend(parts)
        faults += [f"the filter's rule for {kind.label} has no effect: {why}" for kind, why in _idle(rules)]
        if faults and not entries:
            faults.append("no filter entry is left, so nothing is kept but Memory, MemSet and MemCpy")
        return cls(rules, active=bool(entries or faults)), faults

    def keep(self, batch: Batch, strings: Strings) -> Batch:
        """The records that pass; the batch itself when all do."""
        if not self.active or batch.kind in UNFILTERED:
            return batch
        if batch.kind not in self.rules or batch.kind is Kind.HCCL:
            return batch.where(np.zeros(0, np.intp))
        if not len(batch):
            return batch
        keep = self._table(batch.kind, strings).keeps(batch["name"], strings)
        if batch.kind is Kind.MARKER:
            keep = keep | ~_tested(batch)
        if keep.all():
            return batch
        return batch.where(np.flatnonzero(keep))

    def _table(self, kind: Kind, strings: Strings) -> Table:
        table = self._tables.get(kind)
        if table is not None and strings is self._strings:
            return table
        with self._lock:
            if strings is not self._strings:  # another collection numbers its texts anew
                self._strings, self._tables = strings, {}
            return self._tables.setdefault(kind, Table(self.rules[kind]))


def _tested(batch: Batch) -> NDArray[np.bool_]:
    """The markers of which the name counts: starts and instants on the host. An end has no name of its own, and a
    record of the device's side none at all."""
    found: NDArray[np.bool_] = (batch["side"] == Side.HOST) & ((batch["flag"] & (ANY_START | ANY_INSTANT)) != 0)
    return found


def _idle(rules: Mapping[Kind, Sequence[str]]) -> list[tuple[Kind, str]]:
    found = [(kind, "its records are always kept") for kind in rules if kind in UNFILTERED]
    return found + [(kind, "its records are dropped while a filter is set") for kind in rules if kind is Kind.HCCL]
