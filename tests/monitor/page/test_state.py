"""What the page says of a daemon: who is shown to whom, what counts as wrong, which figures a browser gets."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from npuscope.monitor.daemon.details import patience
from npuscope.monitor.daemon.ledger import Asked, Ledger, measure, told
from npuscope.monitor.daemon.order import Order
from npuscope.monitor.daemon.process import Process, Sender
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.daemon.status import Account
from npuscope.monitor.page.history import MOST_POINTS, MOST_SERIES, Wanted, history, read_wanted
from npuscope.monitor.page.http import Request
from npuscope.monitor.page.nodes import Watch
from npuscope.monitor.page.problems import problems
from npuscope.monitor.page.site import FRESH_SECONDS, Site
from npuscope.monitor.page.sources import Sources
from npuscope.monitor.page.state import encode, page_state
from npuscope.monitor.page.tally import Tally
from npuscope.monitor.protocol.config import expected_end
from npuscope.monitor.protocol.fabric import Dialect, Poll, Types

ALICE, MALLORY = 61001, 61002
BOTH = Types.EVENTS | Types.ACTIVITIES
GONE = 2**22 + 7
"""More than any process number can be."""


def registry_with(*senders: tuple[int, int, tuple[int, ...]]) -> Registry:
    """One process for each (number here, user, numbers it names)."""
    registry = Registry("node7")
    for pid, uid, pids in senders:
        registry.poll(Poll(BOTH, 0, pids), Sender(Dialect.KINETO, pid, uid, b"x%d" % pid), time.time())
    return registry


def account_of(registry: Registry) -> Account:
    return Account(lambda function: function(registry), Ledger(), lambda: {"impostors": 2})


def processes(account: Account, viewer: int | None, **more: bool) -> dict[int, Any]:
    return {process["pid"]: process for process in account.status(viewer, **more)["processes"]}


def test_a_process_is_described() -> None:
    me, parent = os.getpid(), os.getppid()
    registry = registry_with((me, os.getuid(), (me, parent)), (parent, os.getuid(), (parent, 1)))
    shown = processes(account_of(registry), os.getuid())
    assert "python" in shown[me]["command"] and shown[me]["state"] == "idle"
    assert shown[me]["launcher"] is False and shown[parent]["launcher"] is True
    assert abs(shown[me]["started"] - os.stat(f"/proc/{me}").st_ctime) < 60
    assert shown[me]["polls"] == 1 and "health" not in shown[me] and "hostPid" not in shown[me]


def test_a_process_in_a_container_has_two_numbers() -> None:
    shown = processes(account_of(registry_with((os.getpid(), os.getuid(), (7, 1)))), os.getuid())
    assert shown[7]["hostPid"] == os.getpid()


@pytest.mark.parametrize(
    ("viewer", "remote", "seen"),
    [(ALICE, False, {1}), (MALLORY, False, {2}), (None, False, set()), (0, False, {1, 2}), (0, True, set()), (5, False, set())],
)  # fmt: skip
def test_details_are_for_the_owner_and_for_root(viewer: int | None, remote: bool, seen: set[int]) -> None:
    account = account_of(registry_with((GONE + 1, ALICE, (1,)), (GONE + 2, MALLORY, (2,))))
    shown = processes(account, viewer, remote=remote)
    assert {pid for pid, process in shown.items() if "command" in process} == seen
    for pid in {1, 2} - seen:
        assert shown[pid].keys() == {"pid", "job", "client", "state", "user"}
    state = page_state(account.status(viewer, remote=remote), viewer, {}, 10, [])
    assert {process["pid"] for process in state["processes"]} == seen
    assert state["hidden"]["others"] == 2 - len(seen)


def test_the_number_of_another_users_process_tells_nothing() -> None:
    account = account_of(registry_with((os.getpid(), ALICE, (os.getpid(),))))
    assert os.getuid() != ALICE
    assert processes(account, ALICE)[os.getpid()]["command"] == ""


def test_a_process_that_is_gone_and_one_that_is_silent() -> None:
    registry = registry_with((GONE, ALICE, (GONE,)), (os.getpid(), os.getuid(), (os.getpid(),)))
    registry.processes[Dialect.KINETO, os.getuid(), os.getpid()].last -= 16
    account = account_of(registry)
    shown = processes(account, 0)
    assert (shown[GONE]["health"], shown[os.getpid()]["health"]) == ("exited", "silent")
    summary = account.status(None)["summary"]
    assert (summary["processes"], summary["exited"], summary["silent"]) == (1, 1, 1)
    texts = [problem["text"] for problem in page_state(account.status(0), 0, {}, 10, [])["problems"]]
    assert len(texts) == 1 and f"process {os.getpid()} runs but has not polled for 16 s" in texts[0]
    (hidden,) = page_state(account.status(ALICE), ALICE, {}, 10, [])["problems"]
    assert hidden["text"] == "1 more process runs but does not poll"


def test_patience_grows_with_the_period() -> None:
    process = Process(Sender(Dialect.KINETO, 1, 1, b""), 0, (1,), BOTH, first=0.0, last=40.0, polls=3)
    assert patience(process) == 60.0  # it polls every 20 seconds
    process.polls = 41
    assert patience(process) == 15.0


def test_work_is_shown_with_its_file_and_its_end() -> None:
    now = time.time()
    registry = registry_with((os.getpid(), os.getuid(), (os.getpid(),)))
    text = "ACTIVITIES_LOG_FILE=/tmp/x.json\nACTIVITIES_DURATION_MSECS=4000"
    ends = expected_end({"ACTIVITIES_DURATION_MSECS": "4000"}, now)
    assert ends is not None and ends - now == pytest.approx(5 + 2 + 4)  # warm-up, delay, length: the published defaults
    outcome = registry.trigger(Order(text, 0, (), 3, None, Dialect.KINETO, ends), now)
    account = account_of(registry)
    shown = processes(account, os.getuid())[os.getpid()]
    assert shown["state"] == "waiting"
    assert shown["work"] == {
        "traceId": outcome.matches[0].trace_id, "file": f"/tmp/x_{os.getpid()}.json", "asked": now, "ends": ends,
    }  # fmt: skip
    registry.poll(
        Poll(BOTH, 0, (os.getpid(),)), Sender(Dialect.KINETO, os.getpid(), os.getuid(), b"x%d" % os.getpid()), now + 3
    )
    shown = processes(account, os.getuid())[os.getpid()]
    assert shown["state"] == "delivered" and shown["work"]["ends"] == pytest.approx(ends + 3)
    state = json.loads(encode(page_state(account.status(os.getuid()), os.getuid(), {}, 10, [])))
    assert state["processes"][0]["work"]["traceId"] == str(outcome.matches[0].trace_id)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ({"ACTIVITIES_DURATION_MSECS": "300"}, "300 ms"),
        ({"ACTIVITIES_DURATION_MSECS": "2500"}, "2.5 s"),
        ({}, "500 ms"),
        ({"ACTIVITIES_ITERATIONS": "1"}, "1 step"),
        ({"ACTIVITIES_ITERATIONS": "3", "ACTIVITIES_DURATION_MSECS": "9"}, "3 steps"),
        ({"NPU_MONITOR_START": "true"}, "monitor"),
    ],
)
def test_the_length_of_a_trace_in_words(pairs: dict[str, str], words: str) -> None:
    assert measure(pairs) == words


def asked(file: Path, at: float, **more: Any) -> Asked:
    fixed: dict[str, Any] = {
        "trace_id": 7, "pid": 5, "host_pid": 5, "user": 1, "job": 0, "rank": None, "command": "x",
        "client": Dialect.KINETO, "file": str(file), "measure": "500 ms", "asked": at, "ends": at + 10,
    }  # fmt: skip
    return Asked(**fixed | more)


def test_outcomes_are_told_from_the_files(tmp_path: Path) -> None:
    now = time.time()
    file, partial = tmp_path / "x.json", tmp_path / "x.json.tmp"
    assert told(asked(file, now), {7}, True, now)["outcome"] == "active"
    assert told(asked(file, now), {}, True, now)["outcome"] == "writing"
    assert told(asked(file, now - 100), {}, True, now)["outcome"] == "missing"
    assert told(asked(file, now - 100, host_pid=6), {}, True, now)["outcome"] == "unseen"
    assert told(asked(file, now), {}, False, now)["outcome"] == "exited"
    partial.write_bytes(b"")
    assert told(asked(file, now - 100), {}, True, now)["outcome"] == "empty"
    partial.write_bytes(b"abc")
    assert told(asked(file, now), {}, True, now)["outcome"] == "writing"
    file.write_bytes(b"{}" * 50)
    written = told(asked(file, now), {}, False, now)
    assert (written["outcome"], written["size"]) == ("written", 100)
    os.utime(file, (now - 500, now - 500))
    assert told(asked(file, now), {}, True, now)["outcome"] == "writing"  # that is an older one
    assert told(asked(tmp_path / "\0", now), {}, True, now)["outcome"] == "writing"
    assert told(asked(file, now, client=Dialect.MSMONITOR), {}, True, now)["outcome"] == "handed over"


def status(**more: Any) -> dict[str, Any]:
    return {"now": 1000.0, "processes": [], "traces": [], "summary": {"silent": 0}} | more


def test_problems_are_sentences_the_worst_first() -> None:
    trace = {"pid": 5, "rank": 3, "asked": 880.0, "outcome": "missing"}
    nodes = [{"node": "a", "reachable": True}, {"node": "b", "reachable": False}, {"node": "c", "reachable": None}]
    found = problems(status(traces=[trace]), {"malformed": 1, "impostors": 2, "unsent": 0}, 10, nodes)
    assert [(problem.severity, problem.text) for problem in found] == [
        ("error", "the trace that rank 3 (process 5) was asked for 2 minutes ago has not appeared; the process's own log says why"),
        ("error", "1 of 3 nodes does not answer: b"),
        ("warning", "2 messages came from a process that gave another process's number; not answered (last 10 minutes)"),
        ("note", "1 malformed datagram came in; not answered (last 10 minutes)"),
    ]  # fmt: skip
    assert problems(status(traces=[trace | {"asked": -9000.0}]), {}, 10, []) == []


def test_a_rank_claimed_twice_is_told() -> None:
    one = {"job": 4, "rank": 1, "launcher": False, "pid": 10}
    (found,) = problems(
        status(processes=[one, one | {"pid": 11}, one | {"pid": 12, "health": "exited", "last": 990.0}]), {}, 10, []
    )
    assert found.text == "rank 1 of job 4 is claimed by processes 10, 11"


def test_counters_of_long_ago_are_no_news() -> None:
    counts = {"impostors": 5}
    tally = Tally(lambda: dict(counts))
    assert tally.recent() == {"impostors": 5}
    for _ in range(100):
        tally.note()
    assert tally.recent() == {"impostors": 0}
    counts["impostors"] = 7
    assert tally.recent() == {"impostors": 2}


def series(entity: str, name: str, count: int = 3, **labels: str) -> dict[str, Any]:
    return {
        "name": name,
        "entity": entity,
        "labels": labels,
        "times": [float(n) for n in range(count)],
        "values": list(range(count)),
    }


def test_history_is_cut_to_what_is_wanted_and_allowed() -> None:
    all_of_them = [
        series("process", "threads", pid="5"),
        series("process", "threads", pid="6"),
        series("host", "rx_bytes.eth0"),
        series("host", "cpu_u"),
    ]
    reply = json.loads(history(all_of_them, {"5"}, Wanted(0.5, ("threads", "rx_bytes.")), 9.0))
    assert reply["now"] == 9.0 and reply["leftOut"] == 0
    assert [(one["name"], one["labels"]) for one in reply["series"]] == [
        ("rx_bytes.eth0", {}),
        ("threads", {"pid": "5"}),
    ]
    assert reply["series"][0]["times"] == [1.0, 2.0] and reply["series"][0]["values"] == [1, 2]
    assert len(json.loads(history(all_of_them, None, Wanted(), 0.0))["series"]) == 4
    assert json.loads(history(all_of_them, set(), Wanted(99.0), 0.0))["series"][0]["times"] == []
    with pytest.raises(ValueError):
        read_wanted({"since": "now"})


def test_processes_in_containers_are_told_apart_by_their_numbers_here() -> None:
    both = [
        series("process", "threads", pid="7", host_pid="500"),
        series("process", "rss_bytes", pid="7", host_pid="600"),
    ]
    reply = json.loads(history(both, {"500"}, Wanted(), 0.0))
    assert [one["name"] for one in reply["series"]] == ["threads"]
    assert json.loads(history(both, {"7"}, Wanted(), 0.0))["series"] == []


def test_history_is_bounded_and_says_so() -> None:
    many = [series("process", "threads", 1, pid=str(n)) for n in range(MOST_SERIES + 7)]
    reply = json.loads(history([*many, series("host", "cpu_util", MOST_POINTS + 5)], None, Wanted(), 0.0))
    assert len(reply["series"]) == MOST_SERIES and reply["leftOut"] == 8
    assert reply["series"][0]["name"] == "cpu_util" and len(reply["series"][0]["times"]) == MOST_POINTS


def test_a_thousand_processes_are_told_of_in_bounds() -> None:
    registry = registry_with(*((GONE + n, ALICE, (n,)) for n in range(1, 1001)))
    state = json.loads(encode(page_state(account_of(registry).status(ALICE), ALICE, {}, 10, [])))
    assert (len(state["processes"]), state["hidden"]["leftOut"]) == (512, 488)


def test_viewers_of_the_same_rights_share_one_account() -> None:
    calls: list[int | None] = []

    def status_of(viewer: int | None) -> dict[str, Any]:
        calls.append(viewer)
        return account_of(registry_with()).status(viewer)

    site = Site(Sources(status_of), Watch([]))
    request = Request("GET", "/state.json", {}, "localhost")
    for viewer in (1, 1, 2, None):
        assert site.answer(request, viewer).status == 200
    assert calls == [1, 2, None]
    time.sleep(FRESH_SECONDS + 0.1)
    site.answer(request, 1)
    assert calls == [1, 2, None, 1]
