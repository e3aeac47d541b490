"""What a database holds, read with plain sqlite3 and with the command of the same name (monitor formats, 4)."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processor_records import Maker

from npuscope.monitor.activity.kinds import Flag, Kind, Side
from npuscope.monitor.agent.processors.numbers import Numbers
from npuscope.monitor.agent.processors.sqlite import HALF, Database
from npuscope.monitor.agent.processors.wanted import OLD

WHOLE, T = "INTEGER", "TEXT"
ENUM = [("id", WHOLE, 1), ("name", T, 0)]


def whole(names: str) -> list[tuple[str, str]]:
    return [(name, WHOLE) for name in names.split()]


COLUMNS = {
    "STRING_IDS": [("id", WHOLE), ("value", T)],
    "SESSION_TIME_INFO": whole("startTimeNs endTimeNs"),
    "META_DATA": [("name", T), ("value", T)],
    "HOST_INFO": [("hostUid", T), ("hostName", T)],
    "NPU_INFO": [("id", WHOLE), ("name", T)],
    "RANK_DEVICE_MAP": whole("rankId deviceId"),
    "CANN_API": whole("startNs endNs type globalTid connectionId name"),
    "TASK": whole(
        "startNs endNs deviceId connectionId globalTaskId globalPid taskType contextId streamId taskId modelId"
    ),
    "COMPUTE_TASK_INFO": whole(
        "name globalTaskId blockNum mixBlockNum taskType opType inputFormats inputDataTypes inputShapes outputFormats "
        "outputDataTypes outputShapes attrInfo opState hf32Eligible"
    ),
    "COMMUNICATION_OP": [
        *whole("opName startNs endNs connectionId groupName opId relay retry dataType algType"), ("count", "NUMERIC"),
        *whole("opType deviceId"),
    ],
    "MSTX_EVENTS": whole(
        "startNs endNs eventType rangeId category message globalTid endGlobalTid domainId connectionId"
    ),
}  # fmt: skip
"""As the tables of monitor formats, 4.2, have them."""
ABSENT = 4294967295
TID = 42 * 2**32 + 43


def written(folder: Path, maker: Maker, *batches: Any, groups: str = "") -> sqlite3.Connection:
    database = Database(folder, maker.run, numbers=Numbers())
    for batch in batches:
        database.add(batch)
    database.report(1000)
    maker.run.ended, maker.run.groups = 2000, groups
    database.close()
    (path,) = folder.iterdir()
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def rows(database: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    return database.execute(query).fetchall()


def texts(database: sqlite3.Connection) -> dict[int, str]:
    found = rows(database, "SELECT id, value FROM STRING_IDS ORDER BY id")
    assert [number for number, _ in found] == list(range(len(found)))
    return dict(found)


def test_one_record_of_every_kind(tmp_path: Path) -> None:
    maker = Maker()
    database = written(tmp_path, maker, *maker.one_of_each())
    tables = {name for (name,) in rows(database, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    enums = {"ENUM_MSTX_EVENT_TYPE", "ENUM_HCCL_DATA_TYPE", "ENUM_API_TYPE"}
    assert tables == COLUMNS.keys() | enums and len(tables) == 14
    for table, columns in COLUMNS.items():
        assert [one[1:3] for one in rows(database, f"PRAGMA table_info({table})")] == columns, table
    for table in enums:
        assert [(one[1], one[2], one[5]) for one in rows(database, f"PRAGMA table_info({table})")] == ENUM
    (path,) = tmp_path.iterdir()
    found = re.fullmatch(r"msmonitor_(\d+)_\d{17}_(-1|\d+)\.db", path.name)
    assert found and found.groups() == ("42", "3")
    assert rows(database, "PRAGMA integrity_check") == [("ok",)]


def test_the_constant_tables(tmp_path: Path) -> None:
    maker = Maker()
    database = written(tmp_path, maker, maker.kernel(), groups='{"g":{"group_name":"g"}}')
    assert rows(database, "SELECT * FROM META_DATA") == [
        ("SCHEMA_VERSION_MICRO", "1"), ("SCHEMA_VERSION_MINOR", "2"), ("SCHEMA_VERSION_MAJOR", "0"),
        ("SCHEMA_VERSION", "1.2.0"), ("parallel_group_info", '{"g":{"group_name":"g"}}'),
    ]  # fmt: skip
    assert rows(database, "SELECT * FROM ENUM_MSTX_EVENT_TYPE") == [
        (0, "marker"), (1, "push/pop"), (2, "start/end"), (3, "marker_ex")
    ]  # fmt: skip
    assert dict(rows(database, "SELECT * FROM ENUM_API_TYPE")) == {
        5000: "runtime", 5500: "communication", 10000: "node", 15000: "model", 20000: "acl", 50001: "op", 50002: "queue",
        50003: "trace", 50004: "mstx",
    }  # fmt: skip
    types = dict(rows(database, "SELECT * FROM ENUM_HCCL_DATA_TYPE"))
    assert (len(types), types[4], types[11], types[17], types[65535]) == (
        18,
        "FP32",
        "BFP16",
        "FP8E8M0",
        "INVALID_TYPE",
    )
    assert 13 not in types
    ((number, host),) = rows(database, "SELECT * FROM HOST_INFO")
    assert (number == "" or number.isdigit()) and host
    assert rows(database, "SELECT * FROM SESSION_TIME_INFO") == [(0, 2000)]
    assert rows(database, "SELECT * FROM RANK_DEVICE_MAP") == [(3, 0)]
    assert rows(database, "SELECT * FROM NPU_INFO") == [(0, "UNKNOWN")]


def test_kernels_join_as_readers_join_them(tmp_path: Path) -> None:
    maker = Maker()
    database = written(
        tmp_path, maker, maker.kernel(10, 20), maker.kernel(30, 45, "Add", type="KERNEL_AIVEC", device=1)
    )
    join = (
        "SELECT n.value, t.value, TASK.startNs, TASK.endNs, TASK.deviceId, TASK.streamId FROM COMPUTE_TASK_INFO c "
        "JOIN TASK ON c.globalTaskId = TASK.globalTaskId JOIN STRING_IDS n ON n.id = c.name "
        "JOIN STRING_IDS t ON t.id = TASK.taskType AND t.id = c.taskType ORDER BY TASK.startNs"
    )
    assert rows(database, join) == [("MatMul", "KERNEL_AICORE", 10, 20, 0, 2), ("Add", "KERNEL_AIVEC", 30, 45, 1, 2)]
    known = texts(database)
    first = rows(database, "SELECT * FROM COMPUTE_TASK_INFO")[0]
    assert first[2:4] == (ABSENT, ABSENT) and {known[one] for one in first[5:]} == {"N/A"} and len(first) == 15
    task = rows(database, "SELECT connectionId, globalPid, contextId, taskId, modelId FROM TASK")[0]
    assert task == (7, 42, ABSENT, ABSENT, ABSENT)
    assert rows(database, "SELECT * FROM RANK_DEVICE_MAP") == [(3, 0), (3, 1)]


def test_calls(tmp_path: Path) -> None:
    maker = Maker()
    database = written(tmp_path, maker, *maker.one_of_each()[:4])
    known = texts(database)
    assert [(*one[:5], known[one[5]]) for one in rows(database, "SELECT * FROM CANN_API")] == [
        (10, 20, 10000, TID, 7, "aclnnMatmul"), (10, 20, 20000, TID, 7, "aclnnMatmul"),
        (10, 20, 10000, TID, 7, "aclnnMatmul"), (10, 20, 5000, TID, 7, "aclnnMatmul"),
    ]  # fmt: skip
    assert rows(database, "SELECT * FROM RANK_DEVICE_MAP") == [(3, -1)]
    assert rows(database, "SELECT * FROM NPU_INFO") == [(-1, "UNKNOWN")]


def test_collectives_are_numbered_by_group(tmp_path: Path) -> None:
    maker = Maker()
    batch = maker.batch(
        Kind.COMMUNICATION, data_type=[4, 4, 11], count=[2**63 + 5, 1, 2], device=[0, 0, 0], stream=[3, 3, 3],
        start=[30, 50, 70], end=[40, 60, 80], algorithm=["MESH", "RING", "MESH"],
        name=["allreduce", "broadcast", "allreduce"], comm=["hccl_world_group", "group_name_0", "hccl_world_group"],
        correlation=[8, 9, 2**64 - 1],
    )  # fmt: skip
    database = written(tmp_path, maker, batch)
    known = texts(database)
    found = rows(database, "SELECT * FROM COMMUNICATION_OP ORDER BY startNs")
    # The digits are the last of 7415574198778220483 and 5862276093215481612 (monitor formats, 4.6).
    assert [(known[one[0]], known[one[4]], known[one[9]], known[one[11]]) for one in found] == [
        ("allreduce_483_0_1", "hccl_world_group", "MESH", "allreduce"),
        ("broadcast_612_0_1", "group_name_0", "RING", "broadcast"),
        ("allreduce_483_1_1", "hccl_world_group", "MESH", "allreduce"),
    ]
    assert [one[5] for one in found] == [0, 1, 2]
    assert {one[6:8] for one in found} == {(0, 0)}
    assert [one[8] for one in found] == [4, 4, 11]
    # 64 bits without a sign have no place in SQLite: the same bits with one, as the vendor's plug-in binds them.
    assert [one[10] for one in found] == [5 - 2**63, 1, 2] and found[2][3] == -1


def test_numbers_go_on_from_run_to_run(tmp_path: Path) -> None:
    numbers = Numbers()
    for run in range(2):
        folder = tmp_path / str(run)
        folder.mkdir()
        maker = Maker()
        database = Database(folder, maker.run, numbers=numbers)
        for batch in maker.one_of_each():
            database.add(batch)
        maker.run.ended = 2000
        database.close()
        (path,) = folder.iterdir()
        plain = sqlite3.connect(path)
        assert rows(plain, "SELECT globalTaskId FROM TASK ORDER BY 1") == [(2 * run,), (2 * run + 1,)]
        assert rows(plain, "SELECT opId FROM COMMUNICATION_OP") == [(run,)]
        query = "SELECT value FROM STRING_IDS JOIN COMMUNICATION_OP ON id = opName"
        assert rows(plain, query) == [(f"allreduce_483_{run}_1",)]
        assert min(texts(plain)) == 0


def test_ranges_and_moments(tmp_path: Path) -> None:
    maker = Maker()
    more = maker.marks(
        (Flag.INSTANT, Side.HOST, 300, 1, "here", "d"), (Flag.INSTANT_WITH_DEVICE, Side.HOST, 310, 2, "both", "d"),
        (Flag.INSTANT_WITH_DEVICE, Side.DEVICE, 320, 2, "", ""), (Flag.START, Side.HOST, 330, 3, "alone", "d"),
    )  # fmt: skip
    database = written(tmp_path, maker, maker.four(), more)
    known = texts(database)
    found = rows(database, "SELECT * FROM MSTX_EVENTS ORDER BY startNs")
    assert [(*one[:5], known[one[5]], *one[6:8], known[one[8]], one[9]) for one in found] == [
        (100, 150, 2, ABSENT, ABSENT, "forward", TID, TID, "train", 4000000009),
        (300, 300, 0, ABSENT, ABSENT, "here", TID, TID, "d", 4000000001),
        (310, 310, 0, ABSENT, ABSENT, "both", TID, TID, "d", 4000000002),
    ]
    tasks = rows(database, "SELECT startNs, endNs, deviceId, connectionId, streamId, taskType FROM TASK ORDER BY 1")
    assert [(*one[:5], known[one[5]]) for one in tasks] == [
        (110, 170, 5, 4000000009, 6, "MsTx"), (320, 320, 5, 4000000002, 6, "MsTx")
    ]  # fmt: skip
    assert rows(database, "SELECT * FROM RANK_DEVICE_MAP") == [(3, 5)]


def test_a_range_across_two_reports(tmp_path: Path) -> None:
    maker = Maker()
    database = Database(tmp_path, maker.run, numbers=Numbers())
    batch = maker.four()
    for place in range(4):
        database.add(batch.where(np.array([place])))
        database.report(1000 + place)
    maker.run.ended = 2000
    database.close()
    plain = sqlite3.connect(database_path(tmp_path))
    assert rows(plain, "SELECT startNs, endNs FROM MSTX_EVENTS") == [(100, 150)]
    assert rows(plain, "SELECT startNs, endNs FROM TASK") == [(110, 170)]
    assert database.counts == {"written": 4}


def test_steps_are_told_apart_by_ranges_of_their_domain(tmp_path: Path) -> None:
    maker = Maker()
    rows_ = []
    for number, name in ((1, "step 7"), (2, "step 8"), (3, "warm-up"), (4, "forward")):
        domain = "train" if name == "forward" else "step"
        rows_ += [
            (Flag.START, Side.HOST, 100 * number, number, name, domain),
            (Flag.END, Side.HOST, 100 * number + 50, number, "", ""),
        ]
    database = written(tmp_path, maker, maker.marks(*rows_))
    assert rows(database, "SELECT id, startNs, endNs FROM STEP_TIME") == [(7, 100, 150), (8, 200, 250), (9, 300, 350)]
    assert rows(database, "SELECT count(*) FROM MSTX_EVENTS") == [(4,)]


def test_what_does_not_belong_is_counted_and_said_once(tmp_path: Path) -> None:
    maker = Maker(started=15)
    database = Database(tmp_path, maker.run, numbers=Numbers())
    database.add(maker.kernel(1, 14))
    database.add(maker.kernel(1, 15))
    database.add(maker.marks((Flag.INSTANT, Side.HOST, 14, 1, "old", ""), (Flag.START, Side.HOST, 20, 2, "open", "")))
    for _ in range(3):
        database.add(maker.batch(Kind.HCCL, start=[20], end=[30]))
        database.add(maker.batch(Kind.MEMSET, start=[20], end=[30]))
    maker.run.ended = 2000
    database.close()
    assert database.counts == {
        "written": 1, OLD: 2, HALF: 1, "Hccl has no place in databases": 3, "MemSet has no place in databases": 3
    }  # fmt: skip
    assert maker.warnings == [
        "records of kind Hccl are not stored: databases have no place for them",
        "records of kind MemSet are not stored: databases have no place for them",
    ]


def test_a_run_without_records_leaves_nothing(tmp_path: Path) -> None:
    maker = Maker()
    database = Database(tmp_path, maker.run)
    database.report(10)
    database.add(maker.batch(Kind.MEMORY, start=[1], end=[2]))
    database.report(20)
    maker.run.ended = 30
    database.close()
    assert list(tmp_path.iterdir()) == []


def test_texts_that_utf8_cannot_write(tmp_path: Path) -> None:
    maker = Maker()
    database = written(tmp_path, maker, maker.kernel(name="a\ud800b"), maker.kernel(name="矩阵乘\x00'\";--"))
    assert {"a?b", "矩阵乘\x00'\";--"} < set(texts(database).values())


def database_path(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


@pytest.mark.parametrize("rank", [-1, 0, 12345])
def test_the_rank_stands_in_the_name(tmp_path: Path, rank: int) -> None:
    maker = Maker(rank=rank)
    database = written(tmp_path, maker, maker.kernel())
    assert database_path(tmp_path).name.endswith(f"_{rank}.db")
    assert rows(database, "SELECT * FROM RANK_DEVICE_MAP") == [(rank, 0)]
