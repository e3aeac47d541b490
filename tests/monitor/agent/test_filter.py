"""The filter: FIL-01 to FIL-08 and what comes with them. What is kept is told from the acceptance cases."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest

from npuscope.monitor.activity.batch import COLUMNS, Batch, batch
from npuscope.monitor.activity.kinds import BY_LABEL, Flag, Kind, Side
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.filter import Filter

NAMES = ["MatMul", "BatchMatMul", "Conv2D", "AllReduce", "Add_1", "2dPool", "矩阵乘", ""]


def records(kind: Kind, names: Sequence[str], strings: Strings, **columns: object) -> Batch:
    made = {name: np.zeros(len(names), dtype) for name, dtype in COLUMNS[kind].items()}
    if "name" in made:
        made["name"] = strings.numbers(names)
    return batch(kind, made | columns)


def kept(text: str, kind: Kind = Kind.KERNEL, names: Sequence[str] = NAMES) -> list[str]:
    strings = Strings()
    strings.number("another text first")
    found = Filter.parse(text)[0].keep(records(kind, names, strings), strings)
    return [strings.texts[number] for number in found["name"]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Kernel:MatMul", ["MatMul", "BatchMatMul"]),  # FIL-01
        ("Kernel:MatMul,Conv2D", ["MatMul", "BatchMatMul", "Conv2D"]),  # FIL-02
        ("Kernel:MatMul;Communication:AllReduce", ["MatMul", "BatchMatMul"]),  # FIL-03
        ("Kernel:Mat", ["MatMul", "BatchMatMul"]),  # FIL-04
        ("", NAMES),  # FIL-05
        (" ; ", NAMES),
        ("InvalidKind:Op", []),  # FIL-08
        ("Communication:AllReduce", []),  # a kind without a rule
        ("Kernel:matmul", []),  # case counts
        ("Kernel:a", ["MatMul", "BatchMatMul"]),
        ("Kernel:2", ["Conv2D", "2dPool"]),
        ("Kernel:_", ["Add_1"]),
        ("Kernel:2d", ["2dPool"]),
        ("Kernel:矩阵", ["矩阵乘"]),
        (" Kernel : Conv2D , 2d ", ["Conv2D", "2dPool"]),
        ("no colon;Kernel:Conv2D", ["Conv2D"]),
        ("Kernel:Conv2D;Kernel:Add", ["Conv2D", "Add_1"]),
        ("Kernel:,", []),
    ],
)
def test_which_kernels_are_kept(text: str, names: list[str]) -> None:
    assert kept(text) == names


def test_each_kind_has_rules_of_its_own() -> None:
    assert kept("Kernel:MatMul;Communication:AllReduce", Kind.COMMUNICATION) == ["AllReduce"]


@pytest.mark.parametrize("kind", [Kind.MEMORY, Kind.MEMSET, Kind.MEMCPY])
@pytest.mark.parametrize("text", ["Kernel:MatMul", "InvalidKind:Op"])
def test_what_has_no_name_is_always_kept(kind: Kind, text: str) -> None:  # FIL-06
    strings = Strings()
    given = records(kind, ["", ""], strings)
    assert Filter.parse(text)[0].keep(given, strings) is given


@pytest.mark.parametrize("text", ["Kernel:MatMul", "Hccl:AllReduce"])
def test_hccl_is_dropped_while_a_filter_is_set(text: str) -> None:
    assert kept(text, Kind.HCCL) == []
    assert kept("", Kind.HCCL) == NAMES


@pytest.mark.parametrize("kind", BY_LABEL.values())
def test_an_empty_batch_is_no_trouble(kind: Kind) -> None:
    strings = Strings()
    assert len(Filter.parse(f"{kind.label}:x")[0].keep(records(kind, [], strings), strings)) == 0


H, D = Side.HOST, Side.DEVICE


@pytest.mark.parametrize(
    ("flag", "side", "name", "stays"),
    [
        (Flag.START, H, "step", True), (Flag.START, H, "other", False), (Flag.START, H, "", False),
        (Flag.INSTANT, H, "step", True), (Flag.INSTANT, H, "other", False),
        (Flag.START_WITH_DEVICE, H, "other", False), (Flag.INSTANT_WITH_DEVICE, H, "other", False),
        (Flag.END, H, "", True), (Flag.END_WITH_DEVICE, H, "", True),
        (Flag.START_WITH_DEVICE, D, "", True), (Flag.END_WITH_DEVICE, D, "", True),
        (Flag.NONE, H, "other", True),
    ],
)  # fmt: skip
def test_of_markers_only_starts_and_instants_on_the_host_are_tested(
    flag: Flag, side: Side, name: str, stays: bool
) -> None:
    strings = Strings()
    given = records(Kind.MARKER, [name], strings, flag=[flag], side=[side])
    assert len(Filter.parse("Marker:step")[0].keep(given, strings)) == stays


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("InvalidKind:Op", ["InvalidKind:Op", "nothing is kept but Memory, MemSet and MemCpy"]),
        ("Kernel:a;oops;API:b", ["'oops'"]),
        ("Kernel:a:b;API:b", ["'Kernel:a:b'"]),
        ("Hccl:x;Kernel:y", ["Hccl"]),
        ("Memory:x;Kernel:y", ["Memory"]),
        ("Kernel:y", []),
        ("", []),
    ],
)
def test_what_is_skipped_is_named(text: str, named: list[str]) -> None:
    faults = Filter.parse(text)[1]
    assert len(faults) == len(named)
    assert all(word in fault for word, fault in zip(named, faults, strict=True))


def test_names_that_come_later_are_judged_too() -> None:
    strings, rules = Strings(), Filter.parse("Kernel:7")[0]
    for count in (10, 5000):  # beyond the first size of the table
        names = [f"k{number}" for number in range(count)]
        found = rules.keep(records(Kind.KERNEL, names, strings), strings)
        assert [strings.texts[n] for n in found["name"]] == [name for name in names if "7" in name]
    other = Strings()  # another collection numbers its texts anew
    assert len(rules.keep(records(Kind.KERNEL, ["a", "7"], other), other)) == 1


def test_a_filter_of_1024_characters_tests_each_name_once() -> None:
    words = [f"{number:03d}x" for number in range(203)]
    text = "Kernel:" + ",".join(words) + ",ab"
    assert len(text) == 1024
    strings, rules = Strings(), Filter.parse(text)[0]
    given = records(Kind.KERNEL, [f"kernel_{number:03d}x" for number in range(400)], strings)
    begin = time.thread_time()
    assert len(rules.keep(given, strings)) == 203
    first = time.thread_time() - begin
    many = given.where(np.tile(np.arange(400), 250))
    begin = time.thread_time()
    assert len(rules.keep(many, strings)) == 203 * 250
    assert time.thread_time() - begin < max(first * 125, 0.5)  # half of what 250 times the first would cost
