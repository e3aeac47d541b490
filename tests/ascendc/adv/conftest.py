"""Benches of the adv layer: Matmul handles from their type parameters, and mixed kernels written in Python."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import Record, construct
from npuscope.ascendc.registry import entries
from npuscope.npu.core import Core
from npuscope.npu.machine import mixed_cores

IR_NAMES = {"float16": "f16", "float32": "f32", "bfloat16": "bf16", "int8": "i8", "int32": "i32"}
CONFIG = {"do_norm": 1, "iterate_order": 2, "is_bias_batch": 1, "schedule_type": 0}
FLAGS = {"do_norm", "is_bias_batch", "is_n_batch", "is_partial_output", "is_enable_channel_split",
         "intra_block_part_sum"}


def operand(dtype: Any, position: str = "gm", fmt: int = 0, transposed: bool = False, layout: int = 0) -> str:
    """One MatmulType as the IR type spells it."""
    word = "true" if transposed else "false"
    return f"{position}, {fmt} : i32, {IR_NAMES[np.dtype(dtype).name]}, {word}, {layout} : i32"


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same in every run."""
    return np.random.default_rng(7)


@pytest.fixture
def matmul_type() -> Callable[..., str]:
    """The text of a Matmul object's IR type from dtypes of A and C and what differs from plain row-major GM."""

    def build(
        a: Any, c: Any, *, a_format: int = 0, b_format: int = 0, c_format: int = 0, trans_a: bool = False,
        trans_b: bool = False, layouts: tuple[int, int, int] = (0, 0, 0), c_position: str = "gm", **config: int,
    ) -> str:  # fmt: skip
        values = CONFIG | config
        fields = ", ".join(
            f"{name} = {('true' if value else 'false') if name in FLAGS else f'{value} : i32'}"
            for name, value in values.items()
        )
        parts = [
            operand(a, "gm", a_format, trans_a, layouts[0]),
            operand(a, "gm", b_format, trans_b, layouts[1]),
            operand(c, c_position, c_format, False, layouts[2]),
            f"gm, 0 : i32, {IR_NAMES[np.dtype(c).name]}",
        ]
        return f"!ascendc.matmul<{', '.join(parts)}, <{fields}>>"

    return build


@pytest.fixture
def tiling() -> Callable[..., Record]:
    """A TCubeTiling for the product of an (m, k) and a (k, n) matrix on one core."""

    def build(m: int, n: int, k: int, base: tuple[int, int, int] = (32, 32, 32), **others: int) -> Record:
        record = construct("cube_tiling", "!ascendc.cube_tiling")
        sizes = {"M": m, "N": n, "Ka": k, "Kb": k, "singleCoreM": m, "singleCoreN": n, "singleCoreK": k}
        sizes |= dict(zip(("baseM", "baseN", "baseK"), base, strict=True))
        record.__dict__.update(sizes | {"stepM": 1, "stepN": 1} | others)
        return record

    return build


@pytest.fixture
def start(matmul_type: Callable[..., str]) -> Callable[..., Record]:
    """Register a Matmul object on a device and return its handle."""

    def build(device: Any, record: Record, *types: Any, **named: Any) -> Record:
        handle = construct("matmul", matmul_type(*types, **named))
        device.run("regist_matmul_obj", None, None, handle, record)
        return handle

    return build


@pytest.fixture
def mixed(make_device: Any) -> Callable[..., Any]:
    """Run a Python kernel on every core of a mixed launch: ``kernel(core, call)``, where ``call(name, *operands)`` is an
    operation of the library that the kernel must ``yield from``. Returns the device."""

    def run(kernel: Callable[..., Any], blocks: int = 1, vectors: int = 2) -> Any:
        device = make_device(cores=mixed_cores(blocks, vectors))

        def call(core: Core, name: str, *operands: Any) -> Generator[Any, None, Any]:
            entry = entries()[f"ascendc.{name}"]
            if entry.blocking:
                return (yield from entry.function(core, 0, *operands))
            return entry.function(core, 0, *operands)

        def routine(core: Core) -> Generator[Any, None, None]:
            yield from kernel(device, core, lambda name, *operands: call(core, name, *operands))

        device.machine.run(routine, ())
        return device

    return run
