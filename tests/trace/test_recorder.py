"""Recording: rows become columns, long launches are cut into batches, files give back what was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from npuscope.trace import recorder as module
from npuscope.trace.file import TraceWriter, is_trace, read_batches
from npuscope.trace.footprint import FOOTPRINTS, Footprint, intern
from npuscope.trace.recorder import Batch, Recorder
from npuscope.trace.schema import (
    OPCODES,
    Buffer,
    CoreInfo,
    CoreType,
    Fault,
    HostEvent,
    HostKind,
    Launch,
    Site,
    SourceFrame,
    Space,
)


def launch() -> Launch:
    """A launch of one vector core."""
    frame = SourceFrame("user.py", 3, 0, "main")
    return Launch(0, "kernel", "Ascend910B1", (CoreInfo(CoreType.AIV, 0),), (1,), {"n": "4"}, {"auto_sync": "True"},
                  frame, "2201", {Space.UB: 196608})


def record(recorder: Recorder, rows: int) -> None:
    """A launch of `rows` instructions, each with one read."""
    recorder.begin(launch())
    recorder.add_site(Site("ascendc.add_l2", (SourceFrame("user.py", 7, 4),)))
    buffer = recorder.add_buffer(Buffer(Space.UB, 0, 64, 256, "tensor", "x", "float32", (64,), 1, 2, False, ((0, 4), (8, 64)), 7))
    shape = intern(Footprint(32, ((3, 96),)))
    code = OPCODES.number("vadd")
    for row in range(rows):
        recorder.instructions.extend((0, 1, code, 1, 0, row, 0, 0, 0, 64))
        recorder.accesses.extend((row, 0, buffer, 64 + row, shape))
        recorder.rows += 1
        if recorder.rows - recorder.flushed >= module.BATCH_ROWS:
            recorder.flush()
    recorder.accesses.extend((rows - 1, 1, buffer, 64, recorder.add_explicit(np.array([0, 8]), 4)))
    recorder.add_fault(Fault("deadlock", rows - 1, 0, 1, {"waits": [[0, 1, "flag", 1]]}))
    recorder.end()


def test_batches_join_to_the_whole_launch() -> None:
    """Columns come in order, `first` counts on, only the last batch is the last."""
    batches: list[Batch] = []
    rows = module.BATCH_ROWS * 2 + 5
    record(Recorder([batches.append]), rows)
    assert [batch.first for batch in batches] == [0, module.BATCH_ROWS, 2 * module.BATCH_ROWS]
    assert [batch.last for batch in batches] == [False, False, True]
    joined = np.concatenate([batch.column("a") for batch in batches])
    np.testing.assert_array_equal(joined, np.arange(rows))


def test_a_file_gives_back_every_table(tmp_path: Path) -> None:
    """Write, read, compare: rows, buffers, footprints, sites, faults, launch."""
    path = tmp_path / "run.trace"
    batches: list[Batch] = []
    with TraceWriter(path) as writer:
        record(Recorder([writer.write, batches.append]), module.BATCH_ROWS + 3)
    assert is_trace(path)
    again = list(read_batches(path))
    assert len(again) == len(batches)
    for before, after in zip(batches, again, strict=True):
        np.testing.assert_array_equal(before.instruction, after.instruction)
        np.testing.assert_array_equal(before.access, after.access)
        assert (before.first, before.last) == (after.first, after.last)
    last = again[-1]
    assert (last.launch, last.buffers, last.sites, last.faults) == (
        batches[-1].launch, batches[-1].buffers, batches[-1].sites, batches[-1].faults
    )
    assert last.explicit[0].starts.tolist() == [0, 8]
    assert FOOTPRINTS[int(last.access_column("footprint")[0])] == Footprint(32, ((3, 96),))


def test_an_interrupted_recording_leaves_nothing(tmp_path: Path) -> None:
    """An exception inside the block removes the unfinished file."""
    try:
        with TraceWriter(tmp_path / "run.trace") as writer:
            record(Recorder([writer.write]), 3)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert list(tmp_path.iterdir()) == []


def record_with_host_events(recorder: Recorder) -> None:
    """Events before, between and after two launches."""
    recorder.add_host_event(HostKind.MALLOC, 0, 0x1000, size=64)
    recorder.add_host_event(HostKind.COPY, 0, 0x1000, 0x2000, 32, 64)
    record(recorder, module.BATCH_ROWS + 3)
    record(recorder, 1)
    recorder.add_host_event(HostKind.FREE, 0, 0x1000)
    recorder.finish()


def test_host_events_come_with_the_batch_that_follows_them(tmp_path: Path) -> None:
    """In order with the launches, each once; what comes after the last launch is in a batch without one."""
    batches: list[Batch] = []
    with TraceWriter(tmp_path / "run.trace") as writer:
        record_with_host_events(Recorder([writer.write, batches.append]))
    assert [[event.serial for event in batch.host] for batch in batches] == [[0, 1], [], [], [2]]
    assert [batch.closing for batch in batches] == [False, False, False, True]
    assert batches[0].host[1] == HostEvent(1, HostKind.COPY, 0, 0x1000, 0x2000, 32, 64)
    again = list(read_batches(tmp_path / "run.trace"))
    assert [list(batch.host) for batch in again] == [list(batch.host) for batch in batches]
    assert again[-1].closing and again[-1].instruction.shape == (10, 0) and not again[-1].buffers


def test_without_host_events_the_last_launch_ends_the_trace() -> None:
    """No batch more than there are."""
    batches: list[Batch] = []
    recorder = Recorder([batches.append])
    record(recorder, 1)
    recorder.finish()
    assert len(batches) == 1
