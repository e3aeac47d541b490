"""TensorBoard files, as TensorBoard's own reader sees them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensorboardX")
pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from npuscope.errors import UserError
from npuscope.monitor.metrics.record import Record
from npuscope.monitor.protocol.npu_monitor import KINDS
from npuscope.monitor.sinks.tensorboard import TensorBoard


def record(device: str, kind: str, duration: int, time: float = 100.0, **labels: str) -> Record:
    return Record(time, "device", {"device": device, "kind": kind} | labels, {"duration": duration})


def scalars(folder: Path) -> dict[str, list[tuple[int, float, float]]]:
    accumulator: Any = EventAccumulator(str(folder))
    accumulator.Reload()
    return {
        tag: [(event.step, event.value, event.wall_time) for event in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }


def board(folder: Path, lines: list[str] | None = None) -> TensorBoard:
    return TensorBoard(folder, ([] if lines is None else lines).append)


def test_every_kind_is_a_chart_in_the_folder_of_its_device(tmp_path: Path) -> None:
    sink = board(tmp_path / "new" / "logs")
    sink.write([record("0", kind, 1000 + place, domain="x") for place, kind in enumerate(KINDS)])
    sink.write([record("0", "Kernel", 7, time=101.5), record("host", "API", 9), record("1", "Kernel", 8)])
    sink.write([Record(1, "host", {}, {"uptime": 1})])
    sink.close()
    first = scalars(tmp_path / "new" / "logs" / "device_0")
    assert set(first) == {"Marker/x", *KINDS} - {"Marker"}
    assert first["Kernel"] == [(0, 1001, 100), (1, 7, 101.5)]
    assert {tag: found[0][1] for tag, found in first.items()} == {
        "Marker/x" if kind == "Marker" else kind: 1000 + place for place, kind in enumerate(KINDS)
    }
    assert scalars(tmp_path / "new" / "logs" / "device_host") == {"API": [(0, 9, 100)]}
    assert scalars(tmp_path / "new" / "logs" / "device_1") == {"Kernel": [(0, 8, 100)]}


def test_the_steps_of_markers_count_the_kind_and_no_domain_is_the_default(tmp_path: Path) -> None:
    sink = board(tmp_path)
    sink.write([record("0", "Marker", 1, domain="a"), record("0", "Marker", 2), record("0", "Marker", 3, domain="a")])
    sink.close()
    assert scalars(tmp_path / "device_0") == {"Marker/a": [(0, 1, 100), (2, 3, 100)], "Marker/default": [(1, 2, 100)]}


def test_records_are_there_before_the_file_is_closed(tmp_path: Path) -> None:
    board(tmp_path).write([record("0", "Kernel", 5)])
    assert scalars(tmp_path / "device_0") == {"Kernel": [(0, 5, 100)]}


def test_after_an_error_the_same_records_go_to_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = board(tmp_path)
    sink.write([record("0", "Kernel", 5)])

    def full(*words: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(next(iter(sink._writers.values())), "flush", full)
        with pytest.raises(OSError, match="No space"):
            sink.write([record("0", "Kernel", 6)])
    sink.write([record("0", "Kernel", 6)])
    sink.write([record("0", "Kernel", 7)])
    sink.close()
    assert len(list((tmp_path / "device_0").iterdir())) == 2
    assert {(step, value) for step, value, _ in scalars(tmp_path / "device_0")["Kernel"]} == {(0, 5), (1, 6), (2, 7)}


def test_devices_without_number_do_not_use_up_the_files(tmp_path: Path) -> None:
    lines: list[str] = []
    sink = board(tmp_path, lines)
    sink._writers = {str(number): object() for number in range(256)}
    sink.write([record("300", "Kernel", 5), record("301", "Kernel", 5)])
    sink._writers = {}
    assert len(lines) == 1 and list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UserError, match="^Unable to record logs in the target folder"):
            board(path)


def test_the_library_loads_no_pytorch_and_its_lack_is_one_line(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from npuscope.errors import UserError
from npuscope.monitor.sinks.tensorboard import TensorBoard
if sys.argv[2] == "lacking":
    sys.modules["tensorboardX"] = None
try:
    TensorBoard(Path(sys.argv[1]), print)
    print("torch" in sys.modules)
except UserError as error:
    print(error)
"""
    answers = [
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path), word], text=True, capture_output=True, timeout=60, check=True
        ).stdout
        for word in ("there", "lacking")
    ]
    assert answers == ["False\n", "TensorBoard files need tensorboardX: pip install 'npuscope[tensorboard]'\n"]
