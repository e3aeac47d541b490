"""`dyno gputrace --wait`: what is concluded from the files, the processes and the daemon's word."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_daemons import SmallDaemon

from npuscope.cli.dyno import main
from npuscope.cli.dyno.carry_out import Result
from npuscope.cli.dyno.errand import Verdict
from npuscope.cli.dyno.step_wait import Node
from npuscope.cli.dyno.wait import is_here
from npuscope.monitor.endpoint import Endpoint
from npuscope.monitor.proc import running
from npuscope.monitor.trace_file import State, count, look

OPERATOR = {"ph": "X", "cat": "cpu_op", "name": 'aten::add "ph": x', "ts": 1, "dur": 1, "pid": 1, "tid": 1}
MARK = {"ph": "i", "cat": "user_annotation", "name": '"cat": "cpu_op"', "ts": 1, "pid": 1, "tid": 1}
SLEEP = [sys.executable, "-c", "import time; time.sleep(300)"]


def trace(*events: dict[str, Any]) -> str:
    return json.dumps({"schemaVersion": 1, "traceEvents": list(events), "traceName": "x"}, indent=1)


def test_events_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(trace(OPERATOR, OPERATOR, MARK))
    contents = count(str(path))
    assert (contents.size, contents.events, contents.operators) == (path.stat().st_size, 3, 2)


def test_the_states_of_a_file(tmp_path: Path) -> None:
    path, now = tmp_path / "x.json", time.time()

    def state(began: float = now) -> State:
        return look(str(path), began, time.time()).state

    assert state() is State.MISSING
    (part := Path(f"{path}.tmp")).touch()
    assert state() is State.EMPTY
    part.write_text('{"traceEvents": [')
    assert state() is State.WRITING
    path.write_text('{"traceEvents": [')
    assert state() is State.WRITING
    path.write_text(trace(OPERATOR))
    assert state() is State.WHOLE
    assert state(now + 3600) is State.MISSING  # of an earlier request


def test_a_process_that_nobody_has_waited_for_has_ended() -> None:
    child = subprocess.Popen(SLEEP)
    assert running(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not running(child.pid)
    child.wait(10)
    assert not running(child.pid)


def test_which_hosts_are_here() -> None:
    assert all(map(is_here, ["localhost", "127.0.0.1", "127.1.2.3", "::1", socket.gethostname()]))
    assert not any(map(is_here, ["node.example", "192.0.2.1", "2001:db8::1"]))


class Scene:
    """A process, the file it is to write, and a daemon that says of it what it is told to say."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.child = subprocess.Popen(SLEEP)
        self.pid = self.child.pid
        self.file = folder / f"x_{self.pid}.json"
        self.state: str | None = "waiting"
        self._folder, self._monkeypatch, self._capsys = folder, monkeypatch, capsys
        self.daemon = SmallDaemon({"getStatus": self._status, "setKinetOnDemandRequest": self._trigger})
        self.asked = 0

    def _trigger(self, request: dict[str, Any]) -> str:
        process = {
            "pid": self.pid, "hostPid": self.pid, "outcome": "triggered", "command": " ".join(SLEEP), "rank": 3,
            "traceFile": str(self.file),
        }  # fmt: skip
        reply = {"processesMatched": [self.pid], "activityProfilersTriggered": [self.pid], "processes": [process]}
        return json.dumps(reply)

    def _status(self, request: dict[str, Any]) -> str:
        self.asked += 1
        processes = [] if self.state is None else [{"pid": self.pid, "state": self.state}]
        return json.dumps({"status": 1, "processes": processes})

    def let_it_look(self) -> None:
        """Return when everything has been looked at, and shown, at least once."""
        before = self.asked
        while self.asked < before + 2:
            time.sleep(0.02)

    def wait(self, seconds: str, act: Callable[[], None] = lambda: None, *words: str) -> tuple[int, str, str]:
        """Run `dyno gputrace --wait`, and act when the first status has been asked for."""

        def later() -> None:
            while not self.asked:
                time.sleep(0.02)
            act()

        thread = threading.Thread(target=later)
        with self.daemon.serving():
            argv = ["dyno", "--hostname", "127.0.0.1", "--port", str(self.daemon.port), "gputrace", "--wait", seconds]
            self._monkeypatch.setattr(sys, "argv", [*argv, "--log-file", f"{self._folder}/x.json", *words])
            thread.start()
            with pytest.raises(SystemExit) as end:
                main()
            thread.join(60)
        said = self._capsys.readouterr()
        return end.value.code or 0, said.out, said.err

    def end(self) -> None:
        self.child.kill()
        self.child.wait(10)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    scene = Scene(tmp_path, monkeypatch, capsys)
    yield scene
    scene.end()


def test_a_trace_is_followed_to_its_end(scene: Scene) -> None:
    part = Path(f"{scene.file}.tmp")

    def act() -> None:
        for state in ("delivered", "tracing"):
            scene.state = state
            scene.let_it_look()
        scene.state = "idle"
        part.write_text("{")
        scene.let_it_look()
        part.write_text(trace(OPERATOR, MARK))
        part.rename(scene.file)

    code, out, err = scene.wait("60", act)
    name = f"dyno: process {scene.pid} rank 3"
    size = scene.file.stat().st_size
    assert code == 0
    assert err.splitlines() == [
        f"{name}: waits for its poll",
        f"{name}: warms up",
        f"{name}: is being traced",
        f"{name}: is writing, 1 bytes",
        f"{name}: written: {scene.file} ({size} bytes, 2 events)",
    ]
    assert out.splitlines()[-1].startswith(f"  process {scene.pid} rank 3 is traced: ")


def test_the_files_in_json(scene: Scene) -> None:
    code, out, _ = scene.wait("60", lambda: None if scene.file.write_text(trace(OPERATOR)) else None, "--json")
    [file] = json.loads(out)["files"]
    assert code == 0 and file["good"] and file["path"] == str(scene.file)
    assert (file["pid"], file["rank"], file["events"], file["operators"]) == (scene.pid, 3, 1, 1)


def test_a_file_of_an_earlier_request_does_not_count(scene: Scene) -> None:
    scene.file.write_text(trace(OPERATOR))
    os.utime(scene.file, (1, 1))
    code, _, err = scene.wait("1")
    assert code == 1 and err.splitlines()[-1].startswith(
        f"dyno: process {scene.pid} rank 3: no trace after 1 s (waits for its poll)"
    )


def test_nothing_ran_while_it_was_traced(scene: Scene) -> None:
    code, _, err = scene.wait("60", lambda: None if scene.file.write_text(trace(MARK)) else None)
    assert code == 1 and "written, but no operator ran while it was traced" in err


def test_a_process_that_dies(scene: Scene) -> None:
    began = time.monotonic()
    code, _, err = scene.wait("100", scene.end)
    assert code == 1 and time.monotonic() - began < 60
    assert err.splitlines()[-1] == f"dyno: process {scene.pid} rank 3: the process exited before it wrote its trace"


def test_a_request_that_the_process_refused(scene: Scene) -> None:
    part = Path(f"{scene.file}.tmp")

    def act() -> None:
        part.touch()
        os.utime(part, (time.time() - 1, time.time() - 1))
        scene.state = "idle"

    began = time.monotonic()
    code, _, err = scene.wait("100", act)
    assert code == 1 and time.monotonic() - began < 60
    assert err.splitlines()[-1] == f"dyno: process {scene.pid} rank 3: the process refused the request: {part} is empty"


def test_the_time_is_over(scene: Scene) -> None:
    code, out, err = scene.wait("0.5", lambda: None, "--json")
    assert code == 1 and "no trace after 0.5 s" in err
    [file] = json.loads(out)["files"]
    assert not file["good"] and "no trace after 0.5 s" in file["result"]


def test_a_daemon_that_is_gone_does_not_end_the_wait(scene: Scene) -> None:
    scene.daemon.replies = {**scene.daemon.replies, "getStatus": None}

    def status_then_file() -> None:
        scene.file.write_text(trace(OPERATOR))

    threading.Timer(1.5, status_then_file).start()
    scene.asked = 1
    code, _, err = scene.wait("60")
    assert code == 0 and f"written: {scene.file}" in err


def test_several_hosts_are_waited_for_together(scene: Scene) -> None:
    scene.state = "idle"

    def act() -> None:
        scene.file.write_text(trace(OPERATOR))

    thread = threading.Timer(1.0, act)
    with SmallDaemon(
        {"setKinetOnDemandRequest": '{"processesMatched":[],"activityProfilersTriggered":[]}'}
    ).serving() as other:
        scene.asked = 1
        with scene.daemon.serving():
            hosts = f"127.0.0.1:{scene.daemon.port},127.0.0.1:{other.port}"
            thread.start()
            scene._monkeypatch.setattr(
                sys, "argv", ["dyno", "gputrace", "--wait", "60", "--log-file", f"{scene._folder}/x.json", "--hosts", hosts, "--json"]
            )  # fmt: skip
            with pytest.raises(SystemExit) as end:
                main()
        rows = json.loads(scene._capsys.readouterr().out)
    assert end.value.code == 1  # at one of them nobody matched, and traces were demanded
    assert [row["done"] for row in rows] == [True, False]
    assert rows[0]["files"][0]["path"] == str(scene.file) and rows[1]["files"] == []


def test_a_trace_of_the_plugin_that_is_over_between_two_questions(tmp_path: Path) -> None:
    node, began = Node(Result(Endpoint("a", 1), Verdict(True, "")), str(tmp_path)), time.time()
    assert node.hear({"nputrace": "Idle"}, began) == "waits for the plug-in to take the request" and not node.done
    (folder := tmp_path / "h_5_1_ascend_pt").mkdir()
    assert node.hear({"nputrace": "Idle"}, began) is None and not node.done
    (folder / "profiler_metadata.json").touch()
    assert node.hear({"nputrace": "Idle"}, began) == "has stopped tracing" and node.done


class Plugin:
    """A daemon whose plug-in goes from status to status, one at each question."""

    def __init__(self, statuses: list[dict[str, Any]]) -> None:
        self.statuses = statuses
        reply = {"processesMatched": [5], "activityProfilersTriggered": [5], "commandStatus": "effective"}
        self.daemon = SmallDaemon({"getStatus": self._status, "setKinetOnDemandRequest": json.dumps(reply)})

    def _status(self, request: dict[str, Any]) -> str:
        return json.dumps(self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0])


@pytest.mark.parametrize(("ends", "code"), [(True, 0), (False, 1)])
def test_steps_of_the_plugin(
    ends: bool, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses = [
        {"nputrace": "Idle", "current_step": 3},
        {"nputrace": "Ready", "current_step": 4, "start_step": 5, "stop_step": 7},
        {"nputrace": "Running", "current_step": 5, "start_step": 5, "stop_step": 7},
        *([{"nputrace": "Idle", "current_step": 8}] if ends else []),
    ]
    plugin, seconds = Plugin(statuses), "60" if ends else "3"
    old = tmp_path / "host_1_1_ascend_pt"
    old.mkdir()
    os.utime(old, (1, 1))
    if ends:
        (tmp_path / "host_5_2_ascend_pt").mkdir()
    words = [
        "nputrace",
        "--iterations",
        "2",
        "--start-step",
        "5",
        "--log-file",
        str(tmp_path),
        "--wait",
        seconds,
        "--json",
    ]
    with plugin.daemon.serving():
        monkeypatch.setattr(sys, "argv", ["dyno", "--hostname", "127.0.0.1", "--port", str(plugin.daemon.port), *words])
        with pytest.raises(SystemExit) as end:
            main()
    said = capsys.readouterr()
    assert (end.value.code or 0) == code
    assert "starts at step 5, now at 4" in said.err and "traces up to step 7, now at 5" in said.err
    expected = [{"path": str(tmp_path / "host_5_2_ascend_pt")}] if ends else []
    assert json.loads(said.out)["files"] == expected
    assert ("not done after 3 s" in said.err) is not ends
