"""The kernels of the measurements on silicon, each with the part of the published shape that it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

A2, A5 = "Ascend910B1", "Ascend950PR"


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel as `run` launches it. Where it runs a part of the published shape, `scale` takes its task's time to that
    of the whole, `mean` (as `scale` where 0) the pipes' times, and `part` says which part."""

    run: Callable[[], None]
    scale: float = 1.0
    mean: float = 0.0
    part: str = ""

    def scaled(self, metric: str, value: float, overhead: float) -> float:
        """A figure of the part made one of the whole; `overhead` us of a task are paid once."""
        if metric == "task":
            return (value - overhead) * self.scale + overhead
        if metric in ("cycles", "products"):
            return value
        return value * (self.mean or self.scale)


def _call(module: str, name: str, *arguments: Any, **named: Any) -> Callable[[], None]:
    """A launch by a function of a module of kernels, imported when it is wanted (pyasc is slow to import)."""

    def run() -> None:
        from importlib import import_module

        getattr(import_module(f"timing_cases.{module}"), name)(*arguments, **named)

    return run


_banks = partial(_call, "banks", "adds")
_tiles = partial(_call, "copies", "tiles")
_four = partial(_call, "copies", "four_times")
_all = partial(_call, "copies", "everyone")
_one = partial(_call, "add", "one_buffer")
_two = partial(_call, "add", "two_buffers")
_matmul = partial(_call, "matmul", "matmul")
_plain = partial(_call, "matmul", "plain")
_products = partial(_call, "matmul", "products")

A2_BLOCKS, A2_MEAN = 96, 256 / 3
"""Blocks of 128 x 256 that the busiest and the average core of 24 have in the 8192 cube: 16 down, 6 or 2 across."""
A5_BLOCKS = 32

CASES: Mapping[tuple[str, str], Case] = {
    (A2, "banks: none"): Case(_banks(0, 0x10100, 0x20000)),
    (A2, "banks: x and y in one bank"): Case(_banks(0, 0x4000, 0x10000)),
    (A2, "banks: x and y in one group"): Case(_banks(0, 0x10000, 0x14100)),
    (A2, "banks: z 32 bytes after x"): Case(_banks(0, 0x10100, 0x4020)),
    (A2, "banks: one block of x, next block each repeat"): Case(_banks(0, 0x10100, 0x10100, 0, 1)),
    (A2, "banks: one block of x, next eight each repeat"): Case(_banks(0, 0x10100, 0x10100, 0, 8)),
    (A2, "add: scalar loop"): Case(_one(1, 4096, 1, scalar=True), 8192, part="1/8192 of the rows"),
    (A2, "add: one core"): Case(_one(1, 4096, 512), 16, part="1/16 of the rows"),
    (A2, "add: all cores"): Case(_one(48, 4096)),
    (A2, "add: large tiles"): Case(_one(48, 16384)),
    (A2, "add: two buffers"): Case(_two(48, 16384, False)),
    (A2, "add: past L2"): Case(_two(48, 16384, True)),
    (A2, "add: friendly banks"): Case(_call("add", "friendly_banks", 48, 16256)),
    (A5, "add: scalar loop"): Case(_one(1, 4096, 1, 21840, True), 8192, part="1/8192 of the rows"),
    (A5, "add: one core"): Case(_one(1, 4096, 512, 21840), 16, part="1/16 of the rows"),
    (A5, "add: all cores"): Case(_one(64, 4096, wide=21840)),
    (A5, "add: large tiles"): Case(_one(64, 21760, wide=21840)),
    (A5, "add: two buffers"): Case(_two(64, 21760, False, 21840)),
    (A5, "add: past L2"): Case(_two(64, 21760, True, 21840)),
    (A5, "add: two buffers, smaller tiles"): Case(_two(64, 20992, False, 20992)),
    (A5, "add: past L2, smaller tiles"): Case(_two(64, 20992, True, 20992)),
    (A2, "copy to UB: 1 x 64"): Case(_tiles("UB", 48, 1, 64, part=16), 16, part="1/16 of the rows"),
    (A2, "copy to UB: 64 x 64"): Case(_tiles("UB", 48, 64, 64)),
    (A2, "copy to UB: 64 x 1024"): Case(_tiles("UB", 48, 64, 1024)),
    (A2, "copy to UB: 64 x 1024, odd width"): Case(_tiles("UB", 48, 64, 1024, 12287)),
    (A5, "copy to UB: 1 x 64"): Case(_tiles("UB", 64, 1, 64, part=16), 16, part="1/16 of the rows"),
    (A5, "copy to UB: 64 x 64"): Case(_tiles("UB", 64, 64, 64)),
    (A5, "copy to UB: 64 x 1024"): Case(_tiles("UB", 64, 64, 1024)),
    (A5, "copy to UB: 64 x 1024, odd width"): Case(_tiles("UB", 64, 64, 1024, 12287)),
    (A2, "copy to L1: 64 x 64"): Case(_tiles("L1", 24, 64, 64)),
    (A2, "copy to L1: 64 x 256"): Case(_tiles("L1", 24, 64, 256)),
    (A2, "copy to L1: 64 x 256, odd width"): Case(_tiles("L1", 24, 64, 256, 12287)),
    (A5, "copy to L1: 64 x 64"): Case(_tiles("L1", 32, 64, 64)),
    (A5, "copy to L1: 64 x 256"): Case(_tiles("L1", 32, 64, 256)),
    (A5, "copy to L1: 64 x 256, odd width"): Case(_tiles("L1", 32, 64, 256, 12287)),
    (A2, "copy to UB: whole, four times"): Case(_four("UB", 48, True)),
    (A5, "copy to UB: whole, four times"): Case(_four("UB", 64, True)),
    (A2, "copy to UB: quarters, four times each"): Case(_four("UB", 48, False), 4, part="one of the quarters"),
    (A5, "copy to UB: quarters, four times each"): Case(_four("UB", 64, False), 4, part="one of the quarters"),
    (A2, "copy to L1: whole, four times"): Case(_four("L1", 24, True)),
    (A5, "copy to L1: whole, four times"): Case(_four("L1", 32, True)),
    (A2, "copy to L1: quarters, four times each"): Case(_four("L1", 24, False), 4, part="one of the quarters"),
    (A5, "copy to L1: quarters, four times each"): Case(_four("L1", 32, False), 4, part="one of the quarters"),
    (A2, "copy to UB: all cores all of it, in step"): Case(_all("UB", 48, 6144, 128, False)),
    (A2, "copy to UB: all cores all of it, in turn"): Case(_all("UB", 48, 6144, 128, True)),
    (A5, "copy to UB: all cores all of it, in step"): Case(_all("UB", 64, 8192, 128, False)),
    (A5, "copy to UB: all cores all of it, in turn"): Case(_all("UB", 64, 8192, 128, True)),
    (A2, "copy to L1: all cores all of it, in step"): Case(_all("L1", 24, 6144, 256, False)),
    (A2, "copy to L1: all cores all of it, in turn"): Case(_all("L1", 24, 6144, 256, True)),
    (A5, "copy to L1: all cores all of it, in step"): Case(_all("L1", 32, 8192, 256, False)),
    (A5, "copy to L1: all cores all of it, in turn"): Case(_all("L1", 32, 8192, 256, True)),
    (A2, "ND to NZ: columns 144 blocks apart"): Case(_call("nd_to_nz", "transform", 144)),
    (A2, "ND to NZ: columns 145 blocks apart"): Case(_call("nd_to_nz", "transform", 145)),
    (A2, "matmul: 64 x 64 x 64, one core"): Case(_plain(1, 64, 64, 4, 8192, False), 4096, part="4 of 16384 blocks"),
    (A2, "matmul: 128 x 256 x 64, one core"): Case(_plain(1, 128, 256, 2, 8192, False), 1024, part="2 of 2048 blocks"),
    (A2, "matmul: 24 cores"): Case(
        _plain(24, 128, 256, 1, 2048, False), A2_BLOCKS * 4, A2_MEAN * 4, "a quarter of one of a core's 96 blocks"
    ),
    (A2, "matmul: packets"): Case(
        _matmul(24, 128, (2, 2), 2, False, False), A2_BLOCKS / 2, A2_MEAN / 2, "2 of a core's 96 blocks"
    ),
    (A2, "matmul: large packets"): Case(
        _matmul(24, 128, (8, 4), 2, False, False), A2_BLOCKS / 2, A2_MEAN / 2, "2 of a core's 96 blocks"
    ),
    (A2, "matmul: large packets, unit flags"): Case(
        _matmul(24, 128, (8, 4), 4, False), A2_BLOCKS / 4, A2_MEAN / 4, "4 of a core's 96 blocks"
    ),
    (A5, "matmul: 256 x 256 x 64, one core"): Case(_plain(1, 256, 256, 1, 8192, True), 1024, part="one of 1024 blocks"),
    (A5, "matmul: 32 cores"): Case(
        _plain(32, 256, 256, 1, 2048, True), A5_BLOCKS * 4, part="a quarter of one of a core's 32 blocks"
    ),
    (A5, "matmul: packets"): Case(
        _matmul(32, 256, (2, 2), 1, True, False), A5_BLOCKS, part="one of a core's 32 blocks"
    ),
    (A5, "matmul: large packets"): Case(
        _matmul(32, 256, (4, 4), 1, True, False), A5_BLOCKS, part="one of a core's 32 blocks"
    ),
    (A5, "matmul: large packets, unit flags"): Case(
        _matmul(32, 256, (4, 4), 2, True), A5_BLOCKS / 2, part="2 of a core's 32 blocks"
    ),
    (A2, "products: 128 x 256 x 64"): Case(_products(128, 256, 64)),
    (A2, "products: 128 x 128 x 64"): Case(_products(128, 128, 64)),
    (A5, "products: 128 x 256 x 64"): Case(_products(128, 256, 64)),
    (A5, "products: 128 x 128 x 64"): Case(_products(128, 128, 64)),
    (A5, "GELU: eight calls"): Case(_call("gelu", "gelu", 64, 256, 4096, 2)),
    (A2, "GELU: eight calls"): Case(_call("gelu", "gelu", 48, 342, 4096, 2)),
    (A5, "softmax: calls row by row"): Case(_call("softmax", "softmax"), 2, part="64 of 128 rows"),
}

NOT_REBUILT: Mapping[str, str] = {
    "25, 36": "register vector functions, which pyasc has none of",
    "28 (2 x 12), 29 and 30 (the other cases)": "they differ from the rebuilt ones in what the Matmul object's own "
    "scalar code costs and in which core has which block",
    "33": "MXFP4 operands, which pyasc has none of",
    "38, 40": "large kernels of both core types at once, not written anew yet",
    "42 to 55": "SIMT kernels, which need a SIMT front end",
    "56 to 62": "kernels of a template library, which need its front end",
    "63 to 65, 67, 68": "the kernels are not published well enough",
    "66": "a clock check without a kernel",
}
"""Rows of the list of published measurements without a kernel here, and why."""
