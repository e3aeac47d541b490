"""Files as the monitor writes them, whole and damaged; sqlite3 and the stand-in of the specification are the judges."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulated_cluster import Job, all_records, file_name, records, simulate, write_database, write_lines

from npuscope.errors import UserError
from npuscope.monitor.analysis.cluster import analyse_files
from npuscope.monitor.analysis.files import find
from npuscope.monitor.analysis.reduction import Failure, Summary, reduce_file, reduced

JOB = Job(ranks=8, tensor=2, steps=40, slow={3: 1.3})
RUN = simulate(JOB)
TIMES = ("label", "end", "duration", "compute", "communication", "exposed")
DATA_TABLES = {
    "COMMUNICATION_OP": [
        "opName",
        "startNs",
        "endNs",
        "connectionId",
        "groupName",
        "opId",
        "relay",
        "retry",
        "dataType",
        "algType",
        "count",
        "opType",
        "deviceId",
    ],
    "TASK": [
        "startNs",
        "endNs",
        "deviceId",
        "connectionId",
        "globalTaskId",
        "globalPid",
        "taskType",
        "contextId",
        "streamId",
        "taskId",
        "modelId",
    ],
    "MSTX_EVENTS": [
        "startNs",
        "endNs",
        "eventType",
        "rangeId",
        "category",
        "message",
        "globalTid",
        "endGlobalTid",
        "domainId",
        "connectionId",
    ],
    "CANN_API": ["startNs", "endNs", "type", "globalTid", "connectionId", "name"],
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Databases of the job."""
    folder = tmp_path_factory.mktemp("written")
    for one in all_records(RUN):
        write_database(one, folder)
    return folder


@pytest.fixture
def files(written: Path, tmp_path: Path) -> Path:
    """Copies that a test may damage."""
    return Path(shutil.copytree(written, tmp_path / "files"))


def of(folder: Path, rank: int) -> Path:
    return next(folder.glob(f"*_{rank}.db"))


def test_the_simulated_files_are_the_monitors(written: Path) -> None:
    """Fourteen tables, the columns in their order, and the counts that sqlite3 finds."""
    with sqlite3.connect(of(written, 3)) as db:
        assert len(db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()) == 14
        for table, columns in DATA_TABLES.items():
            assert [row[1] for row in db.execute(f"PRAGMA table_info({table})")] == columns
        assert len(db.execute("PRAGMA table_info(COMPUTE_TASK_INFO)").fetchall()) == 15
        (kernels,) = db.execute("SELECT count(*) FROM COMPUTE_TASK_INFO JOIN TASK USING (globalTaskId)").fetchone()
        assert kernels == 40 * 8
        names = db.execute(
            "SELECT s.value, count(*) FROM COMMUNICATION_OP c JOIN STRING_IDS s ON s.id = c.groupName GROUP BY 1 ORDER BY 1"
        ).fetchall()
        assert names == [("dp_1", 40), ("tp_1", 80)]


def test_a_database_says_what_sql_says(written: Path) -> None:
    """Kernels of a rank do not overlap here, so sums of SQL are the covered time."""
    (recording,) = (one for one in find([written]).recordings if one.rank == 3)
    summary = reduce_file(recording)
    assert isinstance(summary, Summary)
    with sqlite3.connect(of(written, 3)) as db:
        kernel = db.execute("SELECT sum(t.endNs - t.startNs) FROM TASK t JOIN COMPUTE_TASK_INFO USING (globalTaskId)")
        talk = db.execute("SELECT sum(endNs - startNs) FROM COMMUNICATION_OP")
        matmul = db.execute(
            "SELECT count(*), sum(t.endNs - t.startNs) FROM TASK t JOIN COMPUTE_TASK_INFO c USING (globalTaskId) "
            "JOIN STRING_IDS s ON s.id = c.name WHERE s.value = 'MatMulV2'"
        )
        assert summary.compute.sum() == kernel.fetchone()[0]
        assert summary.communication.sum() == talk.fetchone()[0]
        at = summary.operators.names.index("MatMulV2")
        assert (summary.operators.calls[at], summary.operators.time[at]) == matmul.fetchone()
    assert (summary.host, summary.device, summary.pid) == ("node0", 3, 1003)
    assert summary.label.tolist() == list(range(1, 41))


@pytest.mark.parametrize("form", ["marks on the device", "marks on the host", "JSON lines"])
def test_every_form_gives_the_same(form: str, tmp_path: Path) -> None:
    for one in all_records(RUN):
        if form == "JSON lines":
            write_lines(one, tmp_path)
        else:
            write_database(one, tmp_path, device_marks="device" in form)
    cluster = analyse_files(find([tmp_path]), processes=1)
    assert [one.rank for one in cluster.slow] == [3]
    assert not cluster.partial
    if "host" in form:
        assert {one.source for one in cluster.matrices.ranks} == {"step marks on the host, ended by their collectives"}
        return
    for found, known in zip(cluster.matrices.ranks, map(reduced, all_records(RUN)), strict=True):
        assert (found.rank, found.host, found.device) == (known.rank, known.host, known.device)
        for name in TIMES:
            assert np.array_equal(getattr(found, name), getattr(known, name)), name


def test_the_profilers_database_is_read_too(written: Path, tmp_path: Path) -> None:
    """The same tables and STEP_TIME, under the profiler's names; more columns do no harm."""
    for rank in range(8):
        folder = tmp_path / f"node0_{1000 + rank}_20261130120000000_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        folder.mkdir(parents=True)
        path = folder / f"ascend_pytorch_profiler_{rank}.db"
        shutil.copy(of(written, rank), path)
        one = records(RUN, rank)
        with sqlite3.connect(path) as db:
            db.execute("DROP TABLE MSTX_EVENTS")
            db.execute("ALTER TABLE COMPUTE_TASK_INFO ADD COLUMN gridDim INTEGER")
            db.execute("CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER)")
            rows = zip(one.steps.label.tolist(), one.steps.start.tolist(), one.steps.end.tolist(), strict=True)
            db.executemany("INSERT INTO STEP_TIME VALUES (?, ?, ?)", rows)
    cluster = analyse_files(find([tmp_path]), processes=1)
    assert [one.rank for one in cluster.slow] == [3]
    assert {one.source for one in cluster.matrices.ranks} == {"STEP_TIME, ended by their collectives"}
    assert [one.pid for one in cluster.matrices.ranks] == [1000 + rank for rank in range(8)]


def test_the_newest_file_of_a_rank_counts(files: Path) -> None:
    (files / "old").mkdir()
    old = files / "old" / "msmonitor_77_20251130120000000_3.db"
    old.write_bytes(b"not read at all")
    (files / "msmonitor_78_20271130120000000_-1.db").write_bytes(b"")
    found = find([files])
    assert (len(found.recordings), found.replaced) == (8, 1)
    assert [line for line in found.left_out if "_-1.db: the rank is not known" in line]
    assert not [line for line in analyse_files(found, processes=1).left_out if "old" in line]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(b""), "the file is empty"),
        (lambda path: path.write_bytes(b"SQLite format 4" * 500), "file is not a database"),
        (lambda path: os.truncate(path, path.stat().st_size // 2), "malformed"),
        (lambda path: run(path, "DROP TABLE STRING_IDS"), "no STRING_IDS"),
        (lambda path: run(path, "DELETE FROM STRING_IDS"), "no STRING_IDS"),
        (lambda path: run(path, "DROP TABLE TASK; DROP TABLE COMMUNICATION_OP"), "neither kernels nor collectives"),
        (lambda path: run(path, "DROP TABLE MSTX_EVENTS; DROP TABLE COMMUNICATION_OP"), "no steps"),
    ],
    ids=["empty", "no database", "cut", "no names", "names gone", "no records", "no steps"],
)
def test_a_damaged_file_is_named_and_the_others_count(damage: object, reason: str, files: Path) -> None:
    damage(of(files, 5))  # type: ignore[operator]
    cluster = analyse_files(find([files]), processes=1)
    assert [one.rank for one in cluster.slow] == [3]
    assert [one.rank for one in cluster.matrices.ranks] == [0, 1, 2, 3, 4, 6, 7]
    (line,) = cluster.left_out
    assert line.startswith("rank 5: ") and reason in line
    assert cluster.partial
    assert any("no file of rank 5" in note for note in cluster.notes)


def run(path: Path, script: str) -> None:
    with sqlite3.connect(path) as db:
        db.executescript(script)


def test_a_file_that_is_still_written_to_can_be_read(files: Path) -> None:
    """Write-ahead logging, the writer's connection open with a transaction under way."""
    db = sqlite3.connect(of(files, 5), isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("BEGIN IMMEDIATE")
    db.execute("DELETE FROM TASK")
    cluster = analyse_files(find([files]), processes=1)
    assert not cluster.left_out and len(cluster.matrices.ranks) == 8
    db.execute("ROLLBACK")
    db.close()


def test_lines_that_are_none_are_counted(tmp_path: Path) -> None:
    for one in all_records(RUN):
        write_lines(one, tmp_path)
    cut, broken = tmp_path / file_name(1, "jsonl"), tmp_path / file_name(2, "jsonl")
    os.truncate(cut, cut.stat().st_size - 10)
    lines = broken.read_text().splitlines()
    lines[7] = lines[7][:20]
    lines[9] = "[1, 2]"
    broken.write_text("\n".join(lines) + "\n")
    cluster = analyse_files(find([tmp_path]), processes=1)
    assert len(cluster.matrices.ranks) == 8 and not cluster.left_out
    assert f"rank 1: {cut.name}: the last line is cut off" in cluster.notes
    assert f"rank 2: {broken.name}: 2 damaged lines are left out" in cluster.notes


def test_rotated_lines_are_one_recording(tmp_path: Path) -> None:
    for one in all_records(RUN):
        path = write_lines(one, tmp_path)
        lines = path.read_text().splitlines(keepends=True)
        path.unlink()
        for part in range(3):
            name = f"msmonitor_{one.pid}_2026113012000000{part}_{one.rank}.jsonl"
            (tmp_path / name).write_text("".join(lines[part * len(lines) // 3 : (part + 1) * len(lines) // 3]))
    found = find([tmp_path])
    assert [len(one.paths) for one in found.recordings] == [3] * 8
    whole = reduced(records(RUN, 4))
    read = reduce_file(found.recordings[4])
    assert isinstance(read, Summary)
    for name in TIMES:
        assert np.array_equal(getattr(read, name), getattr(whole, name)), name
    assert replace(read.operators, time=0, calls=0) == replace(whole.operators, time=0, calls=0)


def test_the_reference_files_of_the_specification(tmp_path: Path) -> None:
    """Two ranks, three steps of four kernels of 100 and of 120 us, 200 us of collectives, 15 us between kernels."""
    for rank, each in ((0, 100_000), (1, 120_000)):
        lines, now = [], 0
        for step in (1, 2, 3):
            begin = now
            for _ in range(4):
                now += 15_000
                lines.append(
                    {"kind": "Kernel", "name": "MatMulV2", "startNs": now, "endNs": now + each, "deviceId": rank}
                )
                now += each
            lines.append(
                {
                    "kind": "Communication",
                    "name": "hcom_allReduce_",
                    "startNs": now,
                    "endNs": now + 200_000,
                    "deviceId": rank,
                    "dataType": "FP32",
                    "count": 1 << 20,
                    "commName": "group0",
                }
            )
            now += 200_000
            lines.append(
                {
                    "kind": "Marker",
                    "sourceKind": "Host",
                    "name": f"step {step}",
                    "domain": "default",
                    "startNs": begin,
                    "endNs": now,
                    "id": step,
                }
            )
        path = tmp_path / f"msmonitor_4000_20260101000000000_{rank}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    matrices = analyse_files(find([tmp_path])).matrices
    assert matrices.compute.tolist() == [[400_000] * 3, [480_000] * 3]
    assert matrices.communication.tolist() == [[200_000] * 3] * 2
    assert matrices.idle.tolist() == [[60_000] * 3] * 2


def test_nothing_to_compare_is_one_line(tmp_path: Path, written: Path) -> None:
    with pytest.raises(UserError, match="there is no .*missing"):
        find([tmp_path / "missing"])
    with pytest.raises(UserError, match="no files of ranks in "):
        find([tmp_path])
    with pytest.raises(UserError, match="no files of ranks in .*neither a database nor JSON lines"):
        (tmp_path / "notes.md").write_text("x")
        find([tmp_path / "notes.md"])
    with pytest.raises(UserError, match="^1 ranks can be read, and it takes two to compare$"):
        analyse_files(find([of(written, 2)]))
    (tmp_path / "msmonitor_1_20261130120000000_0.db").write_bytes(b"")
    assert isinstance(reduce_file(find([tmp_path]).recordings[0]), Failure)
    with pytest.raises(UserError, match="0 ranks can be read.*the file is empty"):
        analyse_files(find([tmp_path]))
