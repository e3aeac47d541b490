"""`dyno --hosts`: every host is asked and accounted for, whatever the others do, in bounded time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_process import SOURCE
from small_daemons import KINDS, Crowd, SmallDaemon

from npuscope.cli.dyno import main
from npuscope.cli.dyno.hosts import read_hosts
from npuscope.monitor import fanout
from npuscope.monitor.endpoint import Endpoint, read_endpoint
from npuscope.monitor.fanout import Limits, Question, ask_all

REPLY = json.dumps({"version": "1.2.3", "padding": "x" * 2000})
WANTED = {"good": 1000, "refusing": 60, "hanging": 60, "dripping": 20, "closing": 40, "nonsense": 40}
TROUBLE = {
    "refusing": "couldn't connect: Connection refused",
    "hanging": "no answer within 3 s",
    "dripping": "no answer within 3 s",
    "closing": "no proper reply: the connection was closed",
    "nonsense": "no proper reply: a message has between 1 and",
}


@pytest.fixture(scope="module")
def crowd() -> Iterator[Crowd]:
    assert set(WANTED) == set(KINDS)
    with Crowd().serving(WANTED, REPLY) as crowd:
        yield crowd


def dyno(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "npuscope.cli.dyno", *words]
    return subprocess.run(command, env=env, input=stdin, text=True, capture_output=True, timeout=120)


def test_more_than_a_thousand_daemons(crowd: Crowd, tmp_path: Path) -> None:
    hostfile = tmp_path / "hosts"
    lines = [f"{host}:{port}  # {kind}" for (host, port), kind in crowd.kinds.items()]
    hostfile.write_text("# the whole crowd\n\n" + "\n".join(lines))
    began = time.monotonic()
    done = dyno("version", "--json", "--timeout", "3", "--hostfile", str(hostfile))
    # 80 that never finish, 256 at a time, 3 s each; the rest is a loaded machine.
    assert time.monotonic() - began < 60
    assert done.returncode == 1 and done.stderr == ""
    rows = json.loads(done.stdout)
    assert [(row["host"], row["port"]) for row in rows] == list(crowd.kinds)
    for row in rows:
        kind = crowd.kinds[row["host"], row["port"]]
        if kind == "good":
            assert (row["done"], row["error"], row["summary"]) == (True, None, "1.2.3")
            assert row["reply"] == json.loads(REPLY)
        else:
            assert not row["done"] and row["reply"] is None and row["error"].startswith(TROUBLE[kind]), (kind, row)
    assert max(row["seconds"] for row in rows) < 10


def test_no_more_at_a_time_than_is_allowed(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most = 0, 0
    exchange = fanout._exchange

    async def counted(*arguments: Any) -> str:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        try:
            return await exchange(*arguments)
        finally:
            at_once -= 1

    monkeypatch.setattr(fanout, "_exchange", counted)
    good = [Endpoint(*where) for where, kind in crowd.kinds.items() if kind == "good"][:200]
    heard: list[fanout.Answer] = []
    answers = ask_all([Question(one, '{"fn":"getVersion"}') for one in good], Limits(7, 20), tell=heard.append)
    assert most == 7 and all(answer.reply == REPLY for answer in answers)
    assert [answer.endpoint for answer in answers] == good and {id(one) for one in heard} == set(map(id, answers))


def test_the_table_has_a_line_for_each_host(crowd: Crowd) -> None:
    chosen = {kind: next(where for where, one in crowd.kinds.items() if one == kind) for kind in ("good", "refusing")}
    hosts = ",".join(f"{host}:{port}" for host, port in chosen.values())
    done = dyno("version", "--hosts", hosts)
    good, refusing, total = done.stdout.splitlines()
    assert good.split()[:2] == ["{}:{}".format(*chosen["good"]), "done"] and good.endswith("1.2.3")
    assert refusing.split()[:2] == ["{}:{}".format(*chosen["refusing"]), "failed"]
    assert refusing.endswith("couldn't connect: Connection refused")
    assert total == "2 hosts: 1 done, 1 failed" and done.returncode == 1
    done = dyno("version", "--hostfile", "-", stdin="{}:{}\n".format(*chosen["good"]))
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "1 hosts: 1 done, 0 failed"


def test_a_name_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()

    def hang(*_: Any, **__: Any) -> Any:
        never.wait(60)
        raise OSError("late")

    monkeypatch.setattr(fanout.socket, "getaddrinfo", hang)
    began = time.monotonic()
    [answer] = ask_all([Question(Endpoint("node.example", 1), "{}")], Limits(4, 0.5))
    assert answer.error == "no answer within 0.5 s" and time.monotonic() - began < 20
    never.set()


def test_a_name_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise fanout.socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(fanout.socket, "getaddrinfo", unknown)
    [answer] = ask_all([Question(Endpoint("node.example", 1), "{}")])
    assert answer.error == "couldn't connect: Name or service not known"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("node1", Endpoint("node1", 1778)),
        ("node1:99", Endpoint("node1", 99)),
        ("10.0.0.1:99", Endpoint("10.0.0.1", 99)),
        ("::1", Endpoint("::1", 1778)),
        ("[::1]", Endpoint("::1", 1778)),
        ("[fe80::1]:99", Endpoint("fe80::1", 99)),
    ],
)
def test_hosts_are_read(word: str, expected: Endpoint) -> None:
    assert read_endpoint(word, 1778) == expected


def test_each_host_is_asked_once(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("b\na # again\n\n#c\nd:5\n")
    found = read_hosts("a,b", str(tmp_path / "f"), 9)
    assert found == (Endpoint("a", 9), Endpoint("b", 9), Endpoint("d", 5))


def test_a_host_file_that_is_not_there() -> None:
    done = dyno("status", "--hostfile", "/nowhere/hosts")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "dyno: cannot read the hosts in /nowhere/hosts: No such file or directory\n"


def test_all_hosts_start_together_and_each_has_its_own_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    matched = {"processesMatched": [7], "activityProfilersTriggered": [7], "activityProfilersBusy": 0}
    nobody = {"processesMatched": [], "activityProfilersTriggered": [], "activityProfilersBusy": 0}
    one = SmallDaemon({"setKinetOnDemandRequest": json.dumps(matched)})
    two = SmallDaemon({"setKinetOnDemandRequest": json.dumps(nobody)})
    with one.serving(), two.serving():
        hosts = f"127.0.0.1:{one.port},localhost:{two.port}"
        words = ["gputrace", "--log-file", "/tmp/%h/x.json", "--start-time-delay", "30", "--hosts", hosts]
        before = time.time()
        monkeypatch.setattr(sys, "argv", ["dyno", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        monkeypatch.setattr(sys, "argv", ["dyno", *words, "--fail-on-no-process"])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 1
    configs = [dict(line.split("=") for line in json.loads(d.requests[0])["config"].split("\n")) for d in (one, two)]
    assert [config["ACTIVITIES_LOG_FILE"] for config in configs] == ["/tmp/127.0.0.1/x.json", "/tmp/localhost/x.json"]
    starts = {int(config["PROFILE_START_TIME"]) for config in configs}
    assert len(starts) == 1 and (before + 30) * 1000 - 1 <= starts.pop() <= (time.time() + 30) * 1000
    lines = capsys.readouterr().out.splitlines()
    assert any(f"127.0.0.1:{one.port}" in line and "1 matched, 1 traced" in line for line in lines)
    assert any(f"localhost:{two.port}" in line and "no process matched" in line for line in lines)
