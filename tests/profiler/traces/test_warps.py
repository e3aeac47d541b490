"""Warp lanes and stall reasons (opprof.md 3.7, T33, T49-T51)."""

import json

import numpy as np
import pytest

from npuscope.cli.profile_files import Wanted, write_launch
from npuscope.cli.profile_folder import Place
from npuscope.npu.chip import load_chip
from npuscope.profiler.instruction_timeline.warps import (
    REASONS,
    StallSamples,
    WarpFeature,
    is_simt,
    not_simt,
    warps,
)
from npuscope.profiler.profile import Profile
from npuscope.profiler.selection import A5, select
from npuscope.profiler.writers.trace_json import OnBoard, write_on_board
from npuscope.trace.schema import CoreInfo, CoreType
from npuscope.trace.timeline import Lane

TWO = (CoreInfo(CoreType.AIV, 0), CoreInfo(CoreType.AIV, 1))


def simt(warp, start, end, threads=32, core=0):
    return {"text": "SIMT_LDG", "lane": Lane.VECTOR, "warp": warp, "threads": threads, "core": core, "start": start,
            "end": end}  # fmt: skip


def test_a_warp_lasts_from_its_first_instruction_to_its_last(hand) -> None:
    threads = 70  # three warps, the last with six threads
    timeline = hand([simt(0, 10, 20), simt(1, 11, 40), simt(2, 12, 22, 6), simt(0, 30, 35), simt(2, 25, 60, 4),
                     {"text": "VADD", "lane": Lane.VECTOR, "start": 1, "end": 2}])  # fmt: skip
    found = warps(timeline)
    assert [(w.number, w.start, w.end, w.threads, w.instructions) for w in found] == [
        (0, 10, 35, 32, 2), (1, 11, 40, 32, 1), (2, 12, 60, 6, 2),
    ]  # fmt: skip
    assert len(found) == -(-threads // 32) and is_simt(timeline)


def test_records_without_a_time_are_left_out(hand) -> None:
    assert warps(hand([simt(0, 0, 5), simt(1, 7, 7)])) == []


def test_warp_lanes_of_the_trace(hand, written) -> None:
    timeline = hand([simt(0, 1000, 1500), simt(1, 1100, 1400), simt(0, 5000, 5600, core=1)], cores=TWO)
    document = written(write_on_board, timeline, OnBoard(warps=tuple(warps(timeline))))
    found = [e for e in document["traceEvents"] if e["ph"] == "X"]
    # each core's clock is put where the trace begins
    assert [(e["pid"], e["tid"], e["name"], e["ts"], e["dur"]) for e in found] == [
        ("warp.core0.veccore0", "Warp 0", "Warp_0", 0.0, 0.5), ("warp.core0.veccore0", "Warp 1", "Warp_1", 0.1, 0.3),
        ("warp.core1.veccore0", "Warp 0", "Warp_0", 0.0, 0.6),
    ]  # fmt: skip
    assert found[2]["args"] == {"block_id": 1, "core_id": 1, "core_type": "veccore0", "warp_id": 0}


def test_an_on_board_run_has_warp_lanes(hand, tmp_path) -> None:
    """T49: they are there by default on a chip that has warps, one for each 32 threads; T50: not for another kernel."""
    threads = 100
    warp_rows = [simt(number, 1000 + number, 1900 - number, min(32, threads - 32 * number)) for number in range(4)]
    plain = {"text": "VADD", "lane": Lane.VECTOR, "start": 1, "end": 2}
    for name, rows in (("simt", warp_rows), ("simd", [plain])):
        place = Place(tmp_path / name)
        assert write_launch(place, Profile(hand(rows), load_chip("950PR")), Wanted(select((), A5))) == []
    events = json.loads((tmp_path / "simt" / "trace.json").read_text())["traceEvents"]
    lanes = [e for e in events if e["ph"] == "X" and e["pid"] == "warp.core0.veccore0"]
    assert sorted(e["tid"] for e in lanes) == [f"Warp {number}" for number in range(-(-threads // 32))]
    assert all(e["dur"] > 0 for e in lanes)
    assert not (tmp_path / "simd" / "trace.json").exists()


def test_stall_reasons_add_up() -> None:
    counts = np.zeros((3, 9), np.int64)
    counts[0, 2], counts[0, 8] = 30, 10
    counts[1, 5], counts[2, 0] = 15, 5
    found = StallSamples(np.array([0x10, 0x18, 0x20]), counts)
    assert found.samples == 60 == sum(count for _, count in found.top()) + counts[:, 8].sum()
    assert found.top()[:3] == [("Scoreboard_Not_Ready", 30), ("Warp_Level_Sync", 15), ("IBuf_Empty", 5)]
    assert len(found.top()) == len(REASONS) == 8
    assert found.percent(True) == pytest.approx([40 / 0.6, 25, 5 / 0.6]) and found.percent(True).sum() == pytest.approx(
        100
    )
    assert found.percent(False) == pytest.approx([60, 30, 10])
    assert found.details(0, True)["Active"] == 10 and "Active" not in found.details(0, False)
    assert StallSamples(np.array([1]), np.zeros((1, 9), np.int64)).percent(True).tolist() == [0.0]


def test_other_kernels_get_one_sentence_for_each_feature(hand) -> None:
    assert not is_simt(hand([{"text": "VADD", "lane": Lane.VECTOR, "start": 1, "end": 2}]))
    assert not_simt([WarpFeature.TIMELINE, WarpFeature.STALLS], "add_custom") == [
        "Warp timeline is not supported: operator add_custom is not a SIMT operator.",
        "Warp stall reasons is not supported: operator add_custom is not a SIMT operator.",
    ]
