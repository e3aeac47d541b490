"""pyasc scripts run unmodified: arguments of every kind, helpers, caches, platforms, and what is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuscope.errors import UserError

Sanitize = Callable[..., Any]

ADD_ONE = """
@asc.jit
def kernel(x: asc.GlobalAddress, count: asc.ConstExpr[int]):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    local = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, 0, count)
    asc.data_copy(local, x_gm, count)
    asc.set_flag(asc.HardEvent.MTE2_V, 0)
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)
    asc.add(local, local, local, count)
    asc.set_flag(asc.HardEvent.V_MTE3, 0)
    asc.wait_flag(asc.HardEvent.V_MTE3, 0)
    asc.data_copy(x_gm, local, count)
"""


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int16"])
def test_numpy_and_torch_arrays_are_used_in_place(sanitize: Sanitize, dtype: str) -> None:
    """No copy: what the kernel writes is in the user's array, also behind an offset view."""
    pytest.importorskip("torch")
    checked = sanitize(
        ADD_ONE
        + f"""
import torch
whole = np.arange(128).astype("{dtype}")
kernel[1](whole[64:], 64)
assert (whole[:64] == np.arange(64)).all() and (whole[64:] == 2 * np.arange(64, 128)).all()
tensor = torch.arange(64).to(torch.{dtype})
kernel[1](tensor, 64)
assert torch.equal(tensor, (2 * torch.arange(64)).to(torch.{dtype}))
"""
    )
    assert (checked.code, checked.findings, checked.launches) == (0, [], 2)


def test_scalars_and_structs(sanitize: Sanitize) -> None:
    """int, float, bool, numpy scalars and a Struct with a default reach the kernel with their values."""
    checked = sanitize(
        """
        from asc.language.core.struct import Field, Struct

        class Shape(Struct):
            rows = Field(dtype=asc.int32)
            scale = Field(dtype=asc.float32, default=2.0)

        @asc.jit
        def kernel(x: asc.GlobalAddress, shape: Shape, n: int, f: float, b: bool, s: np.int16):
            x_gm = asc.GlobalTensor()
            x_gm.set_global_buffer(x)
            local = asc.LocalTensor(x.dtype, asc.TPosition.VECCALC, 0, 64)
            value = shape.scale + f
            if b:
                value = value + 100.0
            asc.duplicate(local, value, shape.rows * n + s)
            asc.set_flag(asc.HardEvent.V_MTE3, 0)
            asc.wait_flag(asc.HardEvent.V_MTE3, 0)
            asc.data_copy(x_gm, local, 64)

        x = np.zeros(64, np.float32)
        kernel[1](x, Shape(rows=5), 6, 0.5, True, np.int16(2))
        assert (x[:32] == 102.5).all(), x
        """
    )
    assert (checked.code, checked.findings) == (0, [])


def test_nothing_is_kept_on_disk(sanitize: Sanitize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyasc's own kernel cache is neither read nor written."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sanitize(ADD_ONE + "kernel[1](np.zeros(64, np.float32), 64)").code == 0
    assert not (tmp_path / ".pyasc").exists()


def test_constants_specialise_a_kernel(sanitize: Sanitize) -> None:
    """Another constexpr is another program; the same one is lowered once."""
    checked = sanitize(
        ADD_ONE
        + """
for count in (64, 32, 64):
    x = np.ones(64, np.float32)
    kernel[1](x, count)
    assert x.sum() == 64 + count
"""
    )
    assert checked.code == 0


@pytest.mark.parametrize("backend", ["Model", "NPU"])
def test_backends_and_platforms(sanitize: Sanitize, backend: str) -> None:
    """Both backends run; the platform is the simulated chip."""
    checked = sanitize(
        ADD_ONE
        + f"""
config.set_platform(config.Backend.{backend})
assert rt.get_soc_version() == config.Platform.Ascend910B1
assert rt.current_platform() == "Ascend910B1"
kernel[1, rt.current_stream()](np.zeros(64, np.float32), 64)
"""
    )
    assert (checked.code, checked.launches) == (0, 1)


def test_the_asked_chip_is_the_platform(sanitize: Sanitize) -> None:
    """--chip decides what the script's NPU backend reports."""
    text = ADD_ONE + """
config.set_platform(config.Backend.NPU)
assert rt.get_soc_version() == config.Platform.Ascend910B3
kernel[1](np.zeros(64, np.float32), 64)
"""
    assert sanitize(text, chip="910B3").code == 0


def test_empty_arrays(sanitize: Sanitize) -> None:
    """An array without elements is a buffer of no bytes: touching it is found, passing it is fine."""
    assert sanitize(ADD_ONE + "kernel[1](np.zeros(0, np.float32), 0)").findings == []
    kinds = sanitize(ADD_ONE + "kernel[1](np.zeros(0, np.float32), 64)").kinds
    assert set(kinds) == {"illegal-read", "illegal-write"}


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ("np.zeros((8, 16), np.float32)[:, ::2]", r"argument x is not contiguous .*np\.ascontiguousarray\(x\)"),
        ("np.zeros(64, np.complex64)", r"argument x of kernel: pyasc has no dtype complex64; it takes .*float32"),
        ("[1.0, 2.0]", r"argument x of kernel: .*list"),
    ],
)
def test_arguments_that_are_refused(sanitize: Sanitize, array: str, message: str) -> None:
    """One line that names the argument and what to do."""
    with pytest.raises(UserError, match=message):
        sanitize(ADD_ONE + f"kernel[1]({array}, 64)")


def test_no_cores(sanitize: Sanitize) -> None:
    """A launch without a core count is the script's error."""
    assert sanitize(ADD_ONE + "kernel[0](np.zeros(64, np.float32), 64)").code == 1


def test_more_blocks_than_cores_run_in_waves(sanitize: Sanitize, capsys: pytest.CaptureFixture[str]) -> None:
    """All blocks run; the user is told once."""
    text = ADD_ONE.replace("set_global_buffer(x)", "set_global_buffer(x + asc.get_block_idx() * count)")
    checked = sanitize(
        text + "x = np.ones(64 * 100, np.float32)\nkernel[100](x, 64)\nkernel[100](x, 64)\nassert (x == 4).all()"
    )
    assert checked.code == 0
    said = capsys.readouterr().err
    assert said.count("kernel has 100 blocks, Ascend910B1 has 48 cores: they run in waves") == 1
