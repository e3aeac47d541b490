"""Labelled ranges of MC2 kernels (opprof.md 1.9, 3.4, T53)."""

import json

import pytest

from npuscope.errors import UserError
from npuscope.profiler.instruction_timeline.communication import communication
from npuscope.profiler.instruction_timeline.labels import Labels, read_labels
from npuscope.profiler.writers.trace_json import OnBoard, write_on_board
from npuscope.trace.schema import CoreInfo, CoreType

TWO = (CoreInfo(CoreType.AIV, 0), CoreInfo(CoreType.AIV, 1))


@pytest.fixture
def stamped(hand):
    """Two ranges on core 0, one twice; one on core 1; a stamp without a partner; a small id."""
    ids = [(0, 65577), (0, 65577), (0, 65578), (1, 65577), (0, 65577), (0, 65577), (0, 65578), (1, 65577), (1, 65579),
           (0, 12), (0, 12)]
    given = [{"text": "PRINT_TIME_STAMP", "core": core, "start": 10 * n, "end": 10 * n + 2}
             for n, (core, _) in enumerate(ids)]  # fmt: skip
    return hand(given, marks=[(n, number) for n, (_, number) in enumerate(ids)], cores=TWO, cycles=200,
                core_times=[(5, 120), (6, 110)])  # fmt: skip


def test_ranges_are_named_by_their_labels(stamped, written) -> None:
    found = communication(stamped, Labels({65577: "AllGather", 65578: "matmul-0"}))
    document = written(write_on_board, stamped, OnBoard(communication=found))
    events = [e for e in document["traceEvents"] if e["pid"] != "NOTICE"]
    assert [(e["pid"], e["tid"], e["name"], e["ts"], round(e["ts"] + e["dur"], 6)) for e in events] == [
        ("AI CORE", "kernel", "kernel", 0.0, 0.2),
        ("BLOCK", "core0.veccore0", "Block 0", 0.005, 0.12),
        ("BLOCK", "core1.veccore0", "Block 1", 0.006, 0.11),
        ("BLOCK", "core0.veccore0", "AllGather", 0.002, 0.01),
        ("BLOCK", "core0.veccore0", "matmul-0", 0.022, 0.06),
        ("BLOCK", "core0.veccore0", "AllGather", 0.042, 0.05),
        ("BLOCK", "core1.veccore0", "AllGather", 0.032, 0.07),
    ]
    assert events[3]["args"] == {"name": "AllGather", "pc_addr": "0x1000", "code": "kernel.py:1\nhost.py:7"}
    assert found.marked
    assert [loss.text for loss in found.losses] == ["Time stamp 65579 of core1.veccore0 has no second call."]


def test_without_labels_ids_are_shown_and_blocks_can_be_left_out(stamped) -> None:
    names = [item.name for item in communication(stamped).ranges]
    assert names == ["kernel", "Block 0", "Block 1", "65577", "65578", "65577", "65577"]
    assert "Block 0" not in [item.name for item in communication(stamped, Labels({}, False)).ranges]


def test_a_kernel_without_stamps_marks_nothing(hand) -> None:
    assert not communication(hand([{"start": 1, "end": 2}])).marked


def file_of(tmp_path, content):
    path = tmp_path / "input.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def config(**entries):
    return {"mc2_trace_config": entries}


def test_labels_are_read(tmp_path) -> None:
    path = file_of(tmp_path, config(enable_block_time=False, descid_display={"65577": "a-b_c 1", "0x1002A": "x" * 64}))
    assert read_labels(path) == Labels({65577: "a-b_c 1", 0x1002A: "x" * 64}, False)
    assert read_labels(file_of(tmp_path, config())) == Labels({}, True)
    whole = {str(0x10000 + number): "n" for number in range(1024)}
    assert len(read_labels(file_of(tmp_path, config(descid_display=whole))).names) == 1024


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("{", "not JSON"),
        ("[]", "mc2_trace_config"),
        ({}, "mc2_trace_config"),
        (config(enable_block_time="yes"), "enable_block_time"),
        (config(descid_display=[]), "must be an object"),
        (config(descid_display={str(n): "n" for n in range(1025)}), "at most 1024 entries, found 1025"),
        (config(descid_display={"12x": "n"}), "'12x'"),
        (config(descid_display={"-1": "n"}), "'-1'"),
        (config(descid_display={"1": 7}), "string"),
        (config(descid_display={"1": "x" * 65}), "64"),
        (config(descid_display={"1": "a/b"}), "letters"),
        (config(descid_display={"1": ""}), "letters"),
    ],
)
def test_bad_labels_are_refused_in_one_line(tmp_path, content, word) -> None:
    with pytest.raises(UserError) as error:
        read_labels(file_of(tmp_path, content))
    assert word in str(error.value) and "\n" not in str(error.value) and "input.json" in str(error.value)


def test_files_that_cannot_be_read_are_refused(tmp_path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_labels(tmp_path / "nothing.json")
    with pytest.raises(UserError, match="10 MB"):
        read_labels(file_of(tmp_path, " " * (10 << 20) + "{}"))
