"""Faults of single operations: assertions, promises, read-only memory, NaNs, and where an address came from."""

from __future__ import annotations

from programs.tile_bench import Bench

from npuscope.sanitizer.findings import Severity
from npuscope.sanitizer.suite import Settings

NAN = Settings(nan=True)


def test_device_assert(bench: Bench) -> None:
    """Message, lanes and program."""
    finding = bench.run(bench.kernels("fault_kernels").fails_an_assertion).only("device-assert")
    assert finding.summary == "the assertion does not hold in 2 lanes: negative input"
    assert finding.notes == ("In program 2: lanes 6 to 16 of 32.",)


def test_max_contiguous(bench: Bench) -> None:
    """A promise of neighbours that are none; a kept one is silent."""
    kernels = bench.kernels("fault_kernels")
    finding = bench.run(kernels.is_not_contiguous).only("false-hint")
    assert "tl.max_contiguous(32) is promised" in finding.summary
    assert bench.run(lambda: kernels.is_not_contiguous(1)).findings == []


def test_read_only(bench: Bench) -> None:
    """numpy's flag."""
    finding = bench.run(bench.kernels("fault_kernels").writes_what_is_read_only).only("write-to-read-only")
    assert "out is read-only" in finding.summary


def test_atomic_out_of_bounds(bench: Bench) -> None:
    """An exchange past the end."""
    finding = bench.run(bench.kernels("fault_kernels").exchanges_past_the_end).only("illegal-write")
    assert "2 elements are updated past the end of x (int32[6]), x[6] first" in finding.summary


def test_nan_that_is_made(bench: Bench) -> None:
    """The operation and its operands; what follows from it is not told again, nor read again in a later launch."""
    finding = bench.run(bench.kernels("fault_kernels").softmax_of_nothing, NAN).only("nan-origin")
    assert "made by a subtraction from -inf and -inf" in finding.summary
    assert finding.cores == ("program 2",)
    assert finding.severity is Severity.WARNING
    assert finding.frames[0].line and "lanes 0 to 7 of 8" in finding.notes[0]


def test_nan_that_is_loaded(bench: Bench) -> None:
    """Argument and element."""
    finding = bench.run(bench.kernels("fault_kernels").softmax_of_a_nan, NAN).only("nan-origin")
    assert "the first NaN of the launch is loaded from x[1, 5]" in finding.summary
    assert finding.notes == ("In program 1: lane 5 of 8.",)


def test_nan_of_a_function(bench: Bench) -> None:
    """tl.log of a negative number."""
    finding = bench.run(bench.kernels("fault_kernels").log_of_less_than_nothing, NAN).only("nan-origin")
    assert "made by tl.log from -3" in finding.summary


def test_nan_on_request_only(bench: Bench) -> None:
    """Without the option nothing is said, with it nothing about a kernel without NaNs."""
    kernels = bench.kernels("fault_kernels")
    assert bench.run(kernels.softmax_of_nothing).findings == []
    assert bench.run(lambda: kernels.softmax_of_nothing(2), NAN).findings == []


def test_the_nearest_table_is_named(bench: Bench) -> None:
    """Of two tables the second one holds the wrong number."""
    finding = bench.run(bench.kernels("fault_kernels").two_tables).only("illegal-read")
    assert any("The address comes from second[2] = 99, loaded in line " in note for note in finding.notes)


def test_scalar_start(bench: Bench) -> None:
    """A number that all lanes share, in a loop."""
    found = bench.run(bench.kernels("fault_kernels").start_that_was_loaded)
    assert found.kinds == ["illegal-read", "illegal-write"]
    assert found.text.count("The address comes from starts[2] = 56") == 2


def test_outputs_are_computed_all_the_same(bench: Bench) -> None:
    """The search for an origin writes nothing."""
    import torch

    kernels = bench.kernels("fault_kernels")
    where = torch.tensor([0, 1, 2, 3000], dtype=torch.int32)
    out = torch.full((4,), 9.0)
    found = bench.run(lambda: kernels.strided[(1,)](where, torch.arange(100.0), out, 2, BLOCK=4))
    assert found.kinds == ["illegal-read"]
    assert out.tolist() == [0.0, 2.0, 4.0, 0.0]
