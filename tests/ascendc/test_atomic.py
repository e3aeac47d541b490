"""SetAtomic* and what copies to global memory do then, against numpy and the vendor's table of boundary values."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.ascendc.registry import entries
from npuscope.errors import UserError
from npuscope.trace.schema import Pipe, Role

entries()  # loads the library, which names the fields of parameter structs

A1 = 1
HALF, FLOAT, BF16 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
TYPES = {
    "i8": np.dtype(np.int8), "i16": np.dtype(np.int16), "i32": np.dtype(np.int32), "f16": HALF, "bf16": BF16,
    "f32": FLOAT,
}
COMBINE = {"add": np.add, "max": np.maximum, "min": np.minimum}


def some(dtype: np.dtype[Any], count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-60, 60, count).astype(dtype)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("operation", COMBINE)
def test_copies_combine_with_what_is_there(device: Any, operation: str, name: str) -> None:
    dtype = TYPES[name]
    y, x = some(dtype, 64, 1), some(dtype, 64, 2)
    expected = COMBINE[operation](y.astype(FLOAT), x.astype(FLOAT)).astype(dtype)
    device.run(f"set_atomic_{operation}", dtype=name)
    device.run("data_copy_l2", device.gm(y), device.local(x), 64)
    assert y.tolist() == expected.tolist()


def test_atomics_follow_strides_and_odd_lengths(device: Any) -> None:
    y, x = np.ones(64, FLOAT), np.arange(64, dtype=FLOAT)
    target, ub = device.gm(y), device.local(x)
    device.run("set_atomic_add", dtype="f32")
    device.run("data_copy_pad_l2", target.at(3), ub, construct("data_copy_params", "", 2, 20, 0, 8))
    expected = np.ones(64, FLOAT)
    expected[3:8] += x[:5]
    expected[10:15] += x[8:13]
    assert y.tolist() == expected.tolist()
    base = target.address
    assert device.touched(target, Role.ATOMIC) == {base + 12 + 28 * row + byte for row in range(2) for byte in range(20)}


def test_only_global_memory_accumulates(device: Any) -> None:
    ub = device.local(np.ones(32, FLOAT))
    device.run("set_atomic_add", dtype="f32")
    device.run("data_copy_l2", ub, device.gm(np.full(32, 5, FLOAT)), 32)
    assert device.values(ub).tolist() == [5.0] * 32


def test_set_atomic_none_and_its_trace(device: Any) -> None:
    y = np.ones(16, FLOAT)
    device.run("set_atomic_add", dtype="f32")
    device.run("set_atomic_none")
    device.run("data_copy_l2", device.gm(y), device.local(np.full(16, 3, FLOAT)), 16)
    assert y.tolist() == [3.0] * 16
    batch = device.trace()
    assert batch.column("pipe").tolist() == [Pipe.S, Pipe.S, Pipe.MTE3]


def test_l1_and_the_cube_side_accumulate_too(cube: Any) -> None:
    y = np.ones(32, FLOAT)
    cube.run("set_atomic_max", dtype="f32")
    cube.run("data_copy_l2", cube.gm(y), cube.local(np.linspace(-3, 3, 32).astype(FLOAT), A1), 32)
    assert y.tolist() == np.maximum(1, np.linspace(-3, 3, 32).astype(FLOAT)).tolist()


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("operation", "a", "b", "plain", "saturated"),
    [
        ("add", -65504, -65504, -INF, -65504), ("add", 65504, 65504, INF, 65504), ("add", 65504, -65504, 0, 0),
        ("add", 0, NAN, NAN, 0), ("add", INF, -INF, NAN, 0), ("max", 0, NAN, NAN, 0), ("max", -65504, INF, INF, 65504),
        ("max", INF, -INF, INF, 65504), ("min", 0, -INF, -INF, -65504), ("min", 65504, INF, 65504, 65504),
        ("min", NAN, INF, NAN, 0),
    ],
)
def test_boundary_values_of_half(
    device: Any, operation: str, a: float, b: float, plain: float, saturated: float
) -> None:
    for saturate, expected in ((False, plain), (True, saturated)):
        y = np.full(16, a, HALF)
        device.core.registers.saturate = saturate
        device.run(f"set_atomic_{operation}", dtype="f16")
        device.run("data_copy_l2", device.gm(y), device.local(np.full(16, b, HALF)), 16)
        np.testing.assert_array_equal(y, np.full(16, expected, HALF))


@pytest.mark.parametrize(("saturate", "expected"), [(False, -128), (True, 127)])
def test_integers_wrap_or_saturate(device: Any, saturate: bool, expected: int) -> None:
    y = np.full(32, 127, np.int8)
    device.core.registers.saturate = saturate
    device.run("set_atomic_add", dtype="i8")
    device.run("data_copy_l2", device.gm(y), device.local(np.ones(32, np.int8)), 32)
    assert set(y.tolist()) == {expected}


def test_the_bytes_count_as_the_atomic_type(device: Any) -> None:
    y = np.full(8, 1.5, FLOAT)
    device.run("set_atomic_add", dtype="i32")
    device.run("data_copy_l2", device.gm(y), device.local(np.ones(8, np.int32).view(FLOAT)), 8)
    assert y.view(np.int32).tolist() == (np.full(8, 1.5, FLOAT).view(np.int32) + 1).tolist()


def test_an_atomic_type_of_another_width_is_a_fault(device: Any) -> None:
    y = np.ones(16, HALF)
    device.run("set_atomic_add", dtype="f32")
    device.run("data_copy_l2", device.gm(y), device.local(np.ones(16, HALF)), 16)
    assert [fault.facts["what"] for fault in device.recorder.faults] == ["the type of the atomic mode"]
    assert y.tolist() == [2.0] * 16


def test_the_type_alone_changes_no_mode(device: Any) -> None:
    device.run("set_atomic_type", dtype="f16")
    assert device.run("get_store_atomic_config") == (0, 0)
    device.run("set_atomic_add", dtype="f32")
    device.run("set_atomic_type", dtype="f16")
    assert device.run("get_store_atomic_config") == (2, 0)


@pytest.mark.parametrize("number", range(7))
def test_the_configuration_reads_back(device: Any, number: int) -> None:
    device.run("set_store_atomic_config", atomic_type=number, atomic_op=0)
    assert device.run("get_store_atomic_config") == (number, 0)
    y = np.ones(8, np.int32)
    if number in (0, 4):
        device.run("data_copy_l2", device.gm(y), device.local(np.full(8, 4, np.int32)), 8)
        assert set(y.tolist()) == {5 if number else 4}


def test_types_and_numbers_that_do_not_exist(device: Any) -> None:
    with pytest.raises(UserError, match="SetAtomicAdd takes"):
        device.run("set_atomic_add", dtype="f64")
    with pytest.raises(UserError, match="no type 7"):
        device.run("set_store_atomic_config", atomic_type=7, atomic_op=0)
