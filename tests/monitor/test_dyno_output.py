"""What `dyno` sends and prints, with daemons of every make: stock dynolog, msMonitor's and ours."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from small_daemons import Reply, SmallDaemon

from npuscope.cli.dyno import main

ROOT_WARNING = (
    "Security Warning: Do not run this tool as root. Running with elevated privileges may compromise system security. "
    "Use a regular user account."
)
STOCK = {
    "activityProfilersBusy": 1, "activityProfilersTriggered": [11], "eventProfilersBusy": 0,
    "eventProfilersTriggered": [], "processesMatched": [11, 22],
}  # fmt: skip
NOTHING = STOCK | {"activityProfilersBusy": 0, "activityProfilersTriggered": [], "processesMatched": []}
NOBODY = "No processes were matched, please check --job-id or --pids flags"


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


@dataclass
class Ran:
    code: int
    out: str
    err: str
    requests: list[str]

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@pytest.fixture
def dyno(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs `dyno` against a daemon that gives a reply to whatever it is asked."""

    def run(reply: Reply, *words: str) -> Ran:
        functions = (
            "getStatus",
            "getVersion",
            "getMetrics",
            "setKinetOnDemandRequest",
            "dcgmProfPause",
            "dcgmProfResume",
        )
        with SmallDaemon(dict.fromkeys(functions, reply)).serving() as daemon:
            monkeypatch.setattr(sys, "argv", ["dyno", "--hostname", "127.0.0.1", "--port", str(daemon.port), *words])
            with pytest.raises(SystemExit) as end:
                main()
        said = capsys.readouterr()
        return Ran(end.value.code or 0, said.out, said.err, daemon.requests)

    return run


@pytest.mark.parametrize(
    ("words", "request_text"),
    [
        (["status"], '{"fn":"getStatus"}'),
        (["version"], '{"fn":"getVersion"}'),
        (["dcgm-pause"], '{"duration_s":300,"fn":"dcgmProfPause"}'),
        (["dcgm-pause", "--duration-s", "7"], '{"duration_s":7,"fn":"dcgmProfPause"}'),
        (["dcgm-resume"], '{"fn":"dcgmProfResume"}'),
    ],
)
def test_short_questions(dyno, words: list[str], request_text: str) -> None:
    ran = dyno('{"status":true}', *words)
    assert (ran.code, ran.err, ran.requests) == (0, "", [request_text])
    assert ran.out == 'response length = 15\nresponse = {"status":true}\n'
    assert dyno('{"status":true}', *words, "--json").out == '{"status":true}\n'


@pytest.mark.parametrize("words", [["dcgm-pause"], ["dcgm-resume"]])
def test_no_gpu_monitor(dyno, words: list[str]) -> None:
    ran = dyno('{"status":false}', *words)
    assert (ran.code, ran.err) == (1, "dyno: this daemon has no GPU monitor\n")
    assert ran.lines == ["response length = 16", 'response = {"status":false}']


CONFIG = """ACTIVITIES_LOG_FILE=/tmp/x.json
PROFILE_START_TIME=0
ACTIVITIES_DURATION_MSECS=500
PROFILE_REPORT_INPUT_SHAPES=false
PROFILE_WITH_STACK=false
PROFILE_WITH_FLOPS=false
PROFILE_WITH_MODULES=false"""


def test_gputrace_with_a_stock_daemon(dyno) -> None:
    reply = compact(STOCK)
    ran = dyno(reply, "gputrace", "--log-file", "/tmp/x.json", "--job-id", "7", "--pids", "11,22")
    escaped = CONFIG.replace("\n", "\\n")
    assert ran.requests == [
        f'\n{{\n    "fn": "setKinetOnDemandRequest",\n    "config": "{escaped}",\n    "job_id": 7,\n    "pids": [11,22],\n'
        '    "process_limit": 3\n}'
    ]
    assert ran.out.startswith(
        f"Kineto config = \n{CONFIG}\nresponse length = {len(reply)}\nresponse = {reply}\n\nMatched 2 processes\n"
        "Trace output files will be written to:\n    /tmp/x_11.json\n    /tmp/x_22.json\n"
    )
    assert ran.lines[-2:] == ["  process 11 is traced", "  process 22 busy or over --process-limit"]
    assert (ran.code, ran.err) == (0, "")


def test_every_json_in_the_name_is_replaced_as_the_stock_command_does(dyno) -> None:
    ran = dyno(compact(STOCK), "gputrace", "--log-file", "/tmp/a.json/b.json")
    assert "    /tmp/a_11.json/b_11.json" in ran.lines


def test_a_memory_snapshot_has_two_places(dyno) -> None:
    ran = dyno(compact(STOCK), "gputrace", "--log-file", "/tmp/x.json", "--profile-memory")
    begin = ran.lines.index("    /tmp/x_11.json")
    assert ran.lines[begin : begin + 4] == [
        "    /tmp/x_11.json",
        "      Or /tmp/memory_snapshot_11.pickle",
        "    /tmp/x_22.json",
        "      Or /tmp/memory_snapshot_22.pickle",
    ]
    assert "https://pytorch.org/memory_viz" in ran.out
    assert json.loads(ran.requests[0])["config"].count("PROFILE_MEMORY_DURATION_MSECS=500") == 1


def test_nobody_matched(dyno) -> None:
    words = ("gputrace", "--log-file", "/tmp/x.json")
    assert (ran := dyno(compact(NOTHING), *words)).lines[-1] == NOBODY and (ran.code, ran.err) == (0, "")
    assert (ran := dyno(compact(NOTHING), *words, "--fail-on-no-process")).lines[-1] == NOBODY and ran.code == 1
    ours = NOTHING | {"processes": [], "reason": "no process has job id 7; registered: 0"}
    ran = dyno(compact(ours), *words)
    assert (ran.lines[-1], ran.err) == (NOBODY, "dyno: no process has job id 7; registered: 0\n")


def test_busy_processes_are_a_match(dyno) -> None:
    busy = STOCK | {"activityProfilersTriggered": [], "activityProfilersBusy": 2}
    words = ("gputrace", "--log-file", "/tmp/x.json")
    assert dyno(compact(busy), *words, "--fail-on-no-process").code == 0
    ran = dyno(compact(busy), *words, "--wait", "5")
    assert (ran.code, ran.err) == (1, "dyno: none of them is free\n")


def test_who_is_traced_and_who_is_not(dyno) -> None:
    processes = [
        {"pid": 11, "outcome": "triggered", "command": "python a.py", "rank": 0},
        {"pid": 22, "outcome": "busy", "command": "python b.py", "rank": 1, "state": "waiting"},
        {"pid": 33, "outcome": "skipped", "command": "torchrun b.py", "launcher": True},
    ]
    reply = STOCK | {"processes": processes, "processesMatched": [11, 22, 33]}
    ran = dyno(compact(reply), "gputrace", "--log-file", "/tmp/x.json")
    assert ran.lines[-3:] == [
        "  process 11 rank 0 is traced: python a.py",
        "  process 22 rank 1 is busy, not traced (an earlier request waits for its poll): python b.py",
        "  process 33 is over --process-limit, not traced (a launcher): torchrun b.py",
    ]
    document = dyno(compact(reply), "gputrace", "--log-file", "/tmp/x.json", "--json").out
    assert json.loads(document) == reply


def test_names_that_the_stock_command_cannot_send(dyno) -> None:
    path = '/tmp/a "quoted" \\ name.json'
    ran = dyno(compact(NOTHING), "gputrace", "--log-file", path)
    assert json.loads(ran.requests[0])["config"].splitlines()[0] == f"ACTIVITIES_LOG_FILE={path}"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--log-file", "/tmp/a=b.json"], "the value of ACTIVITIES_LOG_FILE may not hold '=': '/tmp/a=b.json'"),
        (["--log-file", "/x.json", "--duration-ms", "3000000000"], "ACTIVITIES_DURATION_MSECS is a whole number between 0 and 2147483647, not '3000000000'"),
        (["--log-file", "/x.json", "--profile-start-time", "5"], "the start time is more than 10 seconds ago"),
    ],
)  # fmt: skip
def test_what_would_end_a_training_process_is_not_sent(dyno, words: list[str], text: str) -> None:
    ran = dyno(compact(NOTHING), "gputrace", *words)
    assert (ran.code, ran.err, ran.requests) == (1, f"dyno: {text}\n", [])


@pytest.mark.parametrize("reply", ["[]", "x", b"", b"\xff\xff\xff\xff", None, '{"status":"failed"}'])
@pytest.mark.parametrize(
    "words",
    [
        ["gputrace", "--log-file", "/tmp/x.json"],
        ["nputrace", "--iterations", "1", "--start-step", "1", "--log-file", "/tmp/x"],
        ["npu-monitor", "--npu-monitor-start"],
    ],
)
def test_replies_without_sense_are_one_line(dyno, reply: Reply, words: list[str]) -> None:
    ran = dyno(reply, *words)
    assert ran.code in (1, 101) and len(ran.err.splitlines()) == 1 and ran.err.startswith("dyno: the daemon")
    ran = dyno(reply, *words, "--json")
    document = json.loads(ran.out)
    assert "error" in document or document == {"status": "failed"}


@pytest.mark.parametrize("host", ["a" * 70, "\udcff", "b..c"])
def test_what_is_no_host(host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["dyno", "--hostname", host, "status"])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    assert end.value.code == 101 and "this is not a host's name" in said.err and len(said.err.splitlines()) == 1


def test_no_daemon_in_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["dyno", "--hostname", "127.0.0.1", "--port", "1", "status", "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    assert end.value.code == 101 and "Couldn't connect to the server" in json.loads(said.out)["error"]
    assert said.err.startswith("dyno: Couldn't connect to the server")


# --- the vendor's commands

NPUTRACE = ("nputrace", "--iterations", "2", "--start-step", "5")
EFFECTIVE = STOCK | {"commandStatus": "effective"}
INEFFECTIVE = {"commandStatus": "ineffective"}


def heading() -> list[str]:
    return [*([ROOT_WARNING] if os.getuid() == 0 else []), "Running in no-certificate mode"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "out"


def test_nputrace(dyno, place: Path) -> None:
    reply = compact(EFFECTIVE)
    ran = dyno(reply, *NPUTRACE, "--log-file", str(place), "--rank-list", "0, 1")
    before = heading() + ["NpuTrace config = ", f"ACTIVITIES_LOG_FILE={place}"]
    assert ran.lines[: len(before)] == before
    assert "PROFILE_IS_RANK=true" in ran.lines and "PROFILE_RANK_LIST=0,1" in ran.lines
    end = ran.lines.index(f"response = {reply}")
    assert ran.lines[end + 1 : end + 5] == [
        "Matched 2 processes",
        "Trace output files will be written to:",
        f"    {place}",
        f"    {place}",
    ]
    request = json.loads(ran.requests[0])
    assert list(request) == ["fn", "config", "job_id", "pids", "process_limit"]
    assert (request["pids"], request["process_limit"], ran.code, ran.err) == ([0], 3, 0, "")


@pytest.mark.parametrize("words", [(*NPUTRACE, "--log-file", "/tmp/x"), ("npu-monitor", "--npu-monitor-start")])
def test_a_refused_command_has_a_reason_and_fails(dyno, words: tuple[str, ...]) -> None:
    ran = dyno(compact(INEFFECTIVE), *words)
    assert ran.code == 1 and ran.lines[-1] == 'response = {"commandStatus":"ineffective"}'
    assert ran.err.startswith("dyno: the daemon calls the command ineffective: ")
    ours = NOTHING | INEFFECTIVE | {"reason": "a trace is running, and the two exclude each other", "processes": []}
    ran = dyno(compact(ours), *words)
    assert (ran.code, ran.err) == (1, "dyno: a trace is running, and the two exclude each other\n")


def test_a_reply_of_the_wrong_type(dyno) -> None:
    ran = dyno('{"commandStatus":"effective","processesMatched":5}', *NPUTRACE, "--log-file", "/tmp/x")
    assert ran.lines[-1] == "'processesMatched' is not an array" and ran.code == 1


def test_npu_monitor(dyno, place: Path) -> None:
    ran = dyno(
        compact(EFFECTIVE), "npu-monitor", "--npu-monitor-start", "--duration", "10", "--log-file", str(place),
        "--json-rotate-log-files", "-1", "--json-rotate-log-lines", " 100 ",
    )  # fmt: skip
    config = (
        "NPU_MONITOR_START=true\nNPU_MONITOR_STOP=false\nREPORT_INTERVAL_S=60\nDURATION=10\nMSPTI_ACTIVITY_KIND=Marker\n"
        f"NPU_MONITOR_LOG_FILE={place}\nNPU_MONITOR_EXPORT_TYPE=DB\nJSONL_ROTATE_LOG_LINES=100\nJSONL_ROTATE_LOG_FILES=-1\n"
        "NPU_MONITOR_FILTER="
    )
    assert ran.lines == heading() + ["Npu monitor config = ", *config.splitlines(), f"response = {compact(EFFECTIVE)}"]
    escaped = config.replace("\n", "\\n")
    assert ran.requests == [
        f'\n{{\n    "fn": "setKinetOnDemandRequest",\n    "config": "{escaped}",\n    "job_id": 0,\n    "pids": [0],\n'
        '    "process_limit": 3\n}'
    ]
    assert (ran.code, ran.err) == (0, "")


def test_a_filter_is_judged_before_it_is_sent(dyno) -> None:
    ran = dyno(compact(EFFECTIVE), "npu-monitor", "--npu-monitor-start", "--filter", "Kernel:a;Foo:b;c")
    assert ran.code == 0 and len(ran.requests) == 1
    assert [line.partition(" is skipped")[0] for line in ran.err.splitlines()] == [
        "dyno: warning: the filter entry 'Foo:b'",
        "dyno: warning: the filter entry 'c'",
    ]


def test_a_stock_daemon_serves_no_plugin(dyno) -> None:
    ran = dyno(compact(STOCK), "npu-monitor", "--npu-monitor-start")
    assert "this is a stock dynolog, which serves no NPU plug-in" in ran.err


def test_json_is_one_document_whatever_is_said(dyno, place: Path) -> None:
    place.write_text("")
    ran = dyno(compact(EFFECTIVE), *NPUTRACE, "--log-file", str(place), "--json")
    assert json.loads(ran.out) == {"error": "--log-file must be a valid directory!"} and ran.code == 1
    ran = dyno(compact(EFFECTIVE), *NPUTRACE, "--log-file", f"{place}2", "--json")
    assert json.loads(ran.out) == EFFECTIVE and ran.code == 0


# --- the vendor's path checks


@pytest.mark.parametrize("command", [NPUTRACE, ("npu-monitor", "--npu-monitor-start")])
def test_a_file_is_no_folder_and_the_daemon_sees_an_empty_connection(dyno, place: Path, command) -> None:
    place.write_text("")
    ran = dyno(compact(EFFECTIVE), *command, "--log-file", str(place))
    assert ran.lines == heading() + [f'ERROR: The path is a file: "{place}"']
    assert (ran.code, ran.err, ran.requests) == (1, "dyno: --log-file must be a valid directory!\n", [""])


def test_an_empty_path_is_fatal_for_a_trace_and_means_metrics_for_the_monitor(dyno) -> None:
    ran = dyno(compact(EFFECTIVE), *NPUTRACE, "--log-file", "")
    assert ran.lines[-1] == "ERROR: The path is empty." and ran.err == "dyno: --log-file must be a valid directory!\n"
    assert dyno(compact(EFFECTIVE), "npu-monitor", "--log-file", "").code == 0


def test_a_long_path(dyno) -> None:
    ran = dyno(compact(EFFECTIVE), *NPUTRACE, "--log-file", "/" + "x" * 4096)
    assert ran.lines[-1] == "ERROR: The length of path is too long, max allowed: 4096" and ran.code == 1


def test_a_link_is_a_warning(dyno, place: Path) -> None:
    place.symlink_to(place.parent)
    ran = dyno(compact(EFFECTIVE), *NPUTRACE, "--log-file", str(place))
    assert f'WARNING: The path is a soft link: "{place}"' in ran.lines and ran.code == 0


@pytest.mark.parametrize(
    ("character", "shown"),
    [("\f", '"\\u{c}"'), ("\b", '"\\u{8}"'), ("\t", '"\\t"'), ("\v", '"\\u{b}"'), ("\x7f", '"\\u{7f}"'), ('"', '"\\""'),
     ("'", '"\'"'), ("\\", '"\\\\"'), ("%", '"%"'), (">", '">"'), ("<", '"<"'), ("|", '"|"'), ("&", '"&"'), ("$", '"$"')],
)  # fmt: skip
def test_unusual_characters_are_warned_of_and_sent_as_they_are(dyno, place: Path, character: str, shown: str) -> None:
    path = f"{place}{character}x"
    ran = dyno(compact(EFFECTIVE), *NPUTRACE, "--log-file", path)
    assert f"WARNING: The path contains invalid character: {shown}" in ran.out.split("\n")
    assert ran.code == 0
    assert json.loads(ran.requests[0])["config"].split("\n")[0] == f"ACTIVITIES_LOG_FILE={path}"


def test_names_that_are_not_text(dyno) -> None:
    for words in (("gputrace", "--log-file", "/tmp/\udcff.json"), (*NPUTRACE, "--log-file", "/tmp/\udcff")):
        ran = dyno(compact(EFFECTIVE), *words)
        assert ran.code == 1 and ran.err == f"dyno: the value of ACTIVITIES_LOG_FILE is not UTF-8: {words[-1]!r}\n"
        assert not any(ran.requests)


@pytest.mark.parametrize("character", ["\n", "\r", "=", "#"])
def test_characters_that_no_reader_takes_are_refused(dyno, place: Path, character: str) -> None:
    ran = dyno(compact(EFFECTIVE), *NPUTRACE, "--log-file", f"{place}{character}x")
    assert ran.code == 1 and ran.err.startswith("dyno: the value of ACTIVITIES_LOG_FILE may not hold")
    assert ran.requests == [""]


def test_a_folder_that_is_not_writable_is_a_warning(dyno, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 1000)  # root may write everywhere, and is not warned
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    ran = dyno(compact(EFFECTIVE), *NPUTRACE, "--log-file", str(place))
    assert ran.lines[:2] == ["Running in no-certificate mode", f"WARNING: The path is not writable: {place}"]
    assert ran.code == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--mstx-domain-include", "x" * 1025], "--mstx-domain-include error: The input string is too long, max allowed: 1024"),
        (["--mstx-domain-exclude", "x" * 1025], "--mstx-domain-exclude error: The input string is too long, max allowed: 1024"),
        (["--rank-list", "0,,1"], "--rank-list error: Must be a comma-separated list of integers"),
        (["--rank-list", "0,x"], "--rank-list error: Invalid integer value: x"),
    ],
)  # fmt: skip
def test_what_is_judged_when_the_connection_is_there(dyno, place: Path, words: list[str], text: str) -> None:
    ran = dyno(compact(EFFECTIVE), *NPUTRACE, "--log-file", str(place), *words)
    assert (ran.code, ran.err, ran.requests) == (1, f"dyno: {text}\n", [""])


def test_no_daemon_comes_before_a_bad_path(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["dyno", "--hostname", "127.0.0.1", "--port", "1", *NPUTRACE, "--log-file", ""]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr()
    assert end.value.code == 101 and said.out.splitlines() == heading()
    assert re.match(r"dyno: Couldn't connect to the server", said.err)


# --- metrics


def test_metrics(dyno) -> None:
    records = [
        {"time": 0.0, "entity": "host", "labels": {}, "values": {"cpu_util": 12.3456, "uptime": 5}},
        {"time": 0.0, "entity": "process", "labels": {"pid": "11", "rank": "0"}, "values": {"command": "python"}},
    ]
    reply = compact({"records": records})
    ran = dyno(reply, "metrics")
    assert (ran.code, ran.err) == (0, "")
    assert [line.split()[0] for line in ran.lines] == ["host", "cpu_util", "uptime", "process", "command"]
    assert ran.lines[1].split() == ["cpu_util", "12.346"] and ran.lines[2].split() == ["uptime", "5"]
    assert ran.lines[3].startswith("process pid=11 rank=0 (")
    assert json.loads(dyno(reply, "metrics", "--json").out) == {"records": records}


@pytest.mark.parametrize("reply", ['{"status":"failed with exception = json.exception: unknown function"}', None, "{}"])
def test_a_daemon_without_metrics(dyno, reply: Reply) -> None:
    ran = dyno(reply, "metrics")
    assert ran.code in (1, 101) and ran.err.startswith("dyno: this daemon has no metrics") and ran.out == ""
