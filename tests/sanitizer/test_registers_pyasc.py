"""The rows of the scenario catalogue about mask and mode registers (sanitizer.md 6.4, G01 to G07), as pyasc kernels
with clean twins."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest

Sanitize = Callable[..., Any]

ONE = """
@asc.jit
def kernel(x: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 256)
    b = asc.LocalTensor(asc.float32, asc.TPosition.VECOUT, 2048, 256)
{body}

kernel[{blocks}](np.zeros(256, np.float32))
"""
PARTIAL = "asc.set_vector_mask(0, 255, dtype=asc.float32, mode=asc.MaskMode.NORMAL)"
COUNTED = "asc.set_vector_mask(100, dtype=asc.float32, mode=asc.MaskMode.COUNTER)"
COUNT, NORM, RESET = "asc.set_mask_count()", "asc.set_mask_norm()", "asc.reset_mask()"
PARAMS = "asc.BinaryRepeatParams(1, 1, 1, 8, 8, 8)"
UNDER = f"asc.add(b, a, a, mask=64, repeat_times=2, repeat_params={PARAMS}, is_set_mask=False)"
OWN = f"asc.add(b, a, a, mask=16, repeat_times=2, repeat_params={PARAMS})"
WHOLE = "asc.add(b, a, a, 256)"
ALL_ONES = 2**64 - 1


@pytest.fixture
def one(sanitize: Sanitize) -> Sanitize:
    """Run the lines given as one kernel's body."""

    def run(*lines: str, blocks: int = 1, **settings: Any) -> Any:
        body = "\n".join("    " + line for line in lines)
        checked = sanitize(ONE.format(body=body, blocks=blocks), checks=("registers",), **settings)
        assert (checked.code, checked.launches) == (0, 1)
        return checked

    return run


def line_of(finding: Any) -> str:
    """The source line that a finding names."""
    frame = finding.frames[0]
    return linecache.getline(frame.file, frame.line).strip()


def left(checked: Any) -> list[tuple[str, int, int]]:
    """(register, expected, current) of the findings."""
    assert set(checked.kinds) <= {"register-not-reset"}
    facts = [finding.facts for finding in checked.findings]
    return [(fact["register"], fact["expected"], fact["current"]) for fact in facts]


def test_g01_partial_mask_without_a_reset(one: Sanitize) -> None:
    """G01: both words are named with their values, and the line that set them."""
    checked = one(PARTIAL, UNDER)
    assert left(checked) == [("VECTOR_MASK_0", ALL_ONES, 255), ("VECTOR_MASK_1", ALL_ONES, 0)]
    for finding in checked.findings:
        assert (finding.severity.word, line_of(finding), finding.cores) == ("warning", PARTIAL, ("AIV 0",))


def test_only_the_word_that_differs(one: Sanitize) -> None:
    """A mask that leaves the high word whole."""
    line = "asc.set_vector_mask(2**64 - 1, 15, dtype=asc.float16, mode=asc.MaskMode.NORMAL)"
    assert left(one(line, UNDER)) == [("VECTOR_MASK_0", ALL_ONES, 15)]


def test_all_cores_are_one_finding(one: Sanitize) -> None:
    """Cores are united and counted; with a block chosen only that one is looked at."""
    (finding, _) = one(PARTIAL, UNDER, blocks=3).findings
    assert (finding.count, finding.cores) == (3, ("AIV 0", "AIV 1", "AIV 2"))
    (finding, _) = one(PARTIAL, UNDER, blocks=3, block=2).findings
    assert finding.cores == ("AIV 2",)


def test_g02_counter_mode_never_undone(one: Sanitize) -> None:
    """G02: bit 56 of CTRL, and the element count in the mask."""
    checked = one(COUNT, COUNTED, UNDER)
    assert left(checked) == [
        ("VECTOR_MASK_0", ALL_ONES, 100), ("VECTOR_MASK_1", ALL_ONES, 0), ("CTRL", 0, 1 << 56),
    ]
    assert line_of(checked.findings[2]) == COUNT


def test_g03_reset_mask_does_not_leave_counter_mode(one: Sanitize) -> None:
    """G03: the words are back, the mode is not."""
    checked = one(COUNT, COUNTED, UNDER, RESET)
    assert left(checked) == [("CTRL", 0, 1 << 56)]
    assert "set_mask_norm, then reset_mask" in checked.findings[0].advice


@pytest.mark.parametrize(
    "lines",
    [
        (PARTIAL, UNDER, RESET),
        (COUNT, COUNTED, UNDER, NORM, RESET),
        (COUNT, COUNTED, UNDER, "asc.init_soc_state()"),
        (PARTIAL, UNDER, WHOLE),
        (OWN,),
        (WHOLE,),
        ("asc.set_atomic_add(asc.float32)", "asc.data_copy(x_gm, b, 64)", "asc.set_atomic_none()"),
    ],
    ids=["reset", "norm and reset", "init", "count form resets", "mask of a call", "count form", "atomic off"],
)
def test_g06_set_and_restored(one: Sanitize, lines: tuple[str, ...]) -> None:
    """G06: what is undone is clean, and so is what the library's own functions leave."""
    assert one(*lines).findings == []


def test_g05_other_registers(one: Sanitize) -> None:
    """G05: other bits of CTRL and the quantisation registers are no trap."""
    lines = ("asc.set_hf32_mode(True)", "asc.set_deq_scale(2.0)")
    assert one(WHOLE, *lines).findings == []


def test_atomic_mode_left_on(one: Sanitize) -> None:
    """The next kernel's copies would add."""
    checked = one("asc.set_atomic_add(asc.float32)", "asc.data_copy(x_gm, b, 64)")
    assert left(checked) == [("ATOMIC", 0, 1)]
    assert line_of(checked.findings[0]) == "asc.set_atomic_add(asc.float32)"


def test_g07_two_kernels(sanitize: Sanitize) -> None:
    """G07: the first kernel leaves a mask, the second takes it for whole: the first is blamed, and told what for."""
    checked = sanitize(
        f"""
        @asc.jit
        def first(x: asc.GlobalAddress):
            {PARTIAL}

        @asc.jit
        def second(x: asc.GlobalAddress):
            a = asc.LocalTensor(asc.float32, asc.TPosition.VECIN, 0, 256)
            b = asc.LocalTensor(asc.float32, asc.TPosition.VECOUT, 2048, 256)
            {UNDER}

        first[1](np.zeros(64, np.float32))
        second[1](np.zeros(64, np.float32))
        """,
        checks=("registers",),
    )
    assert checked.launches == 2
    assert {finding.kernel for finding in checked.findings} == {"first"}
    assert all("kernel that runs next" in finding.notes[0] for finding in checked.findings)


# -- the list of instructions under a mask -----------------------------------------------------------------------------


def listed(checked: Any) -> list[tuple[str, str, str, str]]:
    """(instruction, mode, high, low) of the findings."""
    return [
        (item.facts["instruction"], item.facts["mode"], item.facts["mask_high"], item.facts["mask_low"])
        for item in checked.findings if item.kind == "non-default-mask"
    ]


def test_g04_counter_mode(one: Sanitize) -> None:
    """G04 and the design's case: instruction, mode and mask value."""
    checked = one(COUNT, COUNTED, UNDER, NORM, RESET, trace_masks=True)
    assert listed(checked) == [("VADD", "Counter", "0x0", "0x64")]
    (finding,) = checked.findings
    assert (finding.severity.word, line_of(finding), finding.count) == ("advisory", UNDER, 1)


def test_normal_mode(one: Sanitize) -> None:
    """The design's case in normal mode; the instruction after the reset is not listed."""
    checked = one(PARTIAL, UNDER, RESET, UNDER, trace_masks=True)
    assert listed(checked) == [("VADD", "Normal", "0x0", "0xff")]


def test_one_finding_for_a_line_and_a_value(one: Sanitize) -> None:
    """A loop is one finding with a count; the mask of a call is a mask too."""
    checked = one("for i in range(5):", f"    {OWN}", trace_masks=True)
    assert listed(checked) == [("VADD", "Normal", "0x0", "0xffff")]
    assert checked.findings[0].count == 5


def test_not_asked_for(one: Sanitize) -> None:
    """Without the setting nothing is listed."""
    assert one(PARTIAL, UNDER, RESET).findings == []


def test_instruction_without_a_mask(one: Sanitize) -> None:
    """All lanes: nothing to list."""
    assert one(UNDER, trace_masks=True).findings == []
