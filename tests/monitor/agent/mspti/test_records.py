"""Every field of every kind of record, and buffers that are not as expected."""

from __future__ import annotations

import numpy as np
import pytest
from activity_collection import Collection
from activity_library import CORRELATION, FUTURE, numbers

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.agent.sources import records

ALL = [int(kind) for kind in Kind]


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.label)
def test_every_field_arrives(collection: Collection, kind: Kind) -> None:
    collection.start(frozenset({kind}))
    collection.library.emit([kind], 3, 1000)
    collection.source.flush()
    collection.assert_is(kind, np.arange(3, 1003))
    assert collection.counts == {kind: 1000}
    assert not collection.source.losses


def test_a_million_records_of_all_kinds_from_a_thread_of_the_library(collection: Collection) -> None:
    collection.start()
    thread = collection.library.start(ALL, 0, 1_000_000)
    collection.library.join(thread)
    collection.source.stop()
    for kind in Kind:
        collection.assert_is(kind, numbers(ALL, kind, 0, 1_000_000))
    assert not collection.source.losses  # all of it fits in 8 buffers
    assert collection.library.c.fake_misaligned() == 0


def test_many_different_names(collection: Collection) -> None:
    collection.library.c.fake_names(60_000)
    collection.start()
    collection.library.emit([Kind.KERNEL], 0, 60_000)
    collection.source.flush()
    collection.assert_is(Kind.KERNEL, np.arange(60_000), 60_000)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"", ""),
        ("\u77e9\u9635\u4e58".encode(), "\u77e9\u9635\u4e58"),
        (b"half \xe4\xb8 of a character", "half \ufffd of a character"),
        (b"x" * 5000, "x" * 5000),
    ],
    ids=["empty", "Chinese", "not UTF-8", "long"],
)
def test_names_of_all_sorts(collection: Collection, name: bytes, text: str) -> None:
    collection.start()
    collection.library.c.fake_kernel(name)
    collection.source.flush()
    assert [collection.strings.texts[n] for n in collection.of(Kind.KERNEL)["name"]] == [text]


def test_a_name_that_lies_nowhere_costs_the_name_only(collection: Collection) -> None:
    collection.start()
    collection.library.emit([Kind.KERNEL], 0, 2)
    collection.library.c.fake_wild()
    collection.library.emit([Kind.KERNEL], 2, 2)
    collection.source.flush()
    names = [collection.strings.texts[n] for n in collection.of(Kind.KERNEL)["name"]]
    assert names == ["name_0", "name_1", "", "name_2", "name_3"]
    assert collection.source.losses == {records.NAMELESS: 1}


def test_kinds_that_nobody_wants_are_passed_over(fresh: Collection) -> None:
    fresh.start()
    for kind in (CORRELATION, FUTURE):
        fresh.library.c.msptiActivityEnable(kind)
    mixed = [CORRELATION, int(Kind.KERNEL), FUTURE, int(Kind.MEMCPY)]
    fresh.library.emit(mixed, 0, 4000)
    fresh.source.flush()
    assert fresh.counts == {Kind.KERNEL: 1000, Kind.MEMCPY: 1000}
    fresh.assert_is(Kind.MEMCPY, numbers(mixed, Kind.MEMCPY, 0, 4000))
    assert not fresh.source.losses


def test_records_of_a_newer_library_may_be_longer(fresh: Collection) -> None:
    fresh.library.c.fake_extra(Kind.KERNEL, 24)
    fresh.library.c.fake_extra(Kind.API, 8)
    fresh.start()
    fresh.library.emit(ALL, 0, 11_000)
    fresh.source.flush()
    for kind in Kind:
        fresh.assert_is(kind, numbers(ALL, kind, 0, 11_000))
    assert not fresh.source.losses


def test_records_shorter_than_known_are_not_guessed_at(fresh: Collection) -> None:
    fresh.library.c.fake_extra(Kind.KERNEL, -8)
    fresh.start()
    fresh.library.emit([Kind.KERNEL, Kind.API], 0, 20)
    fresh.source.flush()
    assert fresh.counts == {Kind.API: 10}
    assert fresh.source.losses == {records.SHORT: 10}


def test_the_library_walks_when_records_of_a_kind_differ_in_length(fresh: Collection) -> None:
    fresh.library.c.fake_varying(1)
    fresh.start()
    fresh.library.emit(ALL, 0, 11_000)
    fresh.source.flush()
    for kind in Kind:
        fresh.assert_is(kind, numbers(ALL, kind, 0, 11_000))
    assert not fresh.source.losses


@pytest.mark.parametrize("value", [0x00, 0x02, 0xFF])
def test_rubbish_at_the_end_loses_only_that(collection: Collection, value: int) -> None:
    collection.start()
    collection.library.emit([Kind.KERNEL], 0, 100)
    collection.library.c.fake_rubbish(10 * 56, value)
    collection.source.flush()
    collection.assert_is(Kind.KERNEL, np.arange(90))
    assert collection.source.losses == {records.UNREADABLE: 560}
    collection.library.emit([Kind.KERNEL], 90, 20)
    collection.source.flush()
    collection.assert_is(Kind.KERNEL, np.arange(110))
    assert collection.source.losses == {records.UNREADABLE: 560}


@pytest.mark.parametrize("cut", [1, 8, 54, 55])
def test_a_truncated_buffer_loses_its_last_record(collection: Collection, cut: int) -> None:
    collection.start()
    collection.library.emit([Kind.KERNEL], 0, 100)
    collection.library.c.fake_cut(cut)
    collection.source.flush()
    collection.assert_is(Kind.KERNEL, np.arange(99))
    assert collection.source.losses == {records.UNREADABLE: 56 - cut}


def test_a_buffer_of_nothing_but_rubbish(collection: Collection) -> None:
    collection.start()
    collection.library.emit([Kind.KERNEL], 0, 100)
    collection.library.c.fake_rubbish(100 * 56, 0xFF)
    collection.source.flush()
    assert collection.counts == {}
    assert collection.source.losses == {records.UNREADABLE: 5600}
