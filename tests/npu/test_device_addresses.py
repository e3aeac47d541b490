"""Where host memory lies on the device: in the same place while it lives, in a new one afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from npuscope.npu.device_addresses import ALIGNMENT, ARGUMENTS, BEYOND, BLOCKS, GAP, DeviceAddresses, owner_of
from npuscope.npu.memory import GlobalMemory


def launched(addresses: DeviceAddresses, *arrays: np.ndarray) -> list[int]:
    """The device addresses of the arguments of one launch."""
    memory = GlobalMemory(addresses)
    flat = [(array.reshape(-1).view(np.uint8), owner_of(array)) for array in arrays]
    memory.share(flat)
    return [memory.map(data, None, owner).base for data, owner in flat]


def test_an_array_stays_where_it_is() -> None:
    addresses = DeviceAddresses()
    first, second = np.zeros(4096, np.uint8), np.zeros(4096, np.uint8)
    places = launched(addresses, first, second)
    assert launched(addresses, second, first) == places[::-1]
    assert launched(addresses, second.view(np.float32).reshape(32, -1)) == places[1:]
    assert abs(places[1] - places[0]) >= 4096 + GAP and places[0] % ALIGNMENT == 0


def test_memory_that_is_used_again_is_something_else() -> None:
    """One host address, two owners, one after the other."""
    addresses, storage = DeviceAddresses(), bytearray(4096)  # a bytearray cannot be watched: its array is the owner
    first = np.frombuffer(storage, np.uint8)
    (place,) = launched(addresses, first)
    assert launched(addresses, first) == [place]
    del first
    second = np.frombuffer(storage, np.uint8)
    assert launched(addresses, second)[0] >= place + 4096 + GAP
    assert len(addresses._known) == 1


def test_a_slice_lies_in_its_array() -> None:
    """Alone in its launch; two slices lie apart, so that an overrun of one does not hit the other."""
    addresses, whole = DeviceAddresses(), np.zeros(1 << 14, np.uint8)
    (place,) = launched(addresses, whole)
    assert launched(addresses, whole[1024:2048]) == [place + 1024]
    assert launched(addresses, whole[3:][1021:]) == [place + 1024]
    left, right = launched(addresses, whole[:1024], whole[1024:])
    assert abs(right - left) >= 1024 + GAP
    assert launched(addresses, whole[:1024], whole[1024:]) == [left, right]
    assert launched(addresses, whole) == [place]
    assert launched(addresses, whole[:2048], whole[1024:]) == [place, place + 1024]
    assert launched(addresses, whole[100:])[0] % ALIGNMENT == 0  # as the device's allocator aligns what it gives out


def test_torch_tensors() -> None:
    """A tensor and its views have one storage."""
    torch = pytest.importorskip("torch")
    addresses, tensor = DeviceAddresses(), torch.zeros(1024)

    def place(one: torch.Tensor) -> int:
        flat = one.numpy().reshape(-1).view(np.uint8), owner_of(one)
        memory = GlobalMemory(addresses)
        memory.share([flat])
        return memory.map(flat[0], one, flat[1]).base

    first = place(tensor)
    assert [place(tensor), place(tensor.view(32, 32)), place(tensor[256:])] == [first, first, first + 1024]
    assert place(torch.zeros(1024)) >= first + 4096 + GAP


def test_room_for_ever() -> None:
    """Past the addresses before the script's own device memory, arguments go on behind it."""
    addresses = DeviceAddresses()
    assert addresses.take(0) == ARGUMENTS
    assert addresses.take(BLOCKS - ARGUMENTS) == BEYOND
    assert addresses.take(1) >= BEYOND + BLOCKS - ARGUMENTS + GAP
