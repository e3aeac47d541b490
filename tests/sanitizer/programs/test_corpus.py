"""Public bug reports: the right finding with the named facts, nothing else, and silence on the clean twin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from programs.tile_bench import Bench, Found

from npuscope.sanitizer.findings import Severity
from npuscope.sanitizer.suite import Settings

LOG = Settings(launch_log=True)


@pytest.fixture
def launch(bench: Bench) -> Any:
    """Launch an entry of the corpus; without advisories unless they are asked for."""
    kernels = bench.kernels("corpus_kernels")

    def run(name: str, *arguments: Any, advisories: bool = False, **how: Any) -> Found:
        found = bench.run(lambda: getattr(kernels, name)(*arguments), **how)
        kept = [item for item in found.findings if advisories or item.severity > Severity.ADVISORY]
        return replace(found, findings=kept)

    return run


CLEAN = [
    ("t02", (True,)), ("t03", (True,)), ("t04", (2,)), ("t06", (True,)), ("t08", ()), ("t09", ()), ("t10", (True,)),
    ("t11", (True,)), ("t15", (True,)), ("t16", ("described",)), ("t17", (64, 64)), ("t18", (2,)), ("t19", (4,)),
    ("t21", (64,)), ("t22", ()), ("r01", (128,)), ("r02", (True,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), CLEAN, ids=[name for name, _ in CLEAN])
def test_clean(launch: Any, name: str, arguments: tuple[Any, ...]) -> None:
    """The cured kernel: no check says anything, not even an advisory."""
    found = launch(name, *arguments, advisories=True)
    assert found.findings == [], found.text
    assert not found.limits


def test_t02_one_input_without_a_mask(launch: Any) -> None:
    """Only the last row leaves the tensor; that the others run into the next row is said."""
    finding = launch("t02").only("illegal-read")
    assert "4 elements are read past the end of gate (float32[5, 60])" in finding.summary
    assert finding.cores == ("program 4",)
    assert any("Rows before the last may run into the next one" in note for note in finding.notes)


def test_t03_rows_that_are_not_alive(launch: Any) -> None:
    """Rows 100 to 127 of the gather."""
    found = launch("t03")
    finding = found.only("illegal-read")
    assert "28 elements are read past the end of scales (float32[100])" in finding.summary
    assert "scales[100:128]" in found.text
    assert "lanes [36, 0] to [63, 63] of [64, 64]" in found.text


def test_t04_mask_in_local_coordinates(launch: Any) -> None:
    """Read and write in program 1, lanes 2 and 3; the launch's constexprs stand in the report."""
    found = launch("t04")
    assert found.kinds == ["illegal-read", "illegal-write"]
    for finding in found.findings:
        assert finding.cores == ("program 1",)
        assert "In program 1: lanes 2 to 3 of 4." in finding.notes
    assert "BLOCK_H=4" in found.text


def test_t06_scales_behind_the_end(launch: Any) -> None:
    """The load is named, and so is the first NaN's way in when asked for."""
    finding = launch("t06").only("illegal-read")
    assert "6 elements are read past the end of scales" in finding.summary
    assert "lanes 26 to 31 of 32" in finding.notes[0]


@pytest.mark.parametrize(("name", "lanes", "cure"), [
    ("t08", "96 masked-out lanes point past the end of pages", "tl.minimum(index, 31)"),
    ("t09", "64 masked-out lanes point before the start of source", "tl.maximum(index, 0)"),
])  # fmt: skip
def test_t08_t09_masked_lanes_on_ascend(launch: Any, name: str, lanes: str, cure: str) -> None:
    """With a chip chosen: one advisory with the cure; none without one (see test_clean)."""
    finding = launch(name, chip="Ascend910B1", advisories=True).only("masked-outside")
    assert finding.severity is Severity.ADVISORY
    assert lanes in finding.summary
    assert cure in finding.advice


def test_t09_cured(launch: Any) -> None:
    """The cure that is advised."""
    assert launch("t09", True, chip="Ascend910B1", advisories=True).findings == []


def test_t10_index_that_was_loaded(launch: Any) -> None:
    """The value, the tensor and the element that it came from."""
    finding = launch("t10").only("illegal-write")
    assert "1 element is written before the start of out (float32[8]): out[-1]" in finding.summary
    assert any("The address comes from tokens[1] = -1" in note for note in finding.notes)


def test_t11_32_bits(launch: Any) -> None:
    """The multiply with its operands, without the memory that the tensor would need."""
    found = launch("t11")
    assert set(found.kinds) == {"integer-overflow"}
    assert "1048575 * 6144 = 6442444800 does not fit int32 and becomes 2147477504." in found.text or (
        " * 6144 = " in found.text and "does not fit int32" in found.text
    )


def test_t15_tiles_larger_than_the_matrix(launch: Any) -> None:
    """Rows 16 to 31 of the last batch of A, columns past 40 in the last row of B."""
    found = launch("t15")
    assert found.kinds == ["illegal-read", "illegal-read"]
    first, second = sorted(found.findings, key=lambda finding: finding.owner.name)
    assert "past the end of a (float32[4, 16, 72])" in first.summary
    assert "a[4, 0, 0] first" in first.summary
    assert "lanes [16, 0] to [31, 31] of [32, 32]" in found.text
    assert "past the end of b (float32[4, 72, 40])" in second.summary
    assert all(finding.cores == ("program (3, 0)",) or finding.cores == ("program 3",) for finding in found.findings)


def test_t16_tile_wider_than_the_head(launch: Any) -> None:
    """By hand: only the last head leaves the tensor. A descriptor pads, unless its shape is a lie as well."""
    finding = launch("t16").only("illegal-read")
    assert "24 elements are read past the end of source (float32[3, 32, 40])" in finding.summary
    assert finding.cores == ("program (1, 2)",)
    lie = launch("t16", "too wide").only("illegal-read")
    assert lie.cores == ("program (1, 2)",)


def test_t16_block_pointer(launch: Any) -> None:
    """Outside the shape of the pointer in every program, outside the tensor in the last head; with the check clean."""
    if not hasattr(pytest.importorskip("triton.language.core"), "_block_ptr"):
        pytest.skip("this Triton has no block pointers")
    found = launch("t16_pointer", False)
    assert found.kinds == ["illegal-read", "outside-block"]
    outside = next(finding for finding in found.findings if finding.kind == "outside-block")
    assert "2,304 lanes of a block lie outside the shape" in outside.summary
    assert "lanes [0, 40] to [15, 63] of [16, 64]" in outside.notes[0]
    assert outside.facts["in_programs"] == 6
    illegal = next(finding for finding in found.findings if finding.kind == "illegal-read")
    assert illegal.cores == ("program (1, 2)",)
    assert launch("t16_pointer", True).findings == []


def test_t17_transpose_without_bounds(launch: Any) -> None:
    """Read and write; rows that run into the next one are also written by the program whose they are."""
    found = launch("t17")
    assert found.kinds == ["illegal-read", "illegal-write", "race-same-value"]
    assert "past the end of source (float32[48, 50])" in found.text
    assert "past the end of target (float32[50, 48])" in found.text


def test_t18_tile_that_should_have_been_skipped(launch: Any) -> None:
    """One element of the lengths in the last program, before all that follows from it."""
    found = launch("t18")
    first = found.findings[0]
    assert first.kind == "illegal-read"
    assert "1 element is read past the end of lengths (int32[3]): lengths[3]" in first.summary
    assert first.cores == ("program 2",)


def test_t19_short_metadata(launch: Any) -> None:
    """Argument, shape and grid."""
    found = launch("t19")
    finding = found.only("illegal-read")
    assert "lens (int32[3]): lens[3]" in finding.summary
    assert finding.cores == ("program 3",)
    assert "prefixes[4](" in finding.launched


def test_t21_wrong_stride(launch: Any) -> None:
    """The gap, the stride that the kernel uses and those of the view."""
    found = launch("t21")
    finding = found.only("illegal-read")
    assert "in the gaps between the rows of logits (float32[6, 48] with strides (64, 1))" in finding.summary
    assert "The address moves by 48 from program to program; the strides of logits are (64, 1)." in finding.notes


def test_t22_elements_left_out(launch: Any) -> None:
    """The elements are listed; the correct source is not blamed (see test_clean)."""
    finding = launch("t22", True, advisories=True).only("unwritten-output")
    assert finding.severity is Severity.ADVISORY
    assert "26 of 100 elements of target are left unwritten: 2-3, 10-11, 18-19" in finding.summary


def test_t22_read_by_a_later_launch(launch: Any) -> None:
    """What the first launch left out is uninitialised for the second."""
    finding = launch("t22_read_later").only("uninitialised-read")
    assert finding.kernel == "double"
    assert "26 elements of source are read that nothing has written, source[2] first" in finding.summary


def test_r01_shift_in_place(launch: Any) -> None:
    """Neighbouring programs at the load and the store."""
    found = launch("r01")
    assert len(found.findings) == 1
    finding = found.findings[0]
    assert finding.kind in ("race-raw", "race-war")
    assert {finding.access.opcode, finding.other.opcode} == {"tl.load", "tl.store"}
    assert "data[128]" in finding.summary


def test_r02_one_tensor_twice(launch: Any) -> None:
    """The report says that the arguments share storage."""
    found = launch("r02")
    assert len(found.findings) == 1
    assert found.findings[0].kind in ("race-raw", "race-war")
    assert "The arguments src and dst share storage." in found.findings[0].notes


def test_r06_result_written_over(launch: Any) -> None:
    """Across launches, on request: buffer and launches named; nothing without the request or with a read between."""
    finding = launch("r06", settings=LOG).only("lost-result")
    assert finding.severity is Severity.WARNING
    assert "100 elements of target that launch " in finding.summary
    assert "(fill, line " in finding.summary
    assert launch("r06").findings == []
    assert launch("r06", True, settings=LOG).findings == []
