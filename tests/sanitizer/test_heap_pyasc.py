"""Device memory that a pyasc script allocates with asc.lib.runtime: scenarios M16-M20 and M23, bug A18, clean twins."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest

from npuscope.sanitizer.findings import Severity

Sanitize = Callable[..., Any]

TOOLS = """
import ctypes
H2D, D2H, D2D = (rt.support.MemcpyKind(n) for n in (1, 2, 3))

def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)

def view(handle, count):
    return np.ctypeslib.as_array(ctypes.cast(handle, ctypes.POINTER(ctypes.c_float)), (count,))

@asc.jit
def kernel(x: asc.GlobalAddress, y: asc.GlobalAddress):
    x_gm = asc.GlobalTensor()
    x_gm.set_global_buffer(x)
    local = asc.LocalTensor(x.dtype, asc.TPosition.VECIN, 0, 64)
    asc.data_copy(local, x_gm, 64)

data = np.arange(64, dtype=np.float32)
"""


def line(frames: Any) -> str:
    """The source text of the innermost frame."""
    return linecache.getline(frames[0].file, frames[0].line).strip()


@pytest.fixture
def heap(sanitize: Sanitize) -> Sanitize:
    """Run text after TOOLS."""
    return lambda text, **settings: sanitize(TOOLS + text, **settings)


class TestClean:
    def test_a_round_trip(self, heap: Sanitize) -> None:
        """Allocate, copy there, between blocks and back, free: the values arrive and nothing is said."""
        checked = heap(
            """
back = np.zeros(64, np.float32)
first = rt.copy_data_to_device(pointer(data), data.nbytes)
second = rt.malloc(256)
assert first.value % 512 == 0 and second.value % 512 == 0
rt.memcpy(second, 256, first, 256, D2D)
rt.copy_data_from_device(pointer(back), second, back.nbytes)
rt.free(first)
rt.free(second)
assert (back == data).all()
""", leaks=True, unused=True,
        )
        assert (checked.code, checked.findings) == (0, [])

    def test_arrays_are_no_blocks(self, heap: Sanitize) -> None:
        """An array that a script passes to a kernel does not leak and is not freed."""
        checked = heap("kernel[1](data, data)\nkernel[1](np.zeros(64, np.float32), data)\n", leaks=True)
        assert (checked.code, checked.findings) == (0, [])

    def test_a_block_as_an_argument(self, heap: Sanitize) -> None:
        """A numpy view of a block is the block's memory; the launch frees it, as pyasc's launcher does."""
        checked = heap(
            """
block = rt.copy_data_to_device(pointer(data), data.nbytes)
kernel[1](view(block, 64), data)
""", leaks=True, unused=False,
        )
        assert (checked.code, checked.findings) == (0, [])


class TestIllegalFree:
    def test_m16_twice(self, heap: Sanitize) -> None:
        """M16: the second free is pyasc's KeyError and a finding with the lines of allocation and first free."""
        checked = heap("block = rt.malloc(1024)\nrt.free(block)\nrt.free(block)  # again\n")
        (finding,) = checked.findings
        assert (checked.code, finding.kind, finding.severity) == (1, "illegal-free", Severity.ERROR)
        assert line(finding.frames) == "rt.free(block)  # again"
        first = finding.frames[0].line
        assert f"by rt.malloc at {finding.frames[0].file}:{first - 2}." in finding.notes[0]
        assert f"by rt.free at {finding.frames[0].file}:{first - 1}." in finding.notes[1]
        assert finding.owner.size == 1024

    def test_m16_after_a_launch(self, heap: Sanitize) -> None:
        """pyasc frees all runtime memory when a launch ends: the script's own free comes second."""
        checked = heap("block = rt.malloc(1024)\nkernel[1](data, data)\nrt.free(block)\n")
        (finding,) = checked.findings
        assert (checked.code, finding.kind) == (1, "illegal-free")
        assert "remove this free" in finding.advice
        assert "with all other runtime memory when the launch" in finding.notes[1]

    def test_m17_inside_a_block(self, heap: Sanitize) -> None:
        """M17: an interior pointer, named by how far in it is; the block stays live."""
        checked = heap(
            """
block = rt.malloc(1024)
try:
    rt.free(ctypes.c_void_p(block.value + 128))
except KeyError:
    rt.free(block)
""", leaks=True,
        )
        (finding,) = checked.findings
        assert (checked.code, finding.kind) == (0, "illegal-free")
        assert "128 bytes into a block" in finding.summary

    def test_foreign(self, heap: Sanitize) -> None:
        """The host's own memory."""
        checked = heap("rt.free(pointer(data))\n")
        (finding,) = checked.findings
        assert (finding.kind, finding.owner, finding.notes) == ("illegal-free", None, ())


class TestLeaks:
    LEAK = """
def allocate():
    return rt.malloc(2048)

kept = [allocate() for _ in range(3)]
rt.free(kept[1])
"""

    def test_m18(self, heap: Sanitize) -> None:
        """M18: what is live at the end, per allocating line, with its callers."""
        (finding,) = heap(self.LEAK, leaks=True).findings
        assert (finding.kind, finding.severity, finding.size, finding.count) == ("leak", Severity.ERROR, 4096, 2)
        assert line(finding.frames) == "return rt.malloc(2048)"
        assert line(finding.frames[1:]).startswith("kept = ")
        blocks = finding.facts["blocks"]
        assert [size for _, size, _ in blocks] == [2048, 2048] and blocks[0][0] < blocks[1][0]

    def test_only_when_asked(self, heap: Sanitize) -> None:
        """Without the setting nothing is said."""
        assert heap(self.LEAK).findings == []

    def test_a_launch_frees(self, heap: Sanitize) -> None:
        """What was allocated before a launch is gone after it; what came later leaks."""
        (finding,) = heap("rt.malloc(512)\nkernel[1](data, data)\nrt.malloc(768)\n", leaks=True).findings
        assert (finding.kind, finding.size) == ("leak", 768)


class TestUnused:
    def test_m19(self, heap: Sanitize) -> None:
        """M19: freed or not, what no copy and no kernel touched; one that a copy touched is not named."""
        checked = heap(
            """
rt.malloc(512)
freed = rt.malloc(640)
rt.free(freed)
used = rt.copy_data_to_device(pointer(data), data.nbytes)
""", unused=True,
        )
        assert [(found.kind, found.severity, found.size) for found in checked.findings] == [
            ("unused-memory", Severity.WARNING, 512), ("unused-memory", Severity.WARNING, 640)
        ]
        assert line(checked.findings[1].frames) == "freed = rt.malloc(640)"

    def test_a_kernel_touches(self, heap: Sanitize) -> None:
        """Passing a block is not touching it."""
        text = "a, b = rt.malloc(256), rt.malloc(256)\nkernel[1](view(a, 64), view(b, 64))\n"
        (finding,) = heap(text, unused=True).findings
        assert (finding.kind, finding.size, finding.count) == ("unused-memory", 256, 1)

    def test_arguments(self, heap: Sanitize) -> None:
        """An argument that no launch of the kernel touches; one that some launch does is not named."""
        checked = heap("kernel[1](data, data.copy())\nkernel[1](data, data.copy())\n", unused=True)
        (finding,) = checked.findings
        assert (finding.kind, finding.kernel, finding.owner.name, finding.size) == ("unused-memory", "kernel", "y", 256)
        assert heap("kernel[1](data, data.copy())\n").findings == []

    def test_a_launch_that_did_not_end(self, heap: Sanitize) -> None:
        """A deadlock leaves open what the kernel would have touched."""
        checked = heap(
            """
@asc.jit
def stuck(x: asc.GlobalAddress):
    asc.wait_flag(asc.HardEvent.MTE2_V, 0)

stuck[1](data)
""", unused=True,
        )
        assert "unused-memory" not in checked.kinds


class TestUse:
    def test_m20_freed_before_the_launch(self, heap: Sanitize) -> None:
        """M20: the access, the allocation and the free, each with its line."""
        checked = heap(
            """
block = rt.copy_data_to_device(pointer(data), data.nbytes)
array = view(block, 64)
rt.free(block)
kernel[1](array, data)
"""
        )
        (finding,) = checked.findings
        assert (finding.kind, finding.owner.name, finding.size) == ("use-after-free", "x", 256)
        assert line(finding.access.frames) == "asc.data_copy(local, x_gm, 64)"
        launch = finding.launch_frame.line
        assert f"kernel.py:{launch - 3}." in finding.notes[0]
        assert f"by rt.free at {finding.launch_frame.file}:{launch - 1}." in finding.notes[1]

    def test_a18_across_launches(self, heap: Sanitize) -> None:
        """A18: a workspace of one launch is used by the next, after new memory was taken; its bytes are not mixed up."""
        checked = heap(
            """
work = rt.copy_data_to_device(pointer(data), data.nbytes)
array = view(work, 64)
kernel[1](array, data)
other = rt.copy_data_to_device(pointer(data + 100), data.nbytes)
assert other.value != work.value
kernel[1](array, data)
"""
        )
        (finding,) = checked.findings
        assert (checked.code, finding.kind, finding.launch) == (0, "use-after-free", 1)
        assert "when the launch" in finding.notes[1]

    def test_passing_is_not_using(self, heap: Sanitize) -> None:
        """A freed block that the kernel does not touch is no finding."""
        text = "b = rt.malloc(256)\ny = view(b, 64)\nrt.free(b)\nkernel[1](data, y)\n"
        assert heap(text).findings == []

    def test_a_view_beyond_its_block(self, heap: Sanitize) -> None:
        """The block ends first: what the kernel reads behind it is outside."""
        text = "b = rt.copy_data_to_device(pointer(data), 128)\nkernel[1](view(b, 64), data)\n"
        (finding,) = heap(text).findings
        assert (finding.kind, finding.size, finding.element) == ("illegal-read", 128, 32)

    def test_m23_copies_beyond_a_block(self, heap: Sanitize) -> None:
        """M23: bytes past the end, by how many, both ways; nothing next to the block changes."""
        checked = heap(
            """
big = np.ones(256, np.float32)
back = np.ones(256, np.float32)
block = rt.malloc(512)
rt.memcpy(block, 1024, pointer(big), 1024, H2D)
rt.memcpy(pointer(back), 1024, block, 1024, D2H)
assert (back[:128] == 1).all() and (back[128:] == 0).all()
rt.memcpy(ctypes.c_void_p(block.value + 256), 256, pointer(big), 256, H2D)
"""
        )
        assert [(found.kind, found.size) for found in checked.findings] == [
            ("illegal-write", 512), ("illegal-read", 512)
        ]
        assert checked.code == 0
        assert "Copy at most 512 bytes" in checked.findings[0].advice

    def test_copies_of_freed_and_foreign_memory(self, heap: Sanitize) -> None:
        """A late copy names both lines; a pointer that is no device memory is written nowhere."""
        checked = heap(
            """
block = rt.malloc(256)
rt.free(block)
rt.memcpy(pointer(data), 256, block, 256, D2H)
keep = data.copy()
rt.memcpy(pointer(data), 256, pointer(keep + 1), 256, H2D)
assert (data == keep).all()
"""
        )
        assert checked.kinds == ["use-after-free", "illegal-write"]
        assert len(checked.findings[0].notes) == 2

    def test_the_runtime_refuses_a_copy_into_less_room(self, heap: Sanitize) -> None:
        """As the vendor's runtime: an error code, no copy."""
        checked = heap("b = rt.malloc(64)\nrt.memcpy(b, 64, pointer(data), 256, H2D)\n")
        assert checked.code == 1


def test_runtime_memory_is_undefined_until_it_is_written(sanitize: Sanitize) -> None:
    """The content of rt.malloc is nothing: NaN under a check."""
    checked = sanitize(TOOLS + "assert np.isnan(view(rt.malloc(256), 64)).all()\n")
    assert checked.code == 0
