"""A command's text in, the command out: the keys, defaults and limits of the protocol's description."""

from __future__ import annotations

import pytest

from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.agent.commands import Command, Refused, read_command
from npuscope.monitor.protocol.codes import Code
from npuscope.monitor.protocol.config import loosely_read, with_trace_id
from npuscope.monitor.protocol.npu_monitor import NpuMonitor, build


def test_what_the_command_line_sends_is_understood() -> None:
    sent = NpuMonitor(
        True, False, 5, 0.333333, "Marker, Kernel", "/tmp/x", "Jsonl", "200", "-1", "Kernel:MatMul;Marker:step"
    )
    command, skipped = read_command(loosely_read(with_trace_id(build(sent), 7, 12)))
    assert command == Command(
        True, False, 5, 0.333333, frozenset({Kind.MARKER, Kind.KERNEL}), "/tmp/x", "Jsonl", "200", "-1",
        "Kernel:MatMul;Marker:step",
    )  # fmt: skip
    assert skipped == []


def test_missing_keys_have_defaults() -> None:
    assert read_command({"NPU_MONITOR_START": "TRUE"})[0] == Command(start=True)
    assert read_command({"NPU_MONITOR_START": "false", "DURATION": "", "MSPTI_ACTIVITY_KIND": ""})[0] == Command()


@pytest.mark.parametrize(
    ("word", "seconds"), [("0", 0.0), ("10", 10.0), ("0.5", 0.5), ("0.001", 0.001), (".25", 0.25), ("-1", 0.0)]
)
def test_durations(word: str, seconds: float) -> None:
    assert read_command({"DURATION": word})[0].duration == seconds


@pytest.mark.parametrize(
    ("key", "word", "code"),
    [
        ("DURATION", "nan", Code.VALUE), ("DURATION", "inf", Code.VALUE), ("DURATION", "-inf", Code.VALUE),
        ("DURATION", "1.2.3", Code.VALUE), ("DURATION", "soon", Code.VALUE), ("DURATION", "1_0", Code.VALUE),
        ("DURATION", "9e999", Code.VALUE),
        ("REPORT_INTERVAL_S", "-1", Code.VALUE), ("REPORT_INTERVAL_S", "4294967296", Code.VALUE),
        ("REPORT_INTERVAL_S", "1.5", Code.VALUE), ("REPORT_INTERVAL_S", "٣", Code.VALUE),
        ("NPU_MONITOR_START", "yes", Code.VALUE), ("NPU_MONITOR_STOP", "1", Code.VALUE),
        ("MSPTI_ACTIVITY_KIND", "Kernal", Code.PARAM), ("MSPTI_ACTIVITY_KIND", "kernel", Code.PARAM),
        ("NPU_MONITOR_EXPORT_TYPE", "csv", Code.VALUE),
        ("NPU_MONITOR_LOG_FILE", "/" + "x" * 4096, Code.PARAM),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused(key: str, word: str, code: Code) -> None:
    with pytest.raises(Refused) as refused:
        read_command({"NPU_MONITOR_START": "true", key: word})
    assert refused.value.code is code and "\n" not in str(refused.value)


def test_a_bad_kind_among_good_ones_is_skipped() -> None:
    command, skipped = read_command({"MSPTI_ACTIVITY_KIND": "Kernel,Oops,API"})
    assert command.kinds == {Kind.KERNEL, Kind.API}
    assert len(skipped) == 1 and "'Oops'" in skipped[0]
