"""ListTensorDesc and TensorDesc on lists as the vendor lays them out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.errors import UserError
from npuscope.npu.tensor import Pointer
from npuscope.trace.schema import OPCODES, Role

UNCHECKED = 0xFFFF_FFFF


def pointer(tensor: Any) -> Pointer:
    """A tensor's address."""
    return Pointer(tensor.memory, tensor.address, tensor.dtype, tensor.buffer)


def make_list(addresses: list[int], shapes: list[list[int]], grouped: bool = True) -> np.ndarray:
    """The words of a list: shapes of one rank, then pointers. The number of arrays stands in the first shape's word
    (`grouped`), or the word of each shape has its index."""
    dims = len(shapes[0])
    words: list[int] = []
    for index, extents in enumerate(shapes):
        high = len(shapes) if grouped and index == 0 else index
        words += [high << 32 | dims, *extents]
    return np.array([8 * (1 + len(words)), *words, *addresses], np.uint64)


def make_bare(addresses: list[int]) -> np.ndarray:
    """A list of pointers alone."""
    return np.array([24, len(addresses) << 32, 0xFFFF_FFFF, *addresses], np.uint64)


@pytest.fixture
def arrays(device: Any) -> list[Any]:
    """Two arrays on the device."""
    return [device.gm(np.arange(6, dtype=np.float32), "a"), device.gm(np.arange(10, 22, dtype=np.float32), "b")]


def describe(device: Any, words: np.ndarray, length: int = UNCHECKED, size: int = UNCHECKED) -> Any:
    """ListTensorDesc(data, length, size)."""
    return device.run("list_tensor_desc_v2", pointer(device.gm(words, "list")), length, size)


@pytest.mark.parametrize("grouped", [True, False])
def test_shapes_and_pointers(device: Any, arrays: list[Any], grouped: bool) -> None:
    """The page's example has three dimensions; both ways of counting the arrays."""
    shapes = [[1, 2, 3], [3, 2, 2]]
    words = make_list([tensor.address for tensor in arrays], shapes, grouped)
    desc = describe(device, words, words.nbytes, 2)
    assert device.run("list_tensor_desc_get_size", desc) == 2
    for index, extents in enumerate(shapes):
        tensor = device.run("tensor_desc", element_type="f32")
        device.run("tensor_desc_set_shape_addr", tensor, 0)
        device.run("list_tensor_desc_get_desc", desc, tensor, index)
        assert device.run("tensor_desc_get_dim", tensor) == 3
        assert device.run("tensor_desc_get_index", tensor) == index
        assert [device.run("tensor_desc_get_shape", tensor, dim) for dim in range(3)] == extents
        assert device.run("tensor_desc_get_data_ptr", tensor).address == arrays[index].address
        whole = device.run("tensor_desc_get_data_obj", tensor)
        assert (device.values(whole, 6) == device.values(arrays[index], 6)).all()
        assert whole.buffer == arrays[index].buffer
    assert device.recorder.faults == []


def test_pointers_alone(device: Any, arrays: list[Any]) -> None:
    """No dimensions; entries may point into an array."""
    desc = describe(device, make_bare([arrays[1].address + 8, arrays[0].address]))
    assert device.run("list_tensor_desc_get_size", desc) == 2
    first = device.run("list_tensor_desc_get_data_ptr", desc, 0, dtype="f32")
    assert first.address == arrays[1].address + 8 and first.dtype == np.float32
    assert device.run("list_tensor_desc_get_data_ptr", desc, 1, dtype="f16").dtype == np.float16
    assert device.recorder.faults == []


def test_host_addresses(device: Any) -> None:
    """A list made on the host holds host addresses; they mean the arrays that were passed along."""
    data = np.arange(8, dtype=np.int32)
    tensor = device.gm(data)
    desc = describe(device, make_bare([data.ctypes.data + 4]))
    assert device.run("list_tensor_desc_get_data_ptr", desc, 0, dtype="i32").address == tensor.address + 4


def test_unknown_address(device: Any) -> None:
    """One clear line."""
    desc = describe(device, make_bare([0x1000]))
    with pytest.raises(UserError, match="entry 0 of the list of tensors is 0x1000, which is in no array"):
        device.run("list_tensor_desc_get_data_ptr", desc, 0, dtype="f32")


def test_init_later(device: Any, arrays: list[Any]) -> None:
    """The empty list cannot be used, after init it can."""
    desc = device.run("list_tensor_desc")
    with pytest.raises(UserError, match="before init"):
        device.run("list_tensor_desc_get_desc", desc, device.run("tensor_desc", element_type="f32"), 0)
    words = device.gm(make_bare([arrays[0].address]), "list")
    device.run("list_tensor_desc_init", desc, pointer(words), UNCHECKED, UNCHECKED)
    assert device.run("list_tensor_desc_get_size", desc) == 1
    with pytest.raises(UserError, match="before ListTensorDesc.get_desc"):
        device.run("tensor_desc_get_data_ptr", device.run("tensor_desc", element_type="f32"))


def test_checks(device: Any, arrays: list[Any]) -> None:
    """Length and number of arrays that disagree, an index and a dimension past the end, a wrong offset."""
    addresses = [tensor.address for tensor in arrays]
    words = make_list(addresses, [[6], [12]])
    desc = describe(device, words, words.nbytes + 8, 3)
    assert [fault.facts["value"] for fault in device.recorder.faults] == [3, words.nbytes + 8]
    tensor = device.run("tensor_desc", element_type="f32")
    device.run("list_tensor_desc_get_desc", desc, tensor, 0)
    assert device.run("tensor_desc_get_shape", tensor, 1) == 0
    with pytest.raises(UserError):
        device.run("list_tensor_desc_get_data_ptr", desc, 2, dtype="f32")
    wrong = words.copy()
    wrong[0] += 8
    describe(device, wrong)
    assert [fault.code for fault in device.recorder.faults] == ["bad_operand"] * 5


def test_rows(device: Any, arrays: list[Any]) -> None:
    """The scalar unit reads the list through its cache."""
    words = device.gm(make_bare([arrays[0].address]), "list")
    device.run("list_tensor_desc_v2", pointer(words), UNCHECKED, UNCHECKED)
    assert device.touched(words, Role.READ) == set(range(words.address, words.address + 16))
    batch = device.batches[-1]
    assert {OPCODES.names[code] for code in batch.column("opcode")} == {"scalar_load"}
