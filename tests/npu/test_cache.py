"""The scalar data cache: staleness, write-back of whole lines, eviction, elements across lines, encodings."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.npu.cache import ScalarCache, decoder, encoder

DTYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
          np.bool_, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
I32 = np.dtype(np.int32)


def faults(device: Any) -> list[str]:
    """Codes of what the machine reported."""
    return [fault.code for fault in device.recorder.faults]


@pytest.mark.parametrize("dtype", DTYPES)
def test_encodings_agree_with_numpy(dtype: Any) -> None:
    """Values that the type holds go there and back as numpy has them."""
    kind = np.dtype(dtype)
    samples = [0, 1] if kind == np.bool_ else [0, 1, 2.0] if kind.kind in "fV" else [0, 1, 100]
    if kind.kind == "i":
        samples += [-1, -100]
    if kind.kind in "fV":
        samples += [-1.5, float("inf") if "e4m3" not in kind.name else 448.0]
    for value in samples:
        raw = encoder(kind)(value)
        assert raw == np.array([value]).astype(kind).tobytes()
        assert decoder(kind)(b"xx" + raw, 2) == float(np.array([value]).astype(kind)[0])
    assert isinstance(decoder(kind)(encoder(kind)(1), 0), (int, float))


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [(np.uint8, 257, 1), (np.uint8, -1, 255), (np.int8, 200, -56), (np.uint32, -1, 4294967295), (np.int32, 1 << 31,
     -(1 << 31)), (np.uint64, -1, (1 << 64) - 1)],
)
def test_integers_wrap(dtype: Any, value: int, expected: int) -> None:
    """Signless IR integers are signed numbers; they are stored by their low bits."""
    kind = np.dtype(dtype)
    assert decoder(kind)(encoder(kind)(value), 0) == expected


def test_float_too_large_is_infinite() -> None:
    """half has 65504 at most."""
    half = np.dtype(np.float16)
    assert decoder(half)(encoder(half)(1e6), 0) == float("inf")


def test_a_cached_line_stays_as_it_was_loaded(device: Any) -> None:
    """Another writer's value is not seen, neighbours of the line included; reported once; DCCI brings it."""
    data = np.arange(32, dtype=np.int32)
    gm = device.gm(data)
    cache = device.core.cache
    assert cache.read(gm.memory, gm.address, I32) == 0
    data[:] = -1
    assert cache.read(gm.memory, gm.address, I32) == 0 and cache.read(gm.memory, gm.address + 60, I32) == 15
    assert cache.read(gm.memory, gm.address + 64, I32) == -1  # another line
    assert faults(device) == ["stale_read"]
    facts = device.recorder.faults[0].facts
    assert (facts["address"], facts["read"], facts["memory"]) == (gm.address, 0, -1)
    assert cache.is_stale(gm.memory, gm.address) and not cache.is_stale(gm.memory, gm.address + 64)
    cache.clean_and_invalidate(gm.address + 20)
    assert cache.read(gm.memory, gm.address, I32) == -1


def test_stores_reach_memory_with_the_line(device: Any) -> None:
    """Not before; the core itself reads what it wrote, without a report."""
    data = np.zeros(32, np.int32)
    gm = device.gm(data)
    cache = device.core.cache
    cache.write(gm.memory, gm.address + 4, I32, 5)
    assert data[1] == 0 and cache.read(gm.memory, gm.address + 4, I32) == 5
    changes = device.machine.changes
    cache.clean_and_invalidate(gm.address)
    assert data[1] == 5 and device.machine.changes == changes + 1 and faults(device) == []
    cache.clean_and_invalidate(gm.address)  # nothing cached any more
    assert device.machine.changes == changes + 1


def test_write_back_of_a_whole_line_loses_what_others_wrote(device: Any) -> None:
    """False sharing: the neighbour's new value goes back to the old one, and the fault says so."""
    data = np.zeros(16, np.int32)
    gm = device.gm(data)
    cache = device.core.cache
    cache.write(gm.memory, gm.address, I32, 1)
    data[3] = 77
    cache.clean_all()
    assert data.tolist() == [1] + [0] * 15
    (fault,) = device.recorder.faults
    assert fault.code == "lost_write" and fault.facts["address"] == gm.address + 12 and fault.facts["bytes"] == 1
    assert fault.facts["newer"] == [77] and fault.facts["older"] == [0]


def test_least_recently_used_line_is_evicted(device: Any) -> None:
    """A cache of two lines: touching a third drops the older one and writes it back."""
    data = np.zeros(64, np.int32)
    gm = device.gm(data)
    cache = ScalarCache(device.core, 128, 64)
    cache.write(gm.memory, gm.address, I32, 1)
    cache.write(gm.memory, gm.address + 64, I32, 2)
    cache.read(gm.memory, gm.address, I32)
    cache.read(gm.memory, gm.address + 128, I32)
    assert data[16] == 2 and data[0] == 0 and len(cache.lines) == 2
    cache.clean_and_invalidate_all()
    assert data[0] == 1 and not cache.lines


def test_sizes_are_those_of_the_chip(device: Any, cube: Any) -> None:
    """hardware.md 1.4: 32 KB for an AIV, 16 KB for an AIC of A2, lines of 64 bytes."""
    assert (device.core.cache.capacity, device.core.cache.line_bytes) == (512, 64)
    assert cube.core.cache.capacity == 256


def test_element_across_two_lines(device: Any) -> None:
    """An address that is not aligned: both lines take part."""
    data = np.zeros(128, np.uint8)
    data[62:66] = [1, 2, 3, 4]
    gm = device.gm(data)
    cache = device.core.cache
    assert cache.read(gm.memory, gm.address + 62, I32) == 0x04030201
    cache.write(gm.memory, gm.address + 62, I32, 0x0A0B0C0D)
    cache.clean_all()
    assert data[60:68].tolist() == [0, 0, 0x0D, 0x0C, 0x0B, 0x0A, 0, 0]


def test_line_past_the_end_of_the_array(device: Any) -> None:
    """Only the array's bytes are loaded and written; outside it reads are 0 and writes are dropped."""
    data = np.arange(5, dtype=np.int32)
    gm = device.gm(data)
    cache = device.core.cache
    cache.write(gm.memory, gm.address + 16, I32, 9)
    cache.write(gm.memory, gm.address + 20, I32, 9)
    assert cache.read(gm.memory, gm.address + 20, I32) == 0 and cache.read(gm.memory, gm.address - 4, I32) == 0
    cache.clean_all()
    assert data.tolist() == [0, 1, 2, 3, 9]


def test_read_only_array(device: Any) -> None:
    """A store into it never arrives."""
    data = np.arange(16, dtype=np.int32)
    data.flags.writeable = False
    gm = device.gm(data)
    device.core.cache.write(gm.memory, gm.address, I32, 5)
    device.core.cache.clean_all()
    assert data[0] == 0


def test_preload(device: Any) -> None:
    """The line is cached from then on."""
    data = np.zeros(32, np.int32)
    gm = device.gm(data)
    cache = device.core.cache
    cache.preload(gm.memory, gm.address + 70)
    data[:] = 1
    assert cache.read(gm.memory, gm.address + 64, I32) == 0 and cache.read(gm.memory, gm.address, I32) == 1
    cache.preload(gm.memory, gm.address + 4096)
    assert len(cache.lines) == 2
