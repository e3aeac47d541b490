"""The store: what it keeps, and how much."""

from __future__ import annotations

import threading

from npuscope.monitor.metrics.record import Record
from npuscope.monitor.metrics.store import Store


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def record(time: float, value: float, name: str = "x", entity: str = "process", **labels: str) -> Record:
    return Record(time, entity, labels, {name: value})


def test_the_newest_of_everything() -> None:
    store = Store()
    store.put([record(1, 10, pid="1"), record(1, 20, pid="2"), record(2, 11, pid="1")])
    assert sorted((one.labels["pid"], one.time, one.values["x"]) for one in store.latest()) == [
        ("1", 2, 11), ("2", 1, 20)
    ]  # fmt: skip


def test_the_history_is_the_last_values_in_order() -> None:
    store = Store(depth=3)
    for moment in range(1, 3):
        store.put([record(moment, moment * 10.0)])
    (series,) = store.history()
    assert series == {"name": "x", "entity": "process", "labels": {}, "times": [1, 2], "values": [10, 20]}
    for moment in range(3, 9):
        store.put([record(moment, moment * 10.0)])
    (series,) = store.history()
    assert series["times"] == [6, 7, 8] and series["values"] == [60, 70, 80]


def test_texts_and_time_stamps_have_no_history() -> None:
    store = Store()
    store.put([Record(1, "device", {"kind": "Marker"}, {"timestamp": 5, "name": "a", "duration": 7})])
    assert [series["name"] for series in store.history()] == ["duration"]
    assert store.latest()[0].values["name"] == "a"


def test_series_are_bounded_and_the_silent_make_way() -> None:
    clock = Clock()
    most = {"process": 10, "host": 10, "device": 10, "daemon": 10}
    store = Store(most_series=most, fades={"process": 30}, clock=clock)
    store.put([record(0, 1, pid=str(number)) for number in range(15)])
    assert len(store.history()) == 10 and store.refused == 5 and len(store.latest()) == 15
    store.put([record(0, 1, entity="host")])
    assert len(store.history()) == 11  # the others' room is their own
    clock.now = 20
    store.put([record(20, 1, pid="0")])
    clock.now = 40
    store.put([record(40, 1, pid=str(number)) for number in range(100, 109)])
    kept = {series["labels"].get("pid") for series in store.history()}
    assert kept == {None, "0", *map(str, range(100, 109))}


def test_what_is_no_longer_measured_fades() -> None:
    clock = Clock()
    store = Store(fades={"process": 30}, clock=clock)
    store.put([record(0, 1, pid="1"), record(0, 1, entity="device")])
    clock.now = 31
    assert [one.entity for one in store.latest()] == ["device"]


def test_many_threads() -> None:
    store = Store(depth=100)

    def write(pid: str) -> None:
        for moment in range(500):
            store.put([record(moment, moment, pid=pid)])

    threads = [threading.Thread(target=write, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for series in store.history():
            assert series["times"] == series["values"] == sorted(series["times"])
    assert all(series["values"] == list(range(400, 500)) for series in store.history())
