"""What orders two programs: atomic operations that release and acquire, and nothing else; and waits that never end."""

from __future__ import annotations

import random
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from programs.tile_bench import Bench

from npuscope.sanitizer.programs.order import AtomicOrder
from npuscope.trace.footprint import Explicit
from npuscope.trace.schema import Role

SILENT = [
    ("last_arriver", ("acq_rel",)), ("last_arriver", ("acq_rel", 256)), ("spin_lock", ()), ("semaphore", ()),
    ("message", ()), ("grid_barrier", ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), SILENT)
def test_ordered(bench: Bench, name: str, arguments: tuple[Any, ...]) -> None:
    """Values are right, and nothing is found."""
    found = bench.run(lambda: getattr(bench.kernels("order_kernels"), name)(*arguments))
    assert found.findings == [], found.text
    assert not found.limits


RACES = [
    ("last_arriver", ("relaxed",), "race-raw", "parts[0]"),
    ("message", ("relaxed",), "race-raw", "data[0]"),
    ("message", ("acq_rel", True), "race-raw", "data[0]"),
    ("semaphore", (False,), "race", "c[0, 0]"),
    ("lock_that_some_ignore", (), "race", "target[0]"),
    ("plain_beside_atomic", (), "race-waw", "target[0]"),
]


@pytest.mark.parametrize(("name", "arguments", "kind", "place"), RACES)
def test_not_ordered(bench: Bench, name: str, arguments: tuple[Any, ...], kind: str, place: str) -> None:
    """Relaxed operations, volatile polling and locks that some ignore order nothing."""
    found = bench.run(lambda: getattr(bench.kernels("order_kernels"), name)(*arguments))
    assert found.findings
    assert all(finding.kind.startswith(kind) for finding in found.findings), found.text
    assert all(place in finding.summary for finding in found.findings), found.text


def test_flag_that_is_polled_is_no_race(bench: Bench) -> None:
    """Volatile reads are meant to see what others write; only the data behind the flag is reported."""
    found = bench.run(lambda: bench.kernels("order_kernels").message("acq_rel", True))
    assert "flag" not in "".join(finding.summary for finding in found.findings)


def test_deadlock(bench: Bench) -> None:
    """Where each program stands, instead of a run without an end."""
    found = bench.run(lambda: bench.kernels("order_kernels").each_waits_for_the_other(), fails=True)
    finding = found.only("deadlock")
    assert "all 2 programs that have not ended wait" in finding.summary
    assert finding.check == "sync"
    assert "Programs 0 to 1 wait at " in finding.notes[0]
    assert finding.frames[0].file.endswith("order_kernels.py")
    assert "can never finish" in str(found.error)


def test_deadlock_of_volatile_polling(bench: Bench) -> None:
    """A flag that nobody sets."""
    import torch

    kernels = bench.kernels("order_kernels")
    flag, target = torch.zeros(1, dtype=torch.int32), torch.zeros(3)
    found = bench.run(lambda: kernels.poll[(3,)](flag, target), fails=True)
    assert "all 3 programs" in found.only("deadlock").summary


# -- against a plain definition ------------------------------------------------------------------------------------


def made_up(seed: int) -> tuple[Any, list[tuple[int, int, int, tuple[int, ...]]]]:
    """Random rows: some atomic ones with semantics 1 to 4 on a few places, some plain ones."""
    chance = random.Random(seed)
    count, programs = 60, 5
    table = []
    explicit = []
    for serial in range(count):
        semantics = chance.choice([0, 0, 1, 2, 3, 4])
        places = tuple(sorted(chance.sample(range(4), chance.choice([1, 1, 2]))))
        explicit.append(Explicit(np.array(places), 1))
        table.append((serial, chance.randrange(programs), semantics, places))
    serial, program, semantics, _ = (np.array([row[column] for row in table]) if column < 3 else None for column in range(4))
    role = np.where(semantics > 0, Role.ATOMIC, Role.WRITE)
    rows = SimpleNamespace(
        serial=serial, program=program, semantics=semantics, role=role, address=np.zeros(count, np.int64),
        footprint=-1 - np.arange(count), batch=SimpleNamespace(explicit=explicit),
    )  # fmt: skip
    return rows, table


def happens_before(table: list[tuple[int, int, int, tuple[int, ...]]]) -> dict[int, set[int]]:
    """By its definition: the closure of the order within programs and from releases to later acquires of a place."""
    after: dict[int, set[int]] = defaultdict(set)
    for serial, program, semantics, places in reversed(table):
        for later, who, how, where in table[serial + 1 :]:
            own = who == program
            joined = semantics in (3, 4) and how in (2, 4) and set(places) & set(where)
            if own or joined:
                after[serial] |= {later} | after[later]
    return after


@pytest.mark.parametrize("seed", range(12))
def test_order_is_happens_before(seed: int) -> None:
    """The clocks agree with the closure, for every pair of plain accesses of two programs."""
    rows, table = made_up(seed)
    expected = happens_before(table)
    pairs = [
        (one, other) for one in range(len(table)) for other in range(one + 1, len(table))
        if table[one][1] != table[other][1] and table[one][2] == table[other][2] == 0
    ]  # fmt: skip
    earlier, later = (np.array(side) for side in zip(*pairs, strict=True))
    found = AtomicOrder(rows).ordered(earlier, later)
    assert found.tolist() == [other in expected[one] for one, other in pairs]
