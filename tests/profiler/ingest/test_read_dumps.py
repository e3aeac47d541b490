"""Folders of dumps become timelines: the scenarios T37 to T42 of opprof.md, and each event of its section 4.4."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npuscope.errors import UserError
from npuscope.npu.chip import Chip, load_chip
from npuscope.profiler.cores import core_names, sub_block_names
from npuscope.profiler.ingest import read_dumps
from npuscope.profiler.ingest.files import LARGEST
from npuscope.trace.schema import CoreType, Space
from npuscope.trace.timeline import UNKNOWN, EdgeKind, Lane, Source, Timeline

Dumps = Callable[..., Path]
A2, A5 = load_chip("Ascend910B1"), load_chip("Ascend950PR")
OBJECTS = Path(__file__).parent / "objects"
NO_CODE = "Failed to parse pc to code, maybe kernel missed debug_line information. If you need code call stack, please recompile kernel with -g option"


def line(tick: int, pc: int, pipe: str, name: str, operands: str = "", ident: int | None = None) -> str:
    """One line of a popped or retire log."""
    number = "" if ident is None else f" (ID: {ident:06d})"
    return f"[info] [{tick:08d}] (PC: 0x{pc:x}) {pipe:<9}: (Binary: 0x00000000){number} {name}  {operands}\n"


POPPED = line(10, 0x100, "SCALAR", "MOVK", "XD:X1=0x1") + line(12, 0x104, "MTE2", "MOV_OUT_TO_UB", "Src:OUT, id: 4")
RETIRED = line(11, 0x100, "SCALAR", "MOVK", "XD:X1=0x1") + line(90, 0x104, "MTE2", "MOV_OUT_TO_UB", "Src:OUT, id: 4")
CACHE = "[info] 5: lookup_tag is fetch req addr:0x100\n[info] 6: icache read address is 0x100, size is 0x80, type:1, last:1, status is MISS\n"


def slices(timeline: Timeline) -> list[tuple[str, Lane, int, int, int, int]]:
    """(core, lane, pc, start, end, number of the core) of each slice."""
    names = core_names(timeline.launch)
    return [
        (names[core], Lane(lane), timeline.steps[step].address, start, end)
        for core, lane, step, start, end in zip(
            *(timeline.slice(name).tolist() for name in ("core", "lane", "step", "start", "end")), strict=True
        )
    ]


def one(folder: Path, chip: Chip | None = A2) -> Timeline:
    (timeline,) = read_dumps(folder, chip)
    return timeline


def texts(timeline: Timeline, level: str = "") -> list[str]:
    return [loss.text for loss in timeline.losses if level in ("", loss.level)]


def test_a_core(dumps: Dumps) -> None:
    timeline = one(dumps(POPPED, RETIRED, core0__veccore0__icache_log__dump=CACHE))
    assert slices(timeline) == [
        ("core0.veccore0", Lane.SCALAR, 0x100, 10, 11),
        ("core0.veccore0", Lane.MTE2, 0x104, 12, 90),
        ("core0.veccore0", Lane.CACHEMISS, 0x100, 6, 7),
    ]
    assert list(timeline.details) == ["XD:X1=0x1", "Src:OUT, id: 4", "size is 0x80, type:1, last:1, status is MISS"]
    assert [step.text for step in timeline.steps] == ["MOVK", "0x100", "MOV_OUT_TO_UB"]
    assert (timeline.source, timeline.chip, timeline.mhz) == (Source.SIMULATOR, "Ascend910B1", 1850.0)
    assert (timeline.cycles, timeline.overhead) == (90, 6)
    assert timeline.slice("row").tolist() == [UNKNOWN] * 3
    assert (timeline.core("start")[0], timeline.core("end")[0], timeline.core("icache_misses")[0]) == (6, 90, 1)
    assert timeline.core("scalar_busy").tolist() == [1]
    assert timeline.core("scalar_wait").tolist() == [UNKNOWN]


def test_without_object_there_is_no_code(dumps: Dumps) -> None:  # T37
    timeline = one(dumps(POPPED, RETIRED, core0__veccore0__icache_log__dump=CACHE))
    assert all(step.site.frames == () for step in timeline.steps)
    assert texts(timeline, "warning") == [NO_CODE]
    assert not timeline.partial


def test_code_of_the_object(dumps: Dumps) -> None:
    folder = dumps(
        line(1, 0x5017, "SCALAR", "A") + line(2, 0x501D, "SCALAR", "B") + line(3, 0x9000, "SCALAR", "C"),
        line(2, 0x5017, "SCALAR", "A") + line(3, 0x501D, "SCALAR", "B") + line(4, 0x9000, "SCALAR", "C"),
        pc_start_addr__txt="0x5000\n",
        core0__veccore0__icache_log__dump=CACHE,
    )
    shutil.copy(OBJECTS / "linked.o", folder / "aicore_binary.o")
    timeline = one(folder)
    stacks = {
        step.text: [(frame.file, frame.line, frame.function) for frame in step.site.frames] for step in timeline.steps
    }
    assert stacks["A"] == [("/project/src/add.c", 5, "add_kernel")]
    assert stacks["B"] == [
        ("/project/src/tile.h", 3, "scaled"),
        ("/project/src/tile.h", 8, "both"),
        ("/project/src/add.c", 6, "add_kernel"),
    ]
    assert stacks["C"] == []
    assert timeline.launch.kernel == "add_kernel"
    assert NO_CODE not in texts(timeline)


def test_the_lowest_pc_is_the_start_where_nothing_says(dumps: Dumps) -> None:
    folder = dumps(
        line(1, 0x7000, "SCALAR", "A") + line(2, 0x7017, "SCALAR", "B"),
        line(2, 0x7000, "SCALAR", "A") + line(3, 0x7017, "SCALAR", "B"),
    )
    shutil.copy(OBJECTS / "relocatable.o", folder / "aicore_binary.o")
    assert [step.site.frames[0].line for step in one(folder).steps] == [4, 5]


def test_a_broken_object_is_a_warning(dumps: Dumps) -> None:
    folder = dumps(POPPED, RETIRED, aicore_binary__o="nonsense", core0__veccore0__icache_log__dump=CACHE)
    assert [text.startswith(NO_CODE) for text in texts(one(folder), "warning")] == [True]


@pytest.mark.parametrize("lacking", ["popped", "retired"])
def test_a_missing_log_of_one_core(dumps: Dumps, lacking: str) -> None:  # T38
    others = {
        "core1__veccore0__instr_popped_log__dump": POPPED,
        "core1__veccore0__instr_log__dump": RETIRED,
        "core0__veccore0__icache_log__dump": CACHE,
        "core1__veccore0__icache_log__dump": CACHE,
    }
    kind = {"popped": "instr_popped", "retired": "instr"}[lacking]
    del others[f"core1__veccore0__{kind}_log__dump"]
    timeline = one(dumps(POPPED, RETIRED, **others))
    assert {core for core, *_ in slices(timeline)} == {"core0.veccore0"}
    assert len(slices(timeline)) == 3
    assert texts(timeline, "error") == [
        f"Core core1.veccore0: {kind} log is missing; 2 instructions cannot be drawn, first pcs: 0x100, 0x104"
    ]
    assert timeline.partial
    (loss,) = [loss for loss in timeline.losses if loss.level == "error"]
    assert (loss.count, loss.addresses) == (2, (0x100, 0x104))


def test_an_error_names_ten_addresses(dumps: Dumps) -> None:
    many = "".join(line(tick, 0x100 + 4 * (tick % 30), "SCALAR", "ADD") for tick in range(60))
    folder = dumps(POPPED, RETIRED, core1__veccore0__instr_log__dump=many)
    (loss,) = [loss for loss in one(folder).losses if "core1" in loss.text]
    assert "; 60 instructions cannot be drawn, first pcs: 0x100, 0x104," in loss.text
    assert loss.text.endswith("0x124")
    assert len(loss.addresses) == 10


def test_without_cache_log_spans_are_lost(dumps: Dumps) -> None:  # T39
    timeline = one(dumps(POPPED, RETIRED))
    assert Lane.CACHEMISS not in timeline.slice("lane")
    assert texts(timeline, "error") == [
        "Core core0.veccore0: icache log is missing; 2 instructions cannot be drawn, first pcs: 0x100, 0x104"
    ]
    assert timeline.slice("fetch").tolist() == [UNKNOWN] * 2
    assert timeline.core("icache_misses").tolist() == [UNKNOWN]
    assert timeline.partial


def test_other_chips_have_no_spans_to_lose(dumps: Dumps) -> None:
    assert texts(one(dumps(POPPED, RETIRED), A5)) == [NO_CODE]


def test_parts_give_what_the_whole_gives(dumps: Dumps, tmp_path: Path) -> None:  # T40
    popped = "".join(line(tick, 0x100 + 4 * (tick % 7), "VEC", "VADD", f"n:{tick}") for tick in range(0, 500, 5))
    retired = "".join(line(tick + 3, 0x100 + 4 * (tick % 7), "VEC", "VADD", f"n:{tick}") for tick in range(0, 500, 5))
    whole = one(dumps(popped, retired))
    for name, text in (("instr_popped", popped), ("instr", retired)):
        for scheme in ("upwards", "downwards"):
            folder = tmp_path / f"{name}-{scheme}"
            folder.mkdir()
            for log, content in (("instr_popped", popped), ("instr", retired)):
                stem = f"core0.veccore0.{log}_log"
                if log != name:
                    (folder / f"{stem}.dump").write_text(content)
                    continue
                rows = text.splitlines(keepends=True)
                cuts = ["".join(rows[:30]), "".join(rows[30:90]), "".join(rows[90:])]
                # Numbers that go up with time, and a log that is rotated: the plain name has the newest lines.
                names = ["1.dump", "2.dump", "10.dump"] if scheme == "upwards" else ["2.dump", "1.dump", "dump"]
                for ending, part in zip(names, cuts, strict=True):
                    (folder / f"{stem}.{ending}").write_text(part)
            split = one(folder)
            assert slices(split) == slices(whole)
            assert list(split.details) == list(whole.details)


def test_windows_line_ends_change_nothing(dumps: Dumps) -> None:
    plain = one(dumps(POPPED, RETIRED, core0__veccore0__icache_log__dump=CACHE))
    with_returns = one(
        dumps(
            POPPED.replace("\n", "\r\n"),
            RETIRED.replace("\n", "\r\n"),
            core0__veccore0__icache_log__dump=CACHE.replace("\n", "\r\n"),
        )
    )
    assert slices(with_returns) == slices(plain)
    assert list(with_returns.details) == list(plain.details)


def test_more_pops_than_retirements(dumps: Dumps) -> None:  # T41
    popped = line(10, 0x100, "VEC", "VADD") + line(20, 0x104, "VEC", "VSUB") + line(30, 0x100, "VEC", "VADD")
    retired = line(15, 0x100, "VEC", "VADD") + line(25, 0x104, "VEC", "VSUB")
    timeline = one(dumps(popped, retired), A5)
    assert [(pc, start, end) for _, _, pc, start, end in slices(timeline)] == [(0x100, 10, 15), (0x104, 20, 25)]
    assert texts(timeline, "warning")[0] == (
        "Core core0.veccore0: 1 of 3 instructions have a pop and no retirement, first pcs: 0x100"
    )
    assert timeline.partial


def test_retirement_without_pop_and_before_it(dumps: Dumps) -> None:
    popped = line(10, 0x100, "VEC", "VADD") + line(40, 0x104, "VEC", "VSUB")
    retired = line(15, 0x100, "VEC", "VADD") + line(25, 0x104, "VEC", "VSUB") + line(50, 0x108, "VEC", "VSUB")
    timeline = one(dumps(popped, retired), A5)
    assert [pc for _, _, pc, *_ in slices(timeline)] == [0x100]
    assert texts(timeline, "warning")[:2] == [
        "Core core0.veccore0: 1 of 3 instructions have a retirement and no pop, first pcs: 0x108",
        "Core core0.veccore0: 1 of 2 instructions retire before they are popped, first pcs: 0x104",
    ]


def test_nothing_to_read(tmp_path: Path, dumps: Dumps) -> None:  # T42
    text = "Failed to get any available dump file to parse, please check"
    with pytest.raises(UserError, match=text):
        read_dumps(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UserError, match=text):
        read_dumps(tmp_path)
    with pytest.raises(UserError, match=text):
        read_dumps(dumps("garbage\n\x00\xff", "more garbage"))


def test_large_files_are_refused(dumps: Dumps) -> None:
    folder = dumps(POPPED, RETIRED, core1__veccore0__instr_log__dump=RETIRED)
    file = folder / "core1.veccore0.instr_popped_log.dump"
    with file.open("wb") as sparse:
        sparse.truncate(LARGEST + 1)
    timeline = one(folder)
    assert f"{file} is larger than 1 GB and is not read" in texts(timeline, "error")
    assert {core for core, *_ in slices(timeline)} == {"core0.veccore0"}
    for name in ("core0.veccore0.instr_log.dump", "core0.veccore0.instr_popped_log.dump"):
        (folder / name).unlink()
    with pytest.raises(UserError, match="is larger than 1 GB"):
        read_dumps(folder)


def test_an_empty_file(dumps: Dumps) -> None:
    folder = dumps(POPPED, RETIRED, core1__veccore0__instr_log__dump="", core1__veccore0__instr_popped_log__dump=POPPED)
    assert f"file is empty or not exist. splitFile: {folder / 'core1.veccore0.instr_log.dump'}" in texts(
        one(folder), "error"
    )


def test_a_last_line_that_is_cut_off(dumps: Dumps) -> None:
    timeline = one(dumps(POPPED + POPPED[:40], RETIRED))
    assert len(slices(timeline)) == 2
    assert "Core core0.veccore0: the last line of the instr_popped log is cut off and is left out" in texts(timeline)


def test_logs_with_ids_pair_by_id(dumps: Dumps) -> None:
    popped = line(10, 0x100, "VEC", "VADD", ident=1) + line(11, 0x100, "VEC", "VADD", ident=2)
    retired = line(20, 0x100, "VEC", "VADD", ident=2) + line(30, 0x100, "VEC", "VADD", ident=1)
    by_id = [(start, end) for *_, start, end in slices(one(dumps(popped, retired), A5))]
    by_pc = [(start, end) for *_, start, end in slices(one(dumps(popped, retired), A2))]
    assert by_id == [(10, 30), (11, 20)]
    assert by_pc == [(10, 20), (11, 30)]


def test_the_chip_that_is_likely(dumps: Dumps, tmp_path: Path) -> None:
    assert one(dumps(POPPED, RETIRED), None).chip == "Ascend910B1"
    with_ids = tmp_path / "ids"
    with_ids.mkdir()
    for name in ("instr_popped", "instr"):
        (with_ids / f"core0.veccore0.{name}_log.dump").write_text(line(1, 0x100, "VEC", "VADD", ident=1))
    assert one(with_ids, None).chip == "Ascend950PR"
    fused = tmp_path / "fused"
    fused.mkdir()
    for name in ("instr_popped", "instr"):
        (fused / f"core3_{name}_log.dump").write_text(line(1, 0x100, "VEC", "VADD"))
    timeline = one(fused, None)
    assert timeline.chip == "Ascend310P3"
    assert core_names(timeline.launch) == ["core3"]


def test_cores_are_called_what_they_call_themselves(dumps: Dumps) -> None:
    def read(register: str, value: int, tick: int) -> str:
        return line(tick, 0x100 + tick * 4, "SCALAR", "MOV_XD_SPR", f"XD:X1={value:#x}, SPR:{register},")

    vector = read("BLOCKID", 11, 1) + read("SUBBLOCKID", 1, 2)
    cube = read("BLOCKID", 11, 1)
    plain = line(1, 0x100, "SCALAR", "MOVK")
    folder = dumps(
        vector,
        vector,
        core0__cubecore0__instr_popped_log__dump=cube,
        core0__cubecore0__instr_log__dump=cube,
        core4__veccore0__instr_popped_log__dump=plain,
        core4__veccore0__instr_log__dump=plain,
    )
    timeline = one(folder)
    assert sorted(core_names(timeline.launch)) == ["core11.cubecore0", "core11.veccore1", "core4.veccore0"]
    assert sorted(sub_block_names(timeline.launch)) == [(4, "vector0"), (11, "cube0"), (11, "vector1")]
    assert {(core.type, core.block, core.sub_block) for core in timeline.launch.cores} == {
        (CoreType.AIC, 11, 0),
        (CoreType.AIV, 23, 1),
        (CoreType.AIV, 8, 0),
    }
    (limited,) = read_dumps(folder, A2, {4})
    assert core_names(limited.launch) == ["core4.veccore0"]
    with pytest.raises(UserError, match="none of the cores asked for is there"):
        read_dumps(folder, A2, {40})


def test_cores_without_kind_are_told_by_number(dumps: Dumps, tmp_path: Path) -> None:
    for number in (24, 25):
        for name in ("instr_popped", "instr"):
            (tmp_path / f"core{number}.{name}_log.dump").write_text(line(1, 0x100, "VEC", "VADD"))
    assert [core.type for core in one(tmp_path).launch.cores] == [CoreType.AIC, CoreType.AIV]


def test_scalar_spans(dumps: Dumps) -> None:
    popped = line(20, 0x108, "VEC", "VADD") + line(60, 0x108, "VEC", "VADD") + line(70, 0x200, "VEC", "VADD")
    retired = line(25, 0x108, "VEC", "VADD") + line(65, 0x108, "VEC", "VADD") + line(75, 0x200, "VEC", "VADD")
    cache = (
        "[info] 3: lookup_tag is fetch req addr:0x100\n"  # brings 0x100, 0x104, 0x108 and 0x10c
        "[info] 9: lookup_tag is fetch req addr:0xf8\n"  # 0xf8 to 0x104
        "[info] 30: lookup_tag is fetch req addr:0x108\n"
        "[info] 55: lookup_tag is fetch req addr:0x108\n"
    )
    control = "[info] 15: is_single_issue instr, pc:0x108\n[info] 50: ccu do issue success.issue isa pc :0x108\n"
    without = one(dumps(popped, retired, core0__veccore0__icache_log__dump=cache))
    assert without.slice("fetch").tolist() == [3, 55, UNKNOWN]
    assert without.slice("control").tolist() == [UNKNOWN] * 3
    assert texts(without, "info") == ["Core core0.veccore0: ccu log is missing; scalar spans are drawn in one piece"]
    both = one(dumps(popped, retired, core0__veccore0__ccu_log__dump=control))
    assert both.slice("control").tolist() == [15, 50, UNKNOWN]
    assert both.slice("fetch").tolist() == [3, 30, UNKNOWN]
    assert not both.partial


def test_control_that_comes_too_late_is_not_believed(dumps: Dumps) -> None:
    popped = "".join(line(tick, 0x100, "VEC", "VADD") for tick in (10, 20, 30))
    control = "[info] 5: is_single_issue instr, pc:0x100\n[info] 25: is_single_issue instr, pc:0x100\n[info] 26: is_single_issue instr, pc:0x100\n"
    timeline = one(dumps(popped, popped, core0__veccore0__ccu_log__dump=control))
    assert timeline.slice("control").tolist() == [5, UNKNOWN, UNKNOWN]


def test_flags(dumps: Dumps) -> None:
    def flag(tick: int, pc: int, pipe: str, name: str, number: int) -> str:
        return line(tick, pc, pipe, name, f"PIPE:MTE2, TRIGGER PIPE:VEC, FLAG ID:{number}, ")

    rows = [
        (10, 0x100, "MTE2", "SET_FLAG", 0),
        (11, 0x104, "MTE2", "SET_FLAG", 3),
        (12, 0x100, "MTE2", "SET_FLAG", 0),
        (13, 0x108, "VEC", "WAIT_FLAG", 3),
        (14, 0x10C, "VEC", "WAIT_FLAG", 0),
        (15, 0x10C, "VEC", "WAIT_FLAG", 0),
        (16, 0x110, "VEC", "WAIT_FLAG", 5),
    ]
    text = "".join(flag(*row) for row in rows)
    timeline = one(dumps(text, text))
    assert sorted(timeline.edges.T.tolist()) == [
        [0, 4, EdgeKind.FLAG, 0],
        [1, 3, EdgeKind.FLAG, 3],
        [2, 5, EdgeKind.FLAG, 0],
    ]
    compact = one(dumps(text.replace(", ", ",").replace(" PIPE", "PIPE").replace("FLAG ID", "FLAGID"), text))
    assert sorted(compact.edges.T.tolist()) == sorted(timeline.edges.T.tolist())


def test_flags_between_the_cores_of_a_block(dumps: Dumps) -> None:
    """Flag 5 of the cube core is flag 5 of vector core 0, flag 21 is flag 5 of vector core 1."""
    cube = line(10, 0x100, "FIXP", "SET_INTRA_BLOCK", "PIPE:FIXP, sync_id:5,") + line(
        20, 0x104, "FIXP", "SET_INTRA_BLOCKI", "PIPE:FIXP, sync_id:21,"
    )
    cube += line(30, 0x108, "M", "WAIT_INTRA_BLOCK", "PIPE:M, sync_id:21,")
    first = line(15, 0x200, "VEC", "WAIT_INTRA_BLOCK", "PIPE:VEC, sync_id:5,")
    second = line(25, 0x200, "VEC", "WAIT_INTRA_BLOCK", "PIPE:VEC, sync_id:5,") + line(
        26, 0x204, "MTE3", "SET_INTRA_BLOCK", "PIPE:MTE3, sync_id:5,"
    )
    folder = dumps(
        first,
        first,
        core0__cubecore0__instr_popped_log__dump=cube,
        core0__cubecore0__instr_log__dump=cube,
        core0__veccore1__instr_popped_log__dump=second,
        core0__veccore1__instr_log__dump=second,
    )
    timeline = one(folder, A5)
    names, starts = core_names(timeline.launch), timeline.slice("start")
    edges = {
        (
            names[timeline.slice("core")[source]],
            int(starts[source]),
            names[timeline.slice("core")[target]],
            int(starts[target]),
            kind,
            number,
        )
        for source, target, kind, number in timeline.edges.T.tolist()
    }
    assert edges == {
        ("core0.cubecore0", 10, "core0.veccore0", 15, EdgeKind.CROSS, 5),
        ("core0.cubecore0", 20, "core0.veccore1", 25, EdgeKind.CROSS, 21),
        ("core0.veccore1", 26, "core0.cubecore0", 30, EdgeKind.CROSS, 5),
    }


def test_warps(dumps: Dumps) -> None:
    popped = line(10, 0x100, "RVECEX", "VADD", "R4,R2,R3 [warpId:5] [schId:1]", 1) + line(
        11, 0x104, "RVECEX", "VADD", "", 2
    )
    popped += line(12, 0x108, "VEC", "VADD", "a", 3)
    retired = line(
        20, 0x100, "RVECEX", "VADD", "R4,R2,R3 [warpId:5],[schId:1],[prdctMask:ffffffff],[execMask:0000ffff]", 1
    )
    retired += line(21, 0x104, "RVECEX", "VADD", '{"core_type":"AIV0","sch_id":3,"warp_id":7}', 2) + line(
        22, 0x108, "VEC", "VADD", "a", 3
    )
    timeline = one(dumps(popped, retired), A5)
    assert timeline.slice("warp").tolist() == [5, 7, UNKNOWN]
    assert timeline.slice("threads").tolist() == [16, UNKNOWN, UNKNOWN]
    assert timeline.details[1] == '{"core_type":"AIV0","sch_id":3,"warp_id":7}'


def mark(tick: int, base: int, number: int, pc: int = 0x100) -> str:
    return line(tick, pc, "SCALAR", "MOV_SPR_XN", f"SPR:LPCNT, XN:X6=0x{base + number:x},")


def marks(timeline: Timeline) -> list[tuple[str, int, int]]:
    return [
        (timeline.steps[step].text, start, end)
        for step, lane, start, end in zip(
            *(timeline.slice(n).tolist() for n in ("step", "lane", "start", "end")), strict=True
        )
        if lane == Lane.USERMARK
    ]


def test_user_marks(dumps: Dumps) -> None:
    begin, end = 0x80000000, 0xC0000000
    nop = line(13, 0x104, "MTE2", "NOP_PIPE") + line(14, 0x108, "MTE3", "NOP_PIPE")
    late = line(43, 0x204, "MTE2", "NOP_PIPE") + line(44, 0x208, "MTE3", "NOP_PIPE")
    count = line(45, 0x300, "SCALAR", "MOV_SPR_XN", "SPR:LPCNT, XN:X6=0x10,")  # an ordinary loop count
    retired = mark(12, begin, 1) + nop + mark(20, begin, 2) + mark(30, end, 2) + mark(42, end, 1) + late + count
    popped = mark(11, begin, 1) + nop + mark(19, begin, 2) + mark(29, end, 2) + mark(41, end, 1) + late + count
    timeline = one(dumps(popped, retired))
    assert sorted(marks(timeline)) == [("Mark 0x1", 13, 44), ("Mark 0x2", 20, 30)]
    assert [pc for _, lane, pc, *_ in slices(timeline) if lane is Lane.SCALAR] == [0x300]


def test_marks_of_newer_chips(dumps: Dumps) -> None:
    text = "".join(
        line(tick, 0x100 + tick, "FLOWCTRL", "DFX_REGION", operands, number)
        for number, (tick, operands) in enumerate(
            [
                (100, '{"xt_value":"0x401"}'),
                (140, '{"xt_value":"0xc01"}'),
                (200, '{"xt_value":"0x7ff"}'),
                (280, '{"xt_value":"0xfff"}'),
                (300, '{"xt_value":"0x800"}'),
                (310, "PIPE:SCALAR, XT:X8=0x401"),
                (320, '{"xt_value":"0x1000"}'),
            ]
        )
    )
    timeline = one(dumps(text, text), A5)
    assert marks(timeline) == [("Mark 0x1", 100, 140), ("Mark 0x3ff", 200, 280)]
    assert timeline.slice("lane").tolist().count(Lane.FLOWCTRL) == 3


@pytest.mark.parametrize(
    "steps", [[(0x80000000, 1), (0x80000000, 1), (0xC0000000, 1)], [(0xC0000000, 1)], [(0x80000000, 1)]]
)
def test_marks_that_do_not_balance(dumps: Dumps, steps: list[tuple[int, int]]) -> None:
    text = "".join(mark(10 * place, base, number) for place, (base, number) in enumerate(steps, 1))
    good = mark(1, 0x80000000, 3) + mark(90, 0xC0000000, 3)
    timeline = one(dumps(text + good, text + good), A5)
    assert marks(timeline) == [("Mark 0x3", 1, 90)]
    assert texts(timeline)[0] == (
        "Failed to create userMark Mark 0x1 for core0.veccore0 because loop nesting exists or TraceStart is not equal to TraceStop."
    )


@pytest.mark.parametrize(
    ("pipe", "name", "operands", "moved"),
    [
        ("MTE2", "MOV_OUT_TO_UB", "XD:X3=0x400,XN:X1=0x1200000,lenBurst:0x10", 16 * 32),
        ("MTE2", "MOV_OUT_TO_UB", "lenBurst:0x10, nBurst:3", 16 * 32 * 3),
        ("MTE2", "MOV_OUT_TO_UB_ALIGN", "nBurst:2, lenBurst:100", 200),
        # XM holds nBurst = 1 and lenBurst = 256 blocks of 32 bytes.
        ("MTE2", "MOV_OUT_TO_UB", "Src:OUT, Dst:UB, XD:X14=0x2000, XN:X11=0x11321800, XM:X15=0x1000010,  id: 4", 8192),
        ("MTE3", "MOV_UB_TO_OUT", "XM:X15=0x1000020", 16384),
        ("MTE2", "MOV_OUT_TO_UB_ALIGN_V2", '{"processed_bytes":8192,"src_mem":"OUT"}', 8192),
        ("MTE2", "MOV_OUT_TO_L1_MULTI_ND2NZ", "XM:X15=0x1000010", UNKNOWN),
        ("MTE2", "SET_FLAG", "PIPE:MTE2, TRIGGER PIPE:VEC, FLAG ID:0", 0),
        ("VEC", "VADD", "lenBurst:3", 0),
        ("SCALAR", "ADD", "", 0),
    ],
)
def test_process_bytes(dumps: Dumps, pipe: str, name: str, operands: str, moved: int) -> None:
    text = line(1, 0x100, pipe, name, operands)
    assert one(dumps(text, text), A5).slice("bytes").tolist() == [moved]


@pytest.mark.parametrize(
    ("operands", "dtype"),
    [
        ("Dtype:F32", "float32"),
        ("dtype:S64, XD", "int64"),
        ("Dtype: BF16", "bfloat16"),
        ("dtype:B64", ""),
        ("", ""),
        ("Dtype:U8", "uint8"),
    ],
)
def test_element_types(dumps: Dumps, operands: str, dtype: str) -> None:
    text = line(1, 0x100, "VEC", "VADD", operands)
    assert one(dumps(text, text), A5).steps[0].dtype == dtype


MOVES = (
    "[info] 19333: BRIF send_req, addr: 0x10f74400, size: 256, tag_id: 4, instr_id: 4, req_id: 5259\n"
    "[info] 19687: BRIF recv_rsp, uop_cnt: 1, tnx_id: 0, tag_id: 4, instr_id: 4, req_id: 5259\n"
    "[info] 19689: BRIF recv_rsp, uop_cnt: 2, tnx_id: 1, tag_id: 4, instr_id: 4, req_id: 5259\n"
    "[info] 19335: MOV_OUT_TO_UB, set_cmd_done\n"
    "[info] 19703: UB1WIF send_req, addr: 0x0, size: 128, tag_id: 4, instr_id: 4, req_id: 5985\n"
    "[info] 19710: UB1WIF recv_rsp, addr: 0x80, size: 128, tag_id: 4, instr_id: 4, req_id: 5986\n"
    "[info] 20000: UB1RIF send_req, addr: 0x0, size: 64, tag_id: 5, instr_id: 9, req_id: 6000\n"
    "[info] 20010: BWIF send_req, addr: 0x5000, size: 64, tag_id: 5, instr_id: 9, req_id: 6001\n"
    "[info] 20090: BWIF recv_rsp, size: 64, tag_id: 5, instr_id: 9, gid: 6001\n"
    "[info] 20100: BRIF send_req, addr: 0x6000, size: 32, tag_id: 6, instr_id: 77, req_id: 7000\n"
)


def test_transfers(dumps: Dumps) -> None:
    instructions = line(19300, 0x100, "MTE2", "MOV_OUT_TO_UB_X", "Src:OUT, id: 4") + line(
        19990, 0x104, "MTE3", "MOV_UB_TO_OUT_X", "id: 9"
    )
    folder = dumps(
        POPPED,
        RETIRED,  # core0.veccore0 has an instruction 4, too: UB1 is not its memory
        core0__veccore1__instr_popped_log__dump=instructions,
        core0__veccore1__instr_log__dump=instructions.replace("[000", "[002"),
        core0__mte_log__dump=MOVES,
    )
    timeline = one(folder)
    first = int((timeline.slice("core") == 0).sum())
    names = ("slice", "source", "target", "address", "bytes", "requests", "hits", "start", "end")
    assert [list(row) for row in zip(*(timeline.transfer(name).tolist() for name in names), strict=True)] == [
        [first, Space.GM, Space.UB, 0x10F74400, 256, 1, UNKNOWN, 19333, 19689],
        [first + 1, Space.UB, Space.GM, 0x5000, 64, 1, UNKNOWN, 20010, 20090],
    ]
    assert timeline.slice("bytes").tolist() == [0, UNKNOWN, 256, 64]
    assert "Core core0: 1 of 3 transfers belong to no instruction and are left out" in texts(timeline)


def test_a_short_transfer_log_is_no_log(dumps: Dumps) -> None:
    timeline = one(dumps(POPPED, RETIRED, core0__mte_log__dump=MOVES[:400]))
    assert timeline.transfers.shape[1] == 0


def test_folders_below_are_launches(tmp_path: Path) -> None:
    for place in ("add/0/dump", "add/1/dump", "mul/0/dump"):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        for name, text in (("instr_popped", POPPED), ("instr", RETIRED)):
            (folder / f"core0.veccore0.{name}_log.dump").write_text(text)
    found = read_dumps(tmp_path, A2)
    assert [(timeline.launch.kernel, timeline.launch.index) for timeline in found] == [
        ("add", 0),
        ("add", 1),
        ("mul", 2),
    ]


def test_an_unreadable_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        read_dumps(tmp_path / "absent")


@pytest.mark.parametrize("seed", range(30))
def test_broken_bytes_are_never_a_traceback(dumps: Dumps, seed: int) -> None:
    """Bytes of every log are overwritten, removed and doubled; what is left is read, or one line says why not."""
    random = np.random.default_rng(seed)
    folder = dumps(
        POPPED * 8 + mark(3, 0x80000000, 1),
        RETIRED * 8 + mark(3, 0x80000000, 1),
        core0__veccore0__icache_log__dump=CACHE * 8,
        core0__veccore0__ccu_log__dump="[info] 5: is_single_issue instr, pc:0x104\n" * 8,
        core0__mte_log__dump=MOVES.replace("UB1", "UB0"),
    )
    for file in sorted(folder.iterdir()):
        content = bytearray(file.read_bytes())
        for _ in range(int(random.integers(1, 40))):
            at, kind = int(random.integers(len(content))), int(random.integers(4))
            if kind == 0:
                content[at] = int(random.integers(256))
            elif kind == 1:
                del content[at : at + int(random.integers(30))]
            elif kind == 2:
                content[at:at] = content[at : at + 50]
            else:
                content[at:at] = b"9" * 30
        file.write_bytes(content)
    try:
        timeline = one(folder, A2)
    except UserError as error:
        assert "\n" not in str(error)
        return
    assert (timeline.slice("start") <= timeline.slice("end")).all()
    assert len(list(timeline.details)) == timeline.slices.shape[1]
    assert timeline.transfers.shape[1] == 0 or timeline.transfer("slice").max() < timeline.slices.shape[1]
