"""Addresses become lines. `objects/` holds what a real compiler made of `add.c`, linked (DWARF 4) and not (DWARF 5); the
right answers are those of binutils' addr2line."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuscope.profiler.ingest.code import NoCode, kernel_name, read_code

OBJECTS = Path(__file__).parent / "objects"
ADD, TILE = "/project/src/add.c", "/project/src/tile.h"


@pytest.mark.parametrize("name", ["linked.o", "relocatable.o"])
@pytest.mark.parametrize(
    ("address", "frames"),
    [
        (0x00, [("add_kernel", ADD, 4)]),
        (0x17, [("add_kernel", ADD, 5)]),
        (0x1D, [("scaled", TILE, 3), ("both", TILE, 8), ("add_kernel", ADD, 6)]),
        (0x20, [("scaled", TILE, 3), ("both", TILE, 9), ("add_kernel", ADD, 6)]),
        (0x26, [("both", TILE, 9), ("add_kernel", ADD, 6)]),
        (0x1000, []),
    ],
)
def test_call_stacks(name: str, address: int, frames: list[tuple[str, str, int]]) -> None:
    found = read_code(OBJECTS / name).frames(address)
    assert [(frame.function, frame.file, frame.line) for frame in found] == frames


def test_functions() -> None:
    assert read_code(OBJECTS / "linked.o").functions == {"add_kernel": 0}


def test_what_has_no_lines(tmp_path: Path) -> None:
    broken = tmp_path / "aicore_binary.o"
    for content in (b"", b"no object", (OBJECTS / "linked.o").read_bytes()[:200]):
        broken.write_bytes(content)
        with pytest.raises(NoCode, match=r"aicore_binary\.o"):
            read_code(broken)


@pytest.mark.parametrize("cut", range(64, 3016, 211))
def test_a_broken_object_is_never_a_traceback(tmp_path: Path, cut: int) -> None:
    content = bytearray((OBJECTS / "linked.o").read_bytes())
    content[cut : cut + 40] = b"\xff" * 40
    file = tmp_path / "aicore_binary.o"
    file.write_bytes(content)
    try:
        read_code(file).frames(0x20)
    except NoCode as error:
        assert str(error)


def test_kernel_names() -> None:
    assert kernel_name(["mm_mix_aic", "mm_mix_aiv"]) == "mm"
    assert kernel_name(["one", "two"]) == kernel_name([]) == ""
