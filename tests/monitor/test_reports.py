"""Reports of many processes in one registry, and who is told what: npuscope's agents, of which each rank has one."""

from __future__ import annotations

from npuscope.monitor.daemon.conflict import conflict
from npuscope.monitor.daemon.order import Order
from npuscope.monitor.daemon.process import Sender
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.protocol.codes import Code
from npuscope.monitor.protocol.fabric import Channel, Dialect, Poll, Status, Types
from npuscope.monitor.protocol.standing import Ending, Standing, standing

MONITOR = "NPU_MONITOR_START=true"
STOP = "NPU_MONITOR_START=false\nNPU_MONITOR_STOP=true"
TRACE = "ACTIVITIES_LOG_FILE=/tmp/x\nPROFILE_START_STEP=5"


def sender(pid: int, dialect: Dialect = Dialect.MSMONITOR) -> Sender:
    return Sender(dialect, pid, 0, f"client{pid}".encode())


def poll(registry: Registry, pid: int) -> str:
    return registry.poll(Poll(Types(3), 0, (pid, 1000)), sender(pid), 10.0) or ""


def registry(*pids: int) -> Registry:
    made = Registry()
    for pid in pids:
        poll(made, pid)
        made.status(Status(Channel.TRACE, 0, pid=pid), sender(pid))
        made.status(Standing().status(pid), sender(pid))
    return made


def order(config: str, *pids: int, limit: int = 3) -> Order:
    return Order(config, 0, pids or (0,), limit, 0, Dialect.MSMONITOR)


def test_the_busiest_speaks_for_all() -> None:
    made = registry(1, 2, 3)
    for pid, status in ((1, 0), (2, 1), (3, 0)):
        made.status(Status(Channel.MONITOR, status, pid=pid), sender(pid))
    found = made.reports.foremost(Channel.MONITOR)
    assert found and (found.status, found.pid) == (1, 2)
    assert made.reports.of(sender(3))[Channel.MONITOR].status == 0
    made.reports.drop([sender(2)])
    found = made.reports.foremost(Channel.MONITOR)
    assert found and (found.status, found.pid) == (0, 3)
    assert made.reports.foremost(Channel.MONITOR, [sender(2)]) is None


def test_only_the_processes_that_are_meant_are_in_the_way() -> None:
    made = registry(1, 2)
    made.status(Standing(True).status(1), sender(1))
    held = conflict(made, order(TRACE))
    assert held and "a monitor is running" in held.reason
    assert conflict(made, order(TRACE, 2)) is None
    # The vendor's ranks report without being registered: there the whole node counts.
    made.status(Status(Channel.MONITOR, 0, pid=2), sender(2))
    assert conflict(made, order(TRACE, 2)) is not None


def test_a_monitors_order_reaches_every_rank() -> None:
    made = registry(*range(1, 9))
    assert made.trigger(order(MONITOR), 10.0).pids("triggered") == list(range(1, 9))
    other = registry(*range(1, 9))
    assert len(other.trigger(order(TRACE), 10.0).pids("triggered")) == 3
    third = registry(*range(1, 9))
    ranks = f"{TRACE}\nPROFILE_IS_RANK=true\nPROFILE_RANK_LIST=7"
    assert len(third.trigger(order(ranks), 10.0).pids("triggered")) == 8  # they tell by themselves


def test_orders_to_a_monitor_wait_for_each_other() -> None:
    made = registry(1)
    for config in (MONITOR, STOP, MONITOR):
        assert made.trigger(order(config), 10.0).pids("triggered") == [1]
    assert made.trigger(order(TRACE), 10.0).pids("busy") == [1]
    assert [STOP in poll(made, 1) for _ in range(3)] == [False, True, False] and poll(made, 1) == ""


def test_an_order_that_was_not_delivered_keeps_its_place() -> None:
    made = registry(1)
    for config in (MONITOR, STOP):
        made.trigger(order(config), 10.0)
    poll(made, 1)
    made.undelivered(sender(1))
    assert [STOP in poll(made, 1) for _ in range(2)] == [False, True]


def test_so_many_wait_and_no_more() -> None:
    made = registry(1)
    told = [bool(made.trigger(order(MONITOR), 10.0).pids("triggered")) for _ in range(20)]
    assert told == [True] * 17 + [False] * 3


def test_what_an_agent_says_comes_back_whole() -> None:
    for one in (Standing(), Standing(True, 7, Code.PERMISSION, Ending.EXPIRED), Standing(False, 2**40)):
        back = standing(one.status(4))
        assert back and (back.running, back.code, back.ending) == (one.running, one.code, one.ending)
        assert back.lost == min(one.lost, 2**31 - 1)
    assert standing(Status(Channel.MONITOR, 1)) is None  # the vendor's says nothing more
