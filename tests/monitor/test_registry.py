"""Registration, matching, limits and forgetting, without a clock or a socket."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npuscope.monitor.daemon.order import Order
from npuscope.monitor.daemon.process import Sender
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.protocol.fabric import Context, Dialect, Poll, Types

BOTH = Types.EVENTS | Types.ACTIVITIES
ORDER = Order("A=1", 0, (0,), 3, 1000, Dialect.KINETO, ends=8.0)


def sender(pid: int, uid: int = 1000, dialect: Dialect = Dialect.KINETO, address: bytes = b"a") -> Sender:
    return Sender(dialect, pid, uid, address)


def registered(*leaves: int, registry: Registry | None = None, **who: int) -> Registry:
    registry = registry or Registry("here")
    for leaf in leaves:
        assert registry.poll(Poll(BOTH, 0, (leaf, 1)), sender(leaf, **who), 0.0) == ""
    return registry


def test_work_is_delivered_once_and_with_a_trace_id() -> None:
    registry = registered(42)
    outcome = registry.trigger(ORDER, 1.0)
    assert outcome.pids() == outcome.pids("triggered") == [42] and outcome.reason is None
    text = registry.poll(Poll(BOTH, 0, (42, 1)), sender(42), 2.0)
    assert text == f"\n    A=1\n    REQUEST_TRACE_ID={outcome.matches[0].trace_id}\n"
    assert registry.poll(Poll(BOTH, 0, (42, 1)), sender(42), 3.0) == ""


def test_a_busy_process_gets_nothing_until_it_is_free() -> None:
    registry = registered(42)
    registry.trigger(ORDER, 1.0)
    assert registry.poll(Poll(Types.EVENTS, 0, (42, 1)), sender(42), 2.0) == ""
    assert "A=1" in (registry.poll(Poll(BOTH, 0, (42, 1)), sender(42), 3.0) or "")


def test_a_second_request_is_refused_as_long_as_the_first_lasts() -> None:
    registry = registered(42)
    registry.trigger(ORDER, 1.0)
    assert registry.trigger(ORDER, 1.5).pids("busy") == [42]  # not yet fetched
    registry.poll(Poll(BOTH, 0, (42, 1)), sender(42), 2.0)
    assert registry.trigger(ORDER, 2.5).pids("busy") == [42]  # fetched, the process warms up
    registry.poll(Poll(Types.EVENTS, 0, (42, 1)), sender(42), 4.0)
    outcome = registry.trigger(ORDER, 4.5)
    assert outcome.pids("busy") == [42] and outcome.reason == "every matching process is busy"
    registry.poll(Poll(BOTH, 0, (42, 1)), sender(42), 6.0)
    assert registry.trigger(ORDER, 6.5).pids("triggered") == [42]


def test_a_process_that_is_never_seen_busy_is_free_after_the_expected_end() -> None:
    registry = registered(42)
    registry.trigger(ORDER, 1.0)
    for now in (2.0, 7.0):
        registry.poll(Poll(BOTH, 0, (42, 1)), sender(42), now)
        assert registry.trigger(ORDER, now).pids("busy") == [42]
    registry.poll(Poll(BOTH, 0, (42, 1)), sender(42), 12.0)
    assert registry.trigger(ORDER, 12.0).pids("triggered") == [42]


@pytest.mark.parametrize("dialect", Dialect)
def test_what_cannot_be_sent_waits_for_the_next_poll(dialect: Dialect) -> None:
    registry, client = Registry("here"), sender(42, dialect=dialect)
    registry.poll(Poll(BOTH, 0, (42, 1)), client, 0.0)
    registry.trigger(replace(ORDER, dialect=dialect), 1.0)
    text = registry.poll(Poll(BOTH, 0, (42, 1)), client, 2.0)
    registry.undelivered(client)
    assert registry.poll(Poll(BOTH, 0, (42, 1)), client, 3.0) == text != ""
    assert registry.poll(Poll(BOTH, 0, (42, 1)), client, 4.0) == ""


def test_an_ancestor_names_its_children() -> None:
    registry = Registry()
    for leaf in (11, 12):
        registry.poll(Poll(BOTH, 0, (leaf, 10, 1)), sender(leaf), 0.0)
    registry.poll(Poll(BOTH, 0, (20, 1)), sender(20), 0.0)
    assert registry.trigger(replace(ORDER, pids=(10, 11)), 1.0).pids() == [11, 12]


def test_a_process_in_a_container_answers_to_both_its_numbers() -> None:
    registry = Registry()
    registry.poll(Poll(BOTH, 0, (7, 1)), sender(5007), 0.0)
    assert registry.trigger(replace(ORDER, pids=(5007,)), 1.0).pids() == [7]
    assert registry.trigger(replace(ORDER, pids=(7,)), 1.0).pids() == [7]


def test_the_limit_is_for_workers_not_for_their_launcher() -> None:
    registry = Registry()
    registry.poll(Poll(BOTH, 0, (10, 1)), sender(10), 0.0)
    for leaf in (11, 12, 13):
        registry.poll(Poll(BOTH, 0, (leaf, 10, 1)), sender(leaf), 0.0)
    outcome = registry.trigger(replace(ORDER, limit=2), 1.0)
    assert outcome.pids() == [10, 11, 12, 13]
    assert outcome.pids("triggered") == [11, 12]


def test_nobody_reaches_another_users_process() -> None:
    registry = registered(42, uid=1001)
    assert registry.trigger(ORDER, 1.0).matches == ()
    assert registry.trigger(replace(ORDER, uid=None), 1.0).pids() == [42]


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        (replace(ORDER, dialect=Dialect.MSMONITOR), "no process with the vendor's plug-in is registered"),
        (replace(ORDER, uid=5), "the registered processes belong to other users"),
        (replace(ORDER, job=7), "no process has job id 7; registered: 0"),
        (replace(ORDER, pids=(43,)), "none of the processes 43 is registered"),
    ],
)
def test_the_reason_when_nothing_matches(order: Order, reason: str) -> None:
    assert (registered(42).trigger(order, 1.0).reason or "").startswith(reason)
    assert "KINETO_USE_DAEMON=1" in (Registry().trigger(ORDER, 1.0).reason or "")


def test_a_new_client_under_an_old_number_inherits_nothing() -> None:
    registry = registered(42)
    registry.trigger(ORDER, 1.0)
    assert registry.poll(Poll(BOTH, 0, (42, 1)), sender(42, address=b"b"), 2.0) == ""


def test_the_silent_are_forgotten_and_so_is_old_work() -> None:
    registry = registered(42, 43)
    registry.trigger(ORDER, 1.0)
    registry.poll(Poll(Types.EVENTS, 0, (42, 1)), sender(42), 59.0)
    assert [process.leaf for process in registry.collect(61.0)] == [43]
    assert registry.poll(Poll(BOTH, 0, (42, 1)), sender(42), 62.0) == ""


def test_devices_in_use_are_counted_by_job() -> None:
    registry = Registry()
    assert registry.context(Context(2, 4242, 7), 0.0) == 1
    assert registry.context(Context(2, 4242, 7), 1.0) == 1
    assert registry.context(Context(2, 4243, 7), 2.0) == 2
    assert registry.context(Context(2, 4243, 8), 2.0) == 1
    registry.collect(100.0)
    assert registry.contexts == {}
