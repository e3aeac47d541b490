"""Memory without content: what np.empty and torch.empty leave undefined in a kernel's arguments, launch by launch."""

from __future__ import annotations

import copy
import linecache
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuscope.cli.session import run_in_session
from npuscope.frontends.uninitialised import PATTERN, Poison, address_of, fill_torch, undefined_runs
from npuscope.trace.file import TraceWriter, read_batches
from npuscope.trace.recorder import Batch

Runs = tuple[tuple[int, int], ...]

KERNEL = """\
import numpy as np
import asc
import asc.runtime.config as config
config.set_platform(config.Backend.Model)

@asc.jit
def kernel(x: asc.GlobalAddress, count: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    local = asc.LocalTensor(x.dtype, asc.TPosition.VECOUT, 0, count)
    asc.duplicate(local, 3, count)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    asc.data_copy(x_gm, local, count)
"""


@pytest.fixture
def undefined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Runs]]:
    """Run program text after KERNEL; per launch, what was undefined in its argument."""
    pytest.importorskip("asc")

    def run(text: str) -> list[Runs]:
        monkeypatch.setattr(sys, "argv", list(sys.argv))
        monkeypatch.setattr(sys, "path", list(sys.path))
        script = tmp_path / "script.py"
        script.write_text(KERNEL + textwrap.dedent(text))
        linecache.checkcache(str(script))
        batches: list[Batch] = []
        code, _ = run_in_session((batches.append,), None, str(script), (), False)
        assert code == 0
        return [batch.buffers[0].undefined for batch in batches if batch.last]

    return run


@pytest.fixture
def poison() -> Iterator[Poison]:
    """An active poison, no script."""
    with Poison() as made:
        yield made


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8)


class TestLaunches:
    def test_numpy_whole(self, undefined: Callable[[str], list[Runs]]) -> None:
        """np.empty is undefined through and through, np.zeros is not, an array like another one is."""
        assert undefined(
            """
            kernel[1](np.empty(64, np.float32), 64)
            kernel[1](np.zeros(64, np.float32), 64)
            kernel[1](np.empty_like(np.zeros((4, 16), np.float16)), 64)
            """
        ) == [((0, 256),), (), ((0, 128),)]

    def test_partial_fill(self, undefined: Callable[[str], list[Runs]]) -> None:
        """A column that is left out is one run a row; a single element copied from nowhere is undefined still."""
        assert undefined(
            """
            x = np.empty((4, 16), np.float32)
            x[:, :15] = 0
            kernel[1](x, 64)
            y = np.empty(64, np.float16)
            y[:] = 1
            y[7] = np.empty(64, np.float16)[7]
            kernel[1](y, 64)
            """
        ) == [((60, 64), (124, 128), (188, 192), (252, 256)), ((14, 16),)]

    def test_second_launch_sees_what_the_first_wrote(self, undefined: Callable[[str], list[Runs]]) -> None:
        """A kernel that writes half of the array defines half of it."""
        assert undefined(
            """
            x = np.empty(64, np.float32)
            kernel[1](x, 32)
            kernel[1](x, 64)
            kernel[1](x, 64)
            """
        ) == [((0, 256),), ((128, 256),), ()]

    def test_views(self, undefined: Callable[[str], list[Runs]]) -> None:
        """Offsets count from the argument's first byte, whatever it is a view of; the first launch defines 63 of 64."""
        assert undefined(
            """
            whole = np.empty(256, np.float32)
            whole[:100] = 5
            kernel[1](whole[64:128], 64)
            kernel[1](whole[65:129].reshape(8, 8), 64)
            """
        ) == [((144, 256),), ((252, 256),)]

    def test_torch(self, undefined: Callable[[str], list[Runs]]) -> None:
        """torch's functions, a view, and what is filled afterwards."""
        pytest.importorskip("torch")
        assert undefined(
            """
            import torch
            kernel[1](torch.empty(64), 64)
            kernel[1](torch.zeros(64), 64)
            kernel[1](torch.empty_like(torch.zeros(64, dtype=torch.float16)), 64)
            kernel[1](torch.zeros(1).new_empty((8, 8)), 64)
            kernel[1](torch.empty_strided((8, 8), (8, 1)), 64)
            x = torch.empty(128, device="npu")
            x[:80].fill_(1)
            kernel[1](x[64:], 64)
            kernel[1](torch.empty(64).normal_(), 64)
            """
        ) == [((0, 256),), (), ((0, 128),), ((0, 256),), ((0, 256),), ((64, 256),), ()]

    def test_torch_otherwise_unchanged(self, undefined: Callable[[str], list[Runs]]) -> None:
        """Strides, gradients, other devices, function transforms, out= and no elements are as without a check."""
        pytest.importorskip("torch")
        undefined(
            """
            import torch
            x = torch.empty_strided((2, 3), (1, 2), requires_grad=True)
            assert x.stride() == (1, 2) and x.requires_grad and x.is_leaf and x.isnan().all()
            assert torch.empty(3, device="meta").device.type == "meta"
            assert torch.empty(0).numel() == 0
            ones = torch.ones(3)
            assert torch.empty(3, out=ones) is ones and (ones == 1).all()
            double = torch.func.vmap(lambda row: torch.empty_like(row).copy_(row) * 2)
            assert (double(torch.ones(2, 3)) == 2).all()
            """
        )

    def test_a_file_keeps_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Recorded and read back: the same runs."""
        pytest.importorskip("asc")
        monkeypatch.setattr(sys, "argv", list(sys.argv))
        monkeypatch.setattr(sys, "path", list(sys.path))
        script = tmp_path / "script.py"
        script.write_text(KERNEL + "x = np.empty(64, np.int32)\nx[16:32] = 0\nkernel[1](x, 64)\n")
        linecache.checkcache(str(script))
        with TraceWriter(tmp_path / "run.trace") as writer:
            run_in_session((writer.write,), None, str(script), (), False)
        (batch,) = read_batches(tmp_path / "run.trace")
        assert batch.buffers[0].undefined == ((0, 64), (128, 256))

    def test_run_leaves_memory_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without consumers np.empty is numpy's own."""
        monkeypatch.setattr(sys, "argv", list(sys.argv))
        monkeypatch.setattr(sys, "path", list(sys.path))
        script = tmp_path / "script.py"
        script.write_text("import numpy as np\nassert type(np.empty).__name__ == 'builtin_function_or_method'\n")
        assert run_in_session((), None, str(script), (), False)[0] == 0

    def test_hooks_end_with_the_session(
        self, undefined: Callable[[str], list[Runs]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Afterwards numpy and torch give plain memory again, also through a name that the script kept."""
        torch = pytest.importorskip("torch")
        original = np.empty
        undefined("import builtins\nbuiltins.kept_empty = np.empty\nkernel[1](np.empty(64, np.float32), 64)")
        import builtins

        kept = builtins.__dict__.pop("kept_empty")
        assert np.empty is original and kept is not original
        filled = fills(monkeypatch)
        assert (kept(4096).size, torch.empty(4096).numel(), filled) == (4096, 4096, [])


def fills(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on nothing is filled; the sizes that would have been are in the list."""
    sizes: list[int] = []
    monkeypatch.setattr(Poison, "fill", lambda self, data: sizes.append(data.size))
    return sizes


class Child(np.ndarray):
    """A user's own array type."""


class TestFilling:
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint16", "int32", "int64"])
    def test_every_byte(self, poison: Poison, dtype: str) -> None:
        """The whole array holds the pattern by address; floats are NaN."""
        made = np.empty((3, 5), dtype)
        data = bytes_of(made)
        address = address_of(data)
        assert data.tobytes() == bytes(PATTERN[(address + index) % 8] for index in range(data.size))
        if made.dtype.kind == "f":
            assert np.isnan(made).all()
        assert poison.runs(data, made.dtype) == ((0, made.nbytes),)

    def test_bfloat16_is_nan(self, poison: Poison) -> None:
        """Also for the type that numpy does not have."""
        dtype = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
        made = np.empty(8, dtype)
        assert np.isnan(made.astype(np.float32)).all()
        made[3] = 1
        assert poison.runs(bytes_of(made), dtype) == ((0, 6), (8, 16))

    def test_shape_order_and_strides_are_kept(self, poison: Poison) -> None:
        """C, Fortran and permuted layouts, subclasses, no elements, no dimensions."""
        prototype = np.zeros((2, 3, 4), np.float32).transpose(2, 0, 1)
        made = np.empty_like(prototype)
        assert (made.shape, made.strides) == (prototype.shape, prototype.strides)
        assert np.isnan(made).all()
        assert np.isnan(np.empty((3, 4), order="F")).all() and np.empty((3, 4), order="F").flags.f_contiguous
        assert np.isnan(np.empty(())) and np.empty((0, 3)).shape == (0, 3)
        child = np.zeros((2, 3)).view(Child)
        assert type(np.empty_like(child)) is Child and np.isnan(np.empty_like(child)).all()

    def test_objects_and_bools_are_left_alone(self, poison: Poison, monkeypatch: pytest.MonkeyPatch) -> None:
        """Pointers are not overwritten, a bool stays 0 or 1."""
        assert np.empty(3, object).tolist() == [None, None, None]
        assert np.empty(2, [("a", object), ("b", np.int32)])["a"].tolist() == [None, None]
        torch = pytest.importorskip("torch")
        filled = fills(monkeypatch)
        np.empty_like(np.zeros(64, np.bool_))
        fill_torch(torch.empty, {}, torch.empty(64, dtype=torch.bool))
        assert filled == []
        np.empty(5, np.int8)
        fill_torch(torch.empty, {}, torch.zeros(6))
        assert filled == [5, 24]

    def test_like_and_array_functions(self, poison: Poison) -> None:
        """A library's own array type answers for itself, also when it registered the hooked function."""
        handled = {np.empty_like: lambda prototype: "its own"}

        class Duck:
            def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
                return handled[func](*args, **kwargs)

        assert np.empty_like(Duck()) == "its own"  # type: ignore[call-overload]

    def test_it_is_pickled_and_copied_by_name(self, poison: Poison) -> None:
        """As any function of a module."""
        assert pickle.loads(pickle.dumps(np.empty_like)) is np.empty_like
        assert copy.deepcopy({"make": np.empty})["make"] is np.empty
        assert (np.empty.__name__, np.empty.__module__) == ("empty", "numpy")

    def test_compiled_code_still_finds_it(self, poison: Poison) -> None:
        """numba compiles np.empty while the hook is in place."""
        numba = pytest.importorskip("numba")

        @numba.njit  # type: ignore[untyped-decorator]
        def total(count: int) -> float:
            made = np.empty(count)
            made[:] = 2
            return made.sum()  # type: ignore[no-any-return]

        assert total(8) == 16

    def test_compiled_code_finds_it_in_every_session(self) -> None:
        """Whichever session's hook numba met when it was imported, another one's is the same function to it."""
        program = """
            import numpy as np
            from npuscope.frontends.uninitialised import Poison
            for turn in range(2):
                with Poison():
                    import numba
                    assert numba.njit(lambda count: np.empty(count).size)(3) == 3
            """
        subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)

    def test_arrays_without_the_pattern_are_not_looked_at(self, poison: Poison) -> None:
        """Memory that never came from an empty call is defined, whatever it holds."""
        data = np.tile(np.frombuffer(PATTERN, np.uint8), 1 << 17)
        assert poison.runs(data, np.dtype(np.float32)) == ()
        assert undefined_runs(data, np.dtype(np.float32)) == ((0, 1 << 20),)


class TestRuns:
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_floats_against_a_mask(self, poison: Poison, dtype: str) -> None:
        """Random elements are given values; the runs are exactly the others."""
        rng = np.random.default_rng(7)
        made = np.empty(1001, dtype)
        given = rng.random(1001) < 0.5
        made[given] = rng.standard_normal(int(given.sum()))
        found = np.zeros(made.nbytes, np.bool_)
        for start, end in poison.runs(bytes_of(made), made.dtype):
            assert not found[max(start - 1, 0) : end].any()
            found[start:end] = True
        np.testing.assert_array_equal(found, np.repeat(~given, made.itemsize))

    @pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
    def test_integers_never_claim_a_given_element(self, poison: Poison, dtype: str) -> None:
        """A filled part of any length stays defined; of the rest at most three bytes at either end are missed."""
        for first, last in [(0, 10), (3, 50), (13, 64), (0, 64), (1, 2), (61, 64)]:
            made = np.empty(64, dtype)
            made[first:last] = np.arange(first, last)
            found = np.zeros(made.nbytes, np.bool_)
            for start, end in poison.runs(bytes_of(made), made.dtype):
                found[start:end] = True
            rest = np.ones(made.nbytes, np.bool_)
            rest[first * made.itemsize : last * made.itemsize] = False
            assert not (found & ~rest).any()
            missed = rest & ~found
            for part in (missed[: first * made.itemsize], missed[last * made.itemsize :]):
                assert part.sum() <= 3 or part.size < 8

    def test_random_integers_are_not_mistaken(self, poison: Poison) -> None:
        """A million random words and saturated bytes: nothing undefined."""
        made = np.empty(1 << 20, np.int32)
        made[:] = np.random.default_rng(3).integers(-(2**31), 2**31, made.size)
        assert poison.runs(bytes_of(made), made.dtype) == ()
        small = np.empty(1 << 16, np.int8)
        small[:] = 127
        assert poison.runs(bytes_of(small), small.dtype) == ()
