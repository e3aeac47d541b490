"""Counters read off timelines made by hand; what each should be is counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from made_timeline import Maker

from npuscope.npu.chip import load_chip
from npuscope.profiler.counters import Counters, count
from npuscope.profiler.counters.counters import EVENTS
from npuscope.trace.schema import Space
from npuscope.trace.timeline import UNKNOWN, Lane, Source

A2, A5, P310 = load_chip("910B4"), load_chip("950PR"), load_chip("310P3")
GM, UB, L1, L0A, L0B, L0C = Space.GM, Space.UB, Space.L1, Space.L0A, Space.L0B, Space.L0C


def counted(maker: Maker, chip=A2) -> Counters:
    return count(maker.timeline(), chip)


def test_busy_cycles_are_a_union_without_waits() -> None:
    maker = Maker()
    maker.slice("MOV", Lane.MTE2, 0, 100)
    maker.slice("MOV", Lane.MTE2, 50, 120)  # 20 more
    maker.slice("MOV", Lane.MTE2, 60, 70)  # inside the others
    maker.slice("WAIT_FLAG", Lane.MTE2, 120, 300)
    maker.slice("MOV", Lane.MTE2, 300, 310)
    maker.slice("SET_FLAG", Lane.MTE2, 310, 311)
    maker.slice("MOV", Lane.MTE3, 0, 7)
    found = counted(maker)
    assert found[12].tolist() == [131]
    assert found[91].tolist() == [180]
    assert found[13].tolist() == [7]
    assert found[5].tolist() == [4]  # neither the wait nor the flag
    assert found[6].tolist() == [1]


def test_cores_are_told_apart() -> None:
    maker = Maker(blocks=3)
    maker.slice("VADD", Lane.VECTOR, 10, 30, core=2, dtype="float32", work=64)
    maker.slice("VADD", Lane.VECTOR, 20, 25, core=0, dtype="float32", work=64)
    assert counted(maker)[8].tolist() == [5, 0, 20]


def test_total_cycles_come_from_the_cores_or_their_instructions() -> None:
    maker = Maker(blocks=2)
    maker.core(0, start=100, end=900)
    maker.core(1, start=200, end=250)
    maker.slice("VADD", Lane.VECTOR, 400, 500)
    assert counted(maker).total_cycles.tolist() == [800, 50]
    maker.core(1, end=UNKNOWN)
    maker.slice("VADD", Lane.VECTOR, 450, 620, core=1)
    assert counted(maker).total_cycles.tolist() == [100, 170]


def test_a_core_without_instructions_has_no_cycles_where_the_cores_are_not_told() -> None:
    maker = Maker(blocks=2)
    maker.core(0, start=UNKNOWN)
    maker.slice("VADD", Lane.VECTOR, 5, 9)
    assert counted(maker).total_cycles.tolist() == [4, 0]


@pytest.mark.parametrize(
    ("text", "dtype", "event", "lanes"),
    [
        ("VADD", "float32", 75, 64), ("VADD", "float16", 76, 128), ("vmul", "bfloat16", 76, 128), ("VCONV", "float16", 77, 64),
        ("VEXP", "float16", 174, 32), ("VDIV", "half", 174, 32), ("VRSQRT", "float16", 76, 128), ("VADD", "int32", 78, 64),
        ("VAND", "int16", 186, 128), ("VADD", "int8", 79, 32), ("VCOPY", "float32", 79, 32), ("VTRANSPOSE", "float16", 79, 32),
    ],
)  # fmt: skip
def test_vector_work_by_type(text: str, dtype: str, event: int, lanes: int) -> None:
    maker = Maker()
    maker.slice(text, Lane.VECTOR, 0, 10, dtype=dtype, work=lanes * 3 + 1)
    maker.slice(text, Lane.VECTOR, 10, 20, dtype=dtype, work=lanes)
    found = counted(maker)
    assert found[event].tolist() == [5]
    assert found[1].tolist() == [5]
    others = {75, 76, 77, 174, 78, 186, 79} - {event} - ({75} if event == 76 else set())
    assert all(found[other].tolist() == [0] for other in others)
    assert found[75].tolist() == [5 if event in (75, 76) else 0]  # on A2 it counts those of event 76 too


def test_310p_has_fewer_operations_in_a_pass() -> None:
    maker = Maker()
    maker.slice("VADD", Lane.VECTOR, 0, 10, dtype="int32", work=64)
    maker.slice("VADD", Lane.VECTOR, 10, 20, dtype="int16", work=64)
    maker.slice("VADD", Lane.VECTOR, 20, 30, dtype="float16", work=128)
    found = counted(maker, P310)
    assert [found[event].tolist() for event in (78, 186, 76, 75, 1)] == [[4], [2], [1], [0], [7]]


def test_vector_work_of_unknown_type_or_size_is_not_known() -> None:
    maker = Maker(blocks=3)
    maker.slice("VADD", Lane.VECTOR, 0, 10, core=0, work=64)
    maker.slice("VADD", Lane.VECTOR, 0, 10, core=1, dtype="float32", work=UNKNOWN)
    maker.slice("VADD", Lane.VECTOR, 0, 10, core=2, dtype="float32", work=64)
    maker.slice("SET_FLAG", Lane.VECTOR, 10, 11, core=2)
    found = counted(maker)
    assert np.isnan(found[75][:2]).all() and found[75][2] == 1
    assert found[8].tolist() == [10, 10, 11]  # busy cycles are known all the same


def test_cube() -> None:
    maker = Maker("cube")
    first = maker.slice("MMAD", Lane.CUBE, 0, 100, dtype="float16", work=64 * 96 * 48)
    maker.slice("MMAD", Lane.CUBE, 100, 150, dtype="int8", work=16 * 16 * 32 + 1)
    second = 1
    maker.slice("WAIT_FLAG", Lane.CUBE, 150, 400)
    maker.unit(first, 0, 64 * 96 * 4, 72)
    maker.unit(second, 1024, 1024, 2)
    found = counted(maker)
    assert found[3].tolist() == [2]
    assert found[10].tolist() == [150]
    assert found[88].tolist() == [250]
    assert found[73].tolist() == found[1032].tolist() == [72]  # 2 * 64 * 96 * 48 operations over 8192
    assert found[74].tolist() == found[1033].tolist() == [2]
    assert found[27].tolist() == found[33].tolist() == [74]
    assert found[40].tolist() == [1]
    assert found[42].tolist() == [24 + 1]
    assert np.isnan(found[8]).all()  # no vector unit
    a5 = counted(maker, A5)
    assert [a5[event].tolist() for event in (810, 808, 809)] == [[150], [100], [50]]
    assert [a5[event].tolist() for event in (772, 774, 776, 778)] == [[592], [148], [25], [1]]


def test_cube_work_of_unknown_type() -> None:
    maker = Maker("cube")
    maker.slice("MMAD", Lane.CUBE, 0, 100, work=4096)
    found = counted(maker)
    assert np.isnan(found[73]).all() and np.isnan(found[1032]).all()
    assert np.isnan(found[42]).all()  # and no table of units
    assert np.isnan(counted(maker, A5)[808]).all()
    assert counted(maker, A5)[810].tolist() == [100]


def test_ways_of_data_on_a2() -> None:
    maker = Maker("mix")
    maker.move("MOV", Lane.MTE2, 0, 10, GM, L1, 8192, misses=16)
    maker.move("MOV", Lane.MTE2, 0, 10, GM, L0A, 512, misses=1)
    maker.move("LOAD", Lane.MTE1, 10, 20, L1, L0A, 4096)
    maker.move("LOAD", Lane.MTE1, 10, 20, L1, L0B, 1000)
    maker.move("FIX", Lane.FIXP, 20, 30, L0C, L1, 1024)
    maker.move("FIX", Lane.FIXP, 30, 40, L0C, GM, 2048, misses=4)
    maker.move("MOV", Lane.MTE3, 40, 50, L1, GM, 3072, misses=6)
    maker.move("MOV", Lane.MTE2, 0, 10, GM, UB, 300, core=1, hits=1)
    maker.move("MOV", Lane.MTE3, 0, 10, UB, GM, 130, core=1, hits=1)
    found = counted(maker)
    assert found[50][0] == 8192 / 256 + 1024 / 128
    assert found[518][0] == 8
    assert found[524][0] == 8 + 16
    assert found[19][0] * 4 == 16 + 24
    assert found[28][0] == (512 + 4096) / 256
    assert found[34][0] == 8  # 1000 / 128, rounded up
    assert found[49][0] == 32 + 8 + 24
    assert (found[1293] + found[1294])[0] == 64 + 4
    assert found[1292][0] == 16 + 24
    assert found[62].tolist()[1:] == [3, 0] and found[61].tolist()[1:] == [2, 0]
    assert np.isnan(found[62][0]) and np.isnan(found[50][1:]).all()
    assert found.paths["GM_L1"].tolist() == [8192, 0, 0]
    assert found.paths["GM_L0A"].tolist() == [512, 0, 0]
    assert found.paths["GM_L0B"].tolist() == [0, 0, 0]
    assert found.paths["UB_GM"].tolist() == [0, 130, 0]


def test_l2_on_a2() -> None:
    maker = Maker()
    maker.move("MOV", Lane.MTE2, 0, 10, GM, UB, 4096, hits=6, misses=2, victims=1)  # 32 words, 24 of them hit
    maker.move("MOV", Lane.MTE2, 10, 20, GM, UB, 128, misses=1)
    maker.move("MOV", Lane.MTE3, 20, 30, UB, GM, 2048, hits=1, misses=3, victims=2)
    found = counted(maker)
    assert found[1284].tolist() == [12] and found[1288].tolist() == [12]
    assert found[1286].tolist() == [5] and found[1290].tolist() == [4]  # nine words that missed
    assert found[1280].tolist() == [1] and found[1282].tolist() == [3]
    assert found[1283].tolist() == found[1287].tolist() == found[1291].tolist() == [0]
    assert found[156].tolist() == [3]


def test_l2_and_memory_on_a5() -> None:
    maker = Maker()
    maker.move("MOV", Lane.MTE2, 0, 10, GM, UB, 4096, hits=20, misses=12, victims=5)
    maker.move("MOV", Lane.MTE3, 20, 30, UB, GM, 1024, hits=8)
    found = counted(maker, A5)
    assert [found[event].tolist() for event in range(1060, 1072)] == [
        [20],
        [12],
        [5],
        [0],
        [0],
        [0],
        [8],
        [0],
        [0],
        [0],
        [0],
        [0],
    ]
    assert [found[event].tolist() for event in (1058, 1059, 516, 518)] == [[32], [8], [32], [8]]
    assert [found[event].tolist() for event in (1407, 1408)] == [[0], [0]]


def test_memory_of_310p() -> None:
    maker = Maker()
    maker.move("MOV", Lane.MTE2, 0, 10, GM, UB, 1000, hits=1, misses=1)
    maker.move("MOV", Lane.VECTOR, 10, 20, L0C, UB, 1024)
    maker.move("MOV", Lane.MTE3, 20, 30, UB, GM, 512, hits=1)
    found = counted(maker, P310)
    assert [found[event].tolist() for event in (18, 19, 62, 61, 39)] == [[2], [1], [63], [32], [4]]
    assert [found[event].tolist() for event in (106, 120, 121)] == [[2], [2], [1]]


def test_requests_of_the_vector_and_scalar_units() -> None:
    maker = Maker()
    one = maker.slice("VADD", Lane.VECTOR, 0, 10, dtype="float32", work=100)
    two = maker.slice("SCALAR_LOAD", Lane.SCALAR, 0, 10)
    maker.unit(one, 800, 400)
    maker.unit(two, 4, 0)
    found = counted(maker)
    assert [found[event].tolist() for event in (67, 68, 55, 56)] == [[4], [2], [1], [0]]
    assert [counted(maker, A5)[event].tolist() for event in (1393, 1394)] == [[4], [2]]
    assert [counted(maker, P310)[event].tolist() for event in (67, 68)] == [[25], [13]]


def test_scalar_figures_come_from_the_cores_table() -> None:
    maker = Maker(blocks=2)
    maker.core(0, scalar_busy=77, scalar_wait=5, single_issue=30, dual_issue=8, wait_instruction=4, stall_mte2=9, stall_vector=3,
               stall_ub=2, icache_requests=100, icache_misses=7)  # fmt: skip
    maker.slice("QUE_ALLOC", Lane.SCALAR, 10, 25, core=1)
    maker.slice("WAIT_FLAG", Lane.SCALAR, 30, 40, core=1)
    found = counted(maker)
    assert found[9].tolist() == [77, 15]
    assert found[87].tolist() == [5, 10]
    assert [found[event][0] for event in (112, 113, 114, 108, 111, 106, 84, 85)] == [30, 8, 4, 9, 3, 2, 100, 7]
    assert np.isnan([found[event][1] for event in (112, 113, 114, 108, 111, 106, 84, 85)]).all()


def test_waits_of_the_scalar_unit_by_flag() -> None:
    maker = Maker()
    flag = maker.slice("SET_FLAG", Lane.MTE2, 0, 1)
    maker.edge(flag, maker.slice("WAIT_FLAG", Lane.SCALAR, 10, 40), 3)
    maker.edge(flag, maker.slice("WAIT_FLAG", Lane.SCALAR, 50, 55), 3)
    maker.edge(flag, maker.slice("WAIT_FLAG", Lane.SCALAR, 60, 61), 9)
    maker.edge(flag, maker.slice("WAIT_FLAG", Lane.VECTOR, 10, 90), 3)  # not the scalar unit
    found = counted(maker)
    assert found[1795].tolist() == [35] and found[1781].tolist() == [1] and found[1792].tolist() == [0]


def test_bank_conflicts() -> None:
    maker = Maker()
    maker.slice("VADD", Lane.VECTOR, 0, 50, dtype="float32", work=64, bank_group=12, bank=5)
    maker.slice("VADD", Lane.VECTOR, 50, 99, dtype="float32", work=64, bank_group=3)
    assert [counted(maker)[event].tolist() for event in (100, 101, 102, 103)] == [[15], [5], [0], [0]]
    assert [counted(maker, A5)[event].tolist() for event in (1344, 1366, 1376)] == [[15], [5], [0]]


def test_the_units_of_a5() -> None:
    maker = Maker()
    maker.slice("VADD", Lane.VECTOR, 0, 50, dtype="float32", work=64)
    maker.slice("VEXP", Lane.VECTOR, 40, 80, dtype="float32", work=64)
    maker.slice("LDG", Lane.RVECLD, 90, 100, warp=0, threads=32)
    found = counted(maker, A5)
    assert [found[event].tolist() for event in (1281, 1282, 1283, 1284)] == [[90], [80], [40], [10]]
    assert np.isnan(found[1407]).all()  # SIMT loads went through a cache that a timeline does not hold


def test_what_a_vendor_dump_lacks_is_not_known() -> None:
    maker = Maker(source=Source.SIMULATOR)
    maker.slice("VADD", Lane.VECTOR, 0, 50, work=UNKNOWN, bank_group=UNKNOWN, bank=UNKNOWN)
    found = counted(maker)
    unknown = (1, 75, 61, 62, 67, 68, 84, 100, 101, 102, 103, 112, 1280, 1284, 1292)
    assert np.isnan([found[event] for event in unknown]).all()
    assert found[8].tolist() == [50]
    assert np.isnan(found.paths["UB_GM"]).all()


def test_a_transfer_with_unknown_hits_is_not_a_miss() -> None:
    maker = Maker(blocks=2, source=Source.SIMULATOR)
    maker.move("MOV", Lane.MTE2, 0, 10, GM, UB, 1024, hits=UNKNOWN, misses=UNKNOWN, victims=UNKNOWN)
    maker.move("MOV", Lane.MTE2, 0, 10, GM, UB, 1024, core=1, hits=1, misses=1)
    found = counted(maker)
    assert np.isnan(found[1284][0]) and found[1284][1] == 2
    assert found[62].tolist() == [8, 8]


def test_nothing_ran() -> None:
    for chip in (A2, A5, P310):
        found = counted(Maker(blocks=2), chip)
        for event in EVENTS[found.columns]:
            assert found[event.number].shape == (2,), event
        assert np.isnan(found[99999]).all()


@pytest.mark.parametrize("columns", ["A2", "A5", "310P"])
def test_every_event_has_one_rule_in_words(columns: str) -> None:
    numbers = [event.number for event in EVENTS[columns]]
    assert len(numbers) == len(set(numbers))
    assert all(event.meaning and event.rule for event in EVENTS[columns])
