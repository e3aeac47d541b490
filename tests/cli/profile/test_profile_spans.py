"""Scalar spans are left out of a long timeline, and that is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npuscope.cli import profile_files
from npuscope.cli.profile_files import Wanted, write_launch
from npuscope.cli.profile_folder import Place
from npuscope.cli.session import run_in_session
from npuscope.npu.chip import load_chip
from npuscope.npu.timing import time_launch
from npuscope.profiler.profile import Profile
from npuscope.profiler.selection import Selection
from npuscope.trace.recorder import Batch
from npuscope.trace.rows import launches

EXAMPLE = Path(__file__).parents[3] / "examples" / "pyasc" / "add_flags.py"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory):
    """The rows of an example's launch."""
    pytest.importorskip("asc")
    batches: list[Batch] = []
    run_in_session((batches.append,), "Ascend910B1", str(EXAMPLE), [], False)
    return next(launches(batches))


@pytest.mark.parametrize("room", [0, -1])
def test_spans_end_where_there_are_more_instructions(
    rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """Up to the limit there are spans, above it a notice, a word for people, and nothing is partial by that."""
    chip = load_chip("Ascend910B1")
    profile = Profile(time_launch(rows, chip), chip)
    monkeypatch.setattr(profile_files, "MOST_SPANS", rows.instruction.shape[1] + room)
    wanted = Wanted(Selection(frozenset(), simulator=True), frozenset({"trace"}))
    write_launch(Place(tmp_path), profile, wanted)
    events = json.loads((tmp_path / "simulator" / "trace.json").read_text())["traceEvents"]
    has_spans = any(event["name"] == "cache_time" for event in events)
    notices = [event["name"] for event in events if event["ph"] == "X" and event["pid"] == "NOTICE"]
    assert has_spans == (room == 0)
    assert [loss.text for loss in profile.timeline.losses] == notices
    assert all("no scalar spans" in text for text in notices) and len(notices) == -room
    assert not profile.timeline.partial
