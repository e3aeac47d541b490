"""Correct kernels of the kinds that libraries have: silent, or a warning where the value decides."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from programs.tile_bench import Bench

from npuscope.sanitizer.findings import Severity

WARNED = {
    "several_programs_store_one_mean": "race-same-value", "many_batches_set_one_flag": "race-same-value",
    "stores_overlapping_windows": "race-same-value",
}  # fmt: skip
ADVISED = {
    "divides_padding": "division-by-zero", "lets_go_what_nothing_wrote": "uninitialised-read",
    "adds_to_what_nothing_wrote": "uninitialised-read", "passes_strides_on": "illegal-read",
}  # fmt: skip
WRONG = {
    "batches_that_differ": "race-waw", "passes_on_what_nothing_wrote": "uninitialised-read",
    "doubles_what_nothing_wrote": "uninitialised-read",
}  # fmt: skip
SILENT = [
    "doubles_in_place", "reads_its_own_lanes_again", "reads_with_another_mask", "reads_what_each_lane_scattered",
    "loops_over_tiles", "adds_parts_atomically", "multiplies_with_wrapped_rows", "draws_random_numbers",
    "hashes_on_purpose", "passes_32_bits_and_comes_back", "returns_early", "scalar_there_and_back", "autotuned",
    "promises_about_pointers",
]  # fmt: skip


@pytest.mark.parametrize("name", SILENT)
def test_silent(bench: Bench, name: str) -> None:
    """Nothing is found, advisories included."""
    found = bench.run(getattr(bench.kernels("alarm_kernels"), name))
    assert found.findings == [], found.text
    assert not found.limits


CASES = [
    *((name, kind, Severity.WARNING) for name, kind in WARNED.items()),
    *((name, kind, Severity.ADVISORY) for name, kind in ADVISED.items()),
    *((name, kind, Severity.ERROR) for name, kind in WRONG.items()),
]


@pytest.mark.parametrize(("name", "kind", "severity"), CASES, ids=[case[0] for case in CASES])
def test_severity(bench: Bench, name: str, kind: str, severity: Severity) -> None:
    """Programs that store the same are warned of, whatever the batch; values that differ are an error."""
    finding = bench.run(getattr(bench.kernels("alarm_kernels"), name)).only(kind)
    assert finding.severity is severity


def test_every_kernel_is_launched(bench: Bench) -> None:
    """No function of the file is left out of the tables above."""
    module: Any = bench.kernels("alarm_kernels")
    launches = {name for name, item in vars(module).items() if inspect.isfunction(item) and name[0] != "_"}
    assert launches == {*SILENT, *WARNED, *ADVISED, *WRONG}
