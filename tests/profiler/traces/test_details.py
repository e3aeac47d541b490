"""Operands as text: all at once and one by one are the same."""

import numpy as np
import pytest

from npuscope.trace.timeline import DistinctTexts, detail_parts, distinct_details


@pytest.mark.parametrize("name", ["add_flags", "matmul_leaky_relu"])
def test_texts_of_a_kernel(example_timeline, name) -> None:
    details = example_timeline(name, "Ascend910B1").details
    which = np.random.default_rng(0).permutation(len(details))[: len(details) // 2]
    texts, place = distinct_details(details, which)
    assert [texts[number] for number in place] == [details[row] for row in which]
    assert len(texts) < which.size  # instructions in a loop share their text
    assert details[3:5] == [details[3], details[4]] and details[-1] == details[len(details) - 1]
    with pytest.raises(IndexError):
        details[len(details)]


@pytest.mark.parametrize("name", ["add_flags", "matmul_leaky_relu"])
def test_texts_in_pieces_are_the_texts(example_timeline, name) -> None:
    """The address in GM is the piece that differs, so copies of one line share their text."""
    timeline = example_timeline(name, "Ascend910B1")
    which = np.random.default_rng(1).permutation(len(timeline.details))
    parts = detail_parts(timeline.details, which)
    assert [parts.text(row) for row in range(which.size)] == [timeline.details[row] for row in which.tolist()]
    copies = np.flatnonzero(parts.number >= 0)
    texts = {timeline.details[row] for row in which[copies].tolist()}
    assert len(set(parts.which[copies].tolist())) < len(texts)


def test_operands_name_their_memories(example_timeline) -> None:
    timeline = example_timeline("add_flags", "Ascend910B1")
    texts = {timeline.steps[int(step)].text: timeline.details[row] for row, step in enumerate(timeline.slice("step"))}
    assert texts["MOV_OUT_TO_UB"].startswith("Dst:UB,XD:0x") and ",Src:OUT,XN:0x12c" in texts["MOV_OUT_TO_UB"]
    assert "lenBurst:8192,nBurst:1" in texts["MOV_OUT_TO_UB"]


def test_texts_that_are_plain_strings() -> None:
    for details in (["a", "b", "a"], DistinctTexts(["b", "a"], np.array([1, 0, 1]))):
        texts, place = distinct_details(details, np.array([2, 1, 2]))
        assert [texts[number] for number in place] == ["a", "b", "a"] and len(texts) == 2
        parts = detail_parts(details, np.array([1, 2]))
        assert [parts.text(0), parts.text(1)] == ["b", "a"]
    assert DistinctTexts(["b", "a"], np.array([1, 0, 1]))[1:] == ["b", "a"]
