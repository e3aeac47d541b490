"""Each kind of mistake that kernels are known for is named at its line, with its facts; correct kernels stay silent."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from programs.tile_bench import Bench

BUGS = [
    # launches, class, a part of the line, parts of the summary, parts of the report
    ("reads_past_the_end", "illegal-read", "tl.load(source", "6 elements are read past the end of source (float32[250])",
     ["source[250] first", "lanes 58 to 63 of 64", "Once in program 3.", "scale[4](", "BLOCK=64"]),
    ("writes_past_the_end", "illegal-write", "tl.store(target", "6 elements are written past the end of target",
     ["target[250:256]", "mask=offsets < 250"]),
    ("reads_before_the_start", "illegal-read", "tl.load(source", "3 elements are read before the start of source",
     ["source[-3] first", "lanes 0 to 2 of 64", "Once in program 0."]),
    ("reads_a_neighbour", "illegal-read", "tl.load(source", "where its storage holds other data",
     ["source[256] first", "2 times in programs 2, 3."]),
    ("reads_between_rows", "illegal-read", "tl.load(source", "84 elements are read in the gaps between the rows of source",
     ["float32[8, 20] with strides (32, 1)", "source[0, 20] to [6, 31]", "lanes 20 to 31 of 32"]),
    ("counts_past_the_end", "illegal-write", "tl.atomic_add", "4 elements are updated past the end of bins (int32[96])",
     ["The address comes from source[96] = 96", "lanes 32 to 35 of 64"]),
    ("passes_32_bits", "integer-overflow", "tl.load(source", "before the start of source",
     ["4099 * 524288 = 2149056512 does not fit int32 and becomes -2145910784", "programs 4096, 4097, 4098, 4099."]),
    ("all_write_one_place", "race-waw", "tl.store(target", "program 1 and program 0 both write target[0]",
     ["and 4 more"]),
    ("all_write_the_same", "race-same-value", "tl.store(target", "both write target[0], the same value", []),
    ("shifts_in_place", "race-war", "tl.store(target", "program 1 writes target[64], which program 0 reads",
     ["The arguments source and target share storage", "source[1:65]"]),
    ("loses_an_update", "race-war", "tl.store(target", "target[0]", ["one of the two results is lost"]),
    ("lanes_without_a_barrier", "race-lanes", "tl.load(scratch + low)", "scratch[0] first", ["tl.debug_barrier()"]),
    ("reads_what_nothing_wrote", "uninitialised-read", "tl.load(target)", "1 element of target is read that nothing has written",
     ["torch.zeros instead of torch.empty"]),
    ("breaks_a_promise", "false-hint", "tl.multiple_of", "tl.multiple_of(8) is promised, but 4 is among the numbers", []),
    ("reads_at_an_odd_address", "misaligned", "tl.load(odd", "64 lanes read 4 bytes of source", ["is 2 too far"]),
    ("divides_by_zero", "division-by-zero", "//", "an integer is divided by 0 in 1 lane", ["lane 9 of 64"]),
    ("picks_past_the_end", "illegal-read", "tl.load(source + place", "1 element is read past the end of source",
     ["The address comes from where[130] = 200", "In program 2: lane 2 of 64"]),
]  # fmt: skip
CONTROLS = [
    "masks_what_lies_before", "adds_atomically", "keeps_to_the_view", "moves_its_pointers", "picks", "counts",
    "lanes_with_a_barrier",
]  # fmt: skip


def line_of(finding: Any) -> str:
    """The text of the line that a finding stands on."""
    frame = (finding.access.frames if finding.access is not None else finding.frames)[0]
    return Path(frame.file).read_text().splitlines()[frame.line - 1]


@pytest.mark.parametrize(("name", "kind", "line", "summary", "parts"), BUGS, ids=[bug[0] for bug in BUGS])
def test_bug(bench: Bench, name: str, kind: str, line: str, summary: str, parts: list[str]) -> None:
    """One finding, of the right class, at the right line, with the facts."""
    found = bench.run(getattr(bench.kernels("seeded_kernels"), name))
    finding = found.only(kind)
    assert line in line_of(finding)
    assert summary in finding.summary
    for part in parts:
        assert part in found.text
    assert not found.limits


@pytest.mark.parametrize("name", CONTROLS)
def test_control(bench: Bench, name: str) -> None:
    """Nothing is found, and the values are right (the launching function says so)."""
    found = bench.run(getattr(bench.kernels("seeded_kernels"), name))
    assert found.findings == [], found.text


def test_every_kernel_is_launched(bench: Bench) -> None:
    """No function of the file is left out of the tables above."""
    module = bench.kernels("seeded_kernels")
    launches = {
        name for name, item in vars(module).items()
        if inspect.isfunction(item) and item.__module__ == module.__name__ and name != "ramp"
    }  # fmt: skip
    assert launches == {bug[0] for bug in BUGS} | set(CONTROLS)
