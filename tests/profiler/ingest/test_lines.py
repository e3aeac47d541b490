"""Every kind of line, one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from npuscope.profiler.ingest import scan
from npuscope.profiler.ingest.lanes import lane_of
from npuscope.profiler.ingest.lines import Lines, read_lines
from npuscope.profiler.ingest.scalar import read_points
from npuscope.trace.timeline import Lane


def lines_of(tmp_path: Path, text: str) -> Lines:
    file = tmp_path / "core0.veccore0.instr_log.dump"
    file.write_bytes(text.encode())
    return read_lines([file])


PLAIN = "[info] [00001234](PC: 0x10d0d040) MTE2    : (Binary: 0x6a000012) (ID: 17) MOV_OUT_TO_UB  XD:X3=0x400,XN:X1=0x1200000,lenBurst:0x10"


@pytest.mark.parametrize(
    ("line", "tick", "pc", "ident", "word", "detail"),
    [
        (PLAIN, 1234, 0x10D0D040, 17, ("MTE2", "MOV_OUT_TO_UB"), "XD:X3=0x400,XN:X1=0x1200000,lenBurst:0x10"),
        # A blank before the parenthesis, no ID, a comma at the end: as logs of 2201 have it.
        (
            "[info] [00002009] (PC: 0x10d0d378) MTE2     : (Binary: 0x40a210bc) SET_FLAG  PIPE:MTE2, TRIGGER PIPE:VEC, FLAG ID:0, ",
            2009,
            0x10D0D378,
            -1,
            ("MTE2", "SET_FLAG"),
            "PIPE:MTE2, TRIGGER PIPE:VEC, FLAG ID:0",
        ),
        ("[7](PC: 0xAB)SCALAR : (Binary: 0x00000001) NOP", 7, 0xAB, -1, ("SCALAR", "NOP"), ""),
        (
            "[info] [9](PC: 0x9000d10628)@CORE12 VEC ISSUE : (Binary: 0x1) ADD  a",
            9,
            0x9000D10628,
            -1,
            ("VEC", "ADD"),
            "a",
        ),
        ("[info] [9](PC: 0x10)@CORE1 SCALAR IB ISSUE : (Binary: 0x1) ADD", 9, 16, -1, ("SCALAR", "ADD"), ""),
        (
            '[info] [00000120] (PC: 0x9000d0d348) RVECST   : (Binary: 0x120800041c100480 ) (ID: 000042) SIMT_STS  {"warp_id":7}',
            120,
            0x9000D0D348,
            42,
            ("RVECST", "SIMT_STS"),
            '{"warp_id":7}',
        ),
        (
            "[info] [00000345](PC: 0x10cfa024) SCALAR : (Binary: 0x077b0004) (ID: 000736) scalar_movk_xd_imme16(x[29]= 0x3fb8, imme16:0x4 ) ",
            345,
            0x10CFA024,
            736,
            ("SCALAR", "scalar_movk_xd_imme16"),
            "(x[29]= 0x3fb8, imme16:0x4 )",
        ),
        (
            "[info] [5] (PC: 0x4) RVECEX : (Binary: 0x82180782) (ID: 000103) MOV_OUT_TO_UB_ALIGN.b16 Dtype: F32",
            5,
            4,
            103,
            ("RVECEX", "MOV_OUT_TO_UB_ALIGN.b16"),
            "Dtype: F32",
        ),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_an_instruction(
    tmp_path: Path, line: str, tick: int, pc: int, ident: int, word: tuple[str, str], detail: str, ending: str
) -> None:
    lines = lines_of(tmp_path, line + ending)
    assert len(lines) == 1
    assert (lines.tick[0], lines.pc[0], lines.ident[0]) == (tick, pc, ident)
    assert lines.words[lines.word[0]] == word
    assert lines.detail(0) == detail
    assert not lines.cut


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\r",
        "[info]",
        "[info] [12",
        "[info] [12]",
        "[info] [12](PC: ",
        "[info] [12](PC: 0x",
        "[info] [12](PC: 0x10",
        "[info] [12](PC: 0x10)",
        "[info] [12](PC: 0x10) MTE2",
        "[info] [12](PC: 0x10) MTE2 : (Bin",
        "[info] [12](PC: 0x10) MTE2 : (Binary: 0x1",
        "[info] [12](PC: 0x10) MTE2 : (Binary: 0x1)",
        "[info] [12](PC: 0x10) MTE2 : (Binary: 0x1) (ID: 5) ",
        "[info] [xy](PC: 0x10) MTE2 : (Binary: 0x1) ADD",
        "[info] [12](PC: zz) MTE2 : (Binary: 0x1) ADD",
        "[info] [00001234](PC: 0x10d0d040) MTE2 : (Binary: 0x6a000012) (ID: 17) MOV_OUT_TO_UB  X:1 poped from IQ",
        "[info] 812: icache read address is 0x10d0d080",
        "\x00\xff garbage",
    ],
)
def test_what_is_no_instruction_has_no_row(tmp_path: Path, line: str) -> None:
    lines = lines_of(tmp_path, f"{PLAIN}\n{line}\n{PLAIN}\n")
    assert lines.tick.tolist() == [1234, 1234]


def test_words_are_numbered_by_pipe_and_mnemonic(tmp_path: Path) -> None:
    text = "".join(
        f"[info] [{tick}](PC: 0x4) {pipe} : (Binary: 0x1) {name}\n"
        for tick, (pipe, name) in enumerate([("VEC", "ADD"), ("VEC", "SUB"), ("M", "ADD"), ("VEC", "ADD")])
    )
    lines = lines_of(tmp_path, text)
    assert lines.words == [("VEC", "ADD"), ("VEC", "SUB"), ("M", "ADD")]
    assert lines.word.tolist() == [0, 1, 2, 0]


def test_many_words_are_told_apart(tmp_path: Path) -> None:
    text = "".join(f"[info] [{n}](PC: 0x4) VEC : (Binary: 0x1) NAME_{n % 3000}\n" for n in range(6000))
    lines = lines_of(tmp_path, text)
    assert len(lines.words) == 3000
    assert [lines.words[word][1] for word in lines.word[2990:3010]] == [f"NAME_{n % 3000}" for n in range(2990, 3010)]


def test_a_cut_last_line_is_told(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, f"{PLAIN}\n{PLAIN[:50]}")
    assert len(lines) == 1 and lines.cut


def test_parts_are_one_text(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text(f"{PLAIN}\n{PLAIN[:20]}")  # cut in the middle of a line
    second.write_text(f"{PLAIN[20:]}\n{PLAIN}")
    assert len(read_lines([first, second])) == 3
    first.write_text(PLAIN)  # ends with a line that lacks its newline
    second.write_text(PLAIN)
    assert len(read_lines([first, second])) == 2


def test_points_of_caches_and_control_units(tmp_path: Path) -> None:
    file = tmp_path / "core0.veccore0.icache_log.dump"
    file.write_text(
        "[info] 812: icache read address is 0x10d0d080, size is 0x80, type:1, last:1, status is MISS\r\n"
        "[info] 813: icache read address is 0x10d0d080, size is 0x80, type:1, last:1, status is HIT\n"
        "[info] 790: lookup_tag is fetch req addr:0x10d0d040\n"
        "[info] @2355: icache read address is 0x10cfa100, size is 0x00000100, status is MISS\n"
        "[info] [00002356]: icache read address is 0x10cfa200, size is 0x00000100, status is MISS\n"
        "[info] 801: is_single_issue instr, pc:0x10d0d044\n"
        "[info] 802: ccu do issue success.issue isa pc :0x10d0d048\n"
        "[info] 803: hit pc send to ibuffer,pc:0x13dbf0f0,gid:2a3.\n"
        "nonsense\n[info] 9: lookup_tag is fetch req addr:"
    )
    text, points = read_points([file])
    assert points[:3].T.tolist() == [
        [812, scan.MISS, 0x10D0D080],
        [790, scan.FETCH, 0x10D0D040],
        [2355, scan.MISS, 0x10CFA100],
        [2356, scan.MISS, 0x10CFA200],
        [801, scan.CONTROL, 0x10D0D044],
        [802, scan.CONTROL, 0x10D0D048],
    ]
    assert text.word(int(points[scan.POINT_START, 0]), int(points[scan.POINT_END, 0])) == (
        "size is 0x80, type:1, last:1, status is MISS"
    )


def test_interfaces_of_transfer_units() -> None:
    text = (
        b"[info] 1300: BRIF send_req, addr: 0x4000, size: 256, tag_id: 1, instr_id: 17, req_id: 3\n"
        b"[info] 1400: core0.UB1WIF.x recv_rsp, addr: 0x0, size: 128, instr_id: 17, gid: 9.\r\n"
        b"[info] 1401: L0AWIF send_req, instr_id: 2\n"
        b"[info] 19335: MOV_OUT_TO_UB, set_cmd_done\n"
        b"[info] 1402: BWIF send_req, size: 1\n"  # names no instruction
        b"[info] 1403: L1RIF\n"
    )
    moves = scan.scan_moves(np.frombuffer(bytearray(text), np.uint8))
    assert moves.T.tolist() == [
        [1300, scan.GM_UNIT, 0, 0x4000, 256, 17, 3, 1],
        [1400, scan.UB_UNIT + 1, 1, 0, 128, 17, 9, -1],
        [1401, 2, 1, -1, -1, 2, -1, -1],
    ]


@pytest.mark.parametrize(
    ("pipe", "mnemonic", "lane"),
    [
        ("VEC", "VADD", Lane.VECTOR),
        ("VEC0", "VADD", Lane.VECTOR),
        ("VECTOR0", "VADD", Lane.VECTOR),
        ("FC", "BAR", Lane.FLOWCTRL),
        ("FIX_PIPE", "FIX", Lane.FIXP),
        ("ISSUE", "X", Lane.EVENT),
        ("MTE1", "LOAD", Lane.MTE1),
        ("CUBE", "MMAD", Lane.CUBE),
        ("RVECEX", "RV_VADD", Lane.RVECEX),
        ("SCALARLDST", "LD", Lane.SCALARLDST),
        ("X9", "scalar_ld_x", Lane.SCALAR),
        ("X9", "my_scalar_st", Lane.SCALAR),
        ("X9", "ADD", Lane.ALL),
        ("PUSHQ", "ADD", Lane.ALL),
    ],
)
def test_what_pipes_are_called(pipe: str, mnemonic: str, lane: Lane) -> None:
    assert lane_of(pipe, mnemonic) is lane
