"""Matmul in mixed kernels: two vector cores ask the cube core of their block, which serves them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import Record, construct
from npuscope.errors import UserError
from npuscope.npu.core import Core
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import OPCODES, Buffer, CoreType, Pipe, Role, Space

F16, F32 = np.float16, np.float32
Kernel = Generator[Any, None, None]
M, N, K = 32, 48, 40
A1, VECIN = 1, 9


def whole(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, limit: int = 5) -> np.ndarray:
    """Small whole numbers, whose sums are exact in any order."""
    return rng.integers(-limit, limit + 1, shape).astype(dtype)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(F32) @ b.astype(F32)


def local(device: Any, core: Core, values: np.ndarray, space: Space = Space.UB, address: int = 0) -> Tensor:
    """A tensor holding `values` on a core."""
    memory = core.memories[space]
    memory.bytes[address : address + values.nbytes] = values.reshape(-1).view(np.uint8)
    name = f"t{core.index}_{address}"
    buffer = core.buffer(Buffer(space, core.index, address, values.nbytes, "tensor", name, values.dtype.name))
    return Tensor(memory, address, values.dtype, buffer, values.size, VECIN if space == Space.UB else A1)


def held(tensor: Tensor) -> np.ndarray:
    """What a local tensor holds."""
    start = tensor.address - tensor.memory.base
    return tensor.memory.bytes[start : start + tensor.length * tensor.dtype.itemsize].view(tensor.dtype).copy()


def rows(device: Any) -> list[tuple[int, str, str]]:
    """(core, pipe, name) of every row but those that end the cores."""
    batch = device.trace()
    columns = (batch.column(name).tolist() for name in ("core", "pipe", "opcode"))
    found = [(core, Pipe(pipe).name, OPCODES.names[code]) for core, pipe, code in zip(*columns, strict=True)]
    return [row for row in found if row[2] != "kernel_end"]


def faults(device: Any) -> list[str]:
    return [fault.facts["what"] for fault in device.recorder.faults]


class Bench:
    """A mixed kernel under test: a handle a core and what registering it takes."""

    def __init__(self, text: str, record: Record) -> None:
        self.text, self.record = text, record

    def register(self, call: Any) -> Generator[Any, None, Record]:
        """register_matmul on this core; ends the kernel of an AIC."""
        handle = construct("matmul", self.text)
        yield from call("regist_matmul_obj", None, None, handle, self.record)
        return handle

    def give(self, call: Any, handle: Record, a: Tensor, b: Tensor) -> Kernel:
        """Set both operands."""
        yield from call("matmul.set_tensor_a", handle, a, 0)
        yield from call("matmul.set_tensor_b", handle, b, 0)


@pytest.fixture
def bench(matmul_type: Any, tiling: Any) -> Any:
    def build(record: Record | None = None, **named: Any) -> Bench:
        return Bench(matmul_type(F16, F32, **named), record or tiling(M, N, K))

    return build


def test_each_vector_core_of_each_block_gets_its_own_product(mixed: Any, bench: Any, rng: Any) -> None:
    blocks = 3
    a, b = whole(rng, (2 * blocks, M, K), F16), whole(rng, (K, N), F16)
    c = np.zeros((2 * blocks, M, N), F32)
    went_on: list[CoreType] = []
    setup = bench()

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        went_on.append(core.info.type)
        own = core.info.block
        yield from setup.give(call, handle, device.gm(a[own]), device.gm(b))
        yield from call("matmul.iterate_all", handle, device.gm(c[own]), 0, 0, 0, 0, 1)
        yield from call("matmul.end", handle)

    device = mixed(kernel, blocks)
    np.testing.assert_array_equal(c, a.astype(F32) @ b.astype(F32))
    assert went_on == [CoreType.AIV] * (2 * blocks)
    assert faults(device) == []


def test_the_work_is_the_cube_cores_and_messages_order_it(mixed: Any, bench: Any, rng: Any) -> None:
    a, b, c = whole(rng, (M, K), F16), whole(rng, (K, N), F16), np.zeros((M, N), F32)
    setup = bench()

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        if core.info.block:
            return
        yield from setup.give(call, handle, device.gm(a), device.gm(b))
        yield from call("matmul.iterate_all", handle, device.gm(c), 0, 0, 0, 0, 1)

    found = rows(mixed(kernel, vectors=2))
    assert [row for row in found if row[0] == 0][0] == (0, "S", "kfc_serve")
    assert {row[1:] for row in found if row[0] == 0} == {
        ("S", "kfc_serve"), ("MTE2", "copy_gm_to_l1"), ("MTE1", "load_data"), ("M", "mmad"), ("FIX", "fixpipe"),
        ("FIX", "kfc_notify"),
    }  # fmt: skip
    assert [row for row in found if row[0] == 1] == [
        (1, "S", "register_matmul"), (1, "MTE3", "kfc_post"), (1, "S", "kfc_wait")
    ]  # fmt: skip
    assert [row for row in found if row[0] == 2] == [(2, "S", "register_matmul")]
    order = [row[2] for row in found]
    assert order.index("kfc_post") < order.index("mmad") < order.index("kfc_notify") < order.index("kfc_wait")


def test_tiles_come_into_ub_one_by_one(mixed: Any, bench: Any, rng: Any) -> None:
    a, b = whole(rng, (M, K), F16), whole(rng, (K, N), F16)
    tiles: dict[int, list[np.ndarray]] = {}
    setup = bench(c_position="veccalc")

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        own = tiles.setdefault(core.info.block, [])
        yield from setup.give(call, handle, device.gm(a * (1 + core.info.block)), device.gm(b))
        room = local(device, core, np.zeros(32 * 32, F32))
        while (yield from call("matmul.iterate", handle, 0, 1)):
            yield from call("matmul.get_tensor_c", handle, room, [0, 1, 1])
            own.append(held(room))
        yield from call("matmul.end", handle)
        assert (yield from call("matmul.iterate", handle, 0, 1)) == 0

    device = mixed(kernel)
    expected = product(a, b)
    for core in range(2):
        first, second = tiles[core]
        np.testing.assert_array_equal(first.reshape(32, 32), expected[:, :32] * (1 + core))
        np.testing.assert_array_equal(second[: 32 * 16].reshape(32, 16), expected[:, 32:] * (1 + core))
    own = [row[1:] for row in rows(device) if row[0] == 1]
    start = own.index(("MTE2", "copy_gm_to_ub"))
    assert own[start - 1 : start + 3] == [
        ("S", "kfc_wait"), ("MTE2", "copy_gm_to_ub"), ("MTE2", "set_flag"), ("V", "wait_flag")
    ]  # fmt: skip


def test_get_tensor_c_to_gm_and_to_a_local_tensor(mixed: Any, bench: Any, tiling: Any, rng: Any) -> None:
    a, b, c = whole(rng, (32, K), F16), whole(rng, (K, 32), F16), np.zeros((32, 32), F32)
    seen: list[np.ndarray] = []
    setup = bench(tiling(32, 32, K))

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        if core.info.block:
            return
        yield from setup.give(call, handle, device.gm(a), device.gm(b))
        room = local(device, core, np.zeros(32 * 32, F32))
        yield from call("matmul.iterate", handle, 0, 1)
        yield from call("matmul.get_tensor_c", handle, device.gm(c), [room, 0, 0, 1])
        seen.append(held(room))

    mixed(kernel)
    np.testing.assert_array_equal(c, product(a, b))
    np.testing.assert_array_equal(seen[0].reshape(32, 32), product(a, b))


def test_operands_in_ub_are_sent_when_they_are_set(mixed: Any, bench: Any, rng: Any) -> None:
    a, b, c = whole(rng, (M, K), F16), whole(rng, (K, N), F16), np.zeros((M, N), F32)
    bias = whole(rng, (N,), F32)
    setup = bench()
    setup.record.isBias = 1

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        if core.info.block:
            return
        room = local(device, core, a)
        added = local(device, core, bias, address=1 << 14)
        yield from setup.give(call, handle, room, device.gm(b))
        yield from call("matmul.set_bias", handle, added)
        room.memory.bytes[:] = 0  # what the kernel does with its buffer later does not matter
        yield from call("matmul.iterate_all", handle, device.gm(c), 0, 0, 0, 0, 1)

    device = mixed(kernel)
    np.testing.assert_array_equal(c, product(a, b) + bias)
    own = [row[1:] for row in rows(device) if row[0] == 1]
    assert own[1:4] == [("V", "set_flag"), ("MTE3", "wait_flag"), ("MTE3", "copy_ub_to_gm")]


def test_the_copy_of_an_operand_in_ub_reads_all_of_it(mixed: Any, bench: Any) -> None:
    setup = bench()
    tensors: list[Tensor] = []

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        tensors.append(local(device, core, np.zeros((M, K), F16)))
        yield from call("matmul.set_tensor_a", handle, tensors[-1], 0)

    device = mixed(kernel, vectors=1)
    assert device.touched(tensors[0], Role.READ) == set(range(M * K * 2))


def test_a_bias_counts_for_one_walk_of_a_client(mixed: Any, bench: Any, rng: Any) -> None:
    a, b, bias = whole(rng, (M, K), F16), whole(rng, (K, N), F16), whole(rng, (N,), F32)
    c = np.zeros((2, M, N), F32)
    setup = bench()
    setup.record.isBias = 1

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        if core.info.block:
            return
        yield from setup.give(call, handle, device.gm(a), device.gm(b))
        yield from call("matmul.set_bias", handle, device.gm(bias))
        for turn in range(2):
            yield from call("matmul.iterate_all", handle, device.gm(c[turn]), 0, 0, 0, 0, 1)

    mixed(kernel)
    np.testing.assert_array_equal(c[0], product(a, b) + bias)
    np.testing.assert_array_equal(c[1], product(a, b))


@pytest.mark.parametrize("form", ["get_tensor_c", "async_get_tensor_c", "get_tensor_c_return"])
def test_asynchronous_tiles_wait_in_the_workspace(mixed: Any, bench: Any, rng: Any, form: str) -> None:
    a, b = whole(rng, (M, K), F16), whole(rng, (K, N), F16)
    seen: list[np.ndarray] = []
    setup = bench(c_position="vecin")

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        if core.info.block:
            return
        yield from call("matmul.set_workspace", handle, device.gm(np.zeros(2 * 32 * 32, F32)), None)
        yield from setup.give(call, handle, device.gm(a), device.gm(b))
        while (yield from call("matmul.iterate", handle, 0, 0)):
            room = local(device, core, np.zeros(32 * 32, F32))
            if form == "get_tensor_c_return":
                room = yield from call("matmul.get_tensor_c_return", handle, 0, 0, 0)
            elif form == "get_tensor_c":
                yield from call("matmul.get_tensor_c", handle, room, [0, 0, 0])
            else:
                yield from call("matmul.async_get_tensor_c", handle, room)
                yield from call("matmul.wait_get_tensor_c", handle)
            seen.append(held(room))

    device = mixed(kernel)
    expected = product(a, b)
    assert len(seen) == 2
    np.testing.assert_array_equal(seen[0].reshape(32, 32), expected[:, :32])
    np.testing.assert_array_equal(seen[1][: 32 * 16].reshape(32, 16), expected[:, 32:])
    assert faults(device) == []
    own = [row[2] for row in rows(device) if row[0] == 1]
    assert own.count("kfc_post") == 1
    assert own.count("kfc_wait") == 2


def test_a_cached_tile_too_many_is_a_fault(mixed: Any, bench: Any, tiling: Any, rng: Any) -> None:
    a, b = whole(rng, (32, K), F16), whole(rng, (K, 32), F16)
    setup = bench(tiling(32, 32, K), c_position="vecin")

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        if core.info.block:
            return
        yield from call("matmul.set_workspace", handle, device.gm(np.zeros(32 * 32, F32)), None)
        yield from setup.give(call, handle, device.gm(a), device.gm(b))
        room = local(device, core, np.zeros(32 * 32, F32))
        yield from call("matmul.iterate", handle, 0, 0)
        for _ in range(2):
            yield from call("matmul.get_tensor_c", handle, room, [0, 0, 0])

    assert faults(mixed(kernel)) == ["the order of calls"]


@pytest.mark.parametrize("name", ["iterate_all", "iterate_batch"])
def test_asynchronous_calls_are_waited_for_where_the_kernel_says(
    mixed: Any, bench: Any, rng: Any, name: str
) -> None:
    a, b, c = whole(rng, (M, K), F16), whole(rng, (K, N), F16), np.zeros((M, N), F32)
    setup = bench(layouts=(1, 1, 1) if name == "iterate_batch" else (0, 0, 0))

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        if core.info.block:
            return
        yield from setup.give(call, handle, device.gm(a), device.gm(b))
        if name == "iterate_all":
            yield from call("matmul.iterate_all", handle, device.gm(c), 0, 0, 1, 0, 0)
        else:
            yield from call("matmul.iterate_batch", handle, device.gm(c), 1, 1, 0, 0, 0, 0, 0, 0, 0, 1)
        yield from call(f"matmul.wait_{name}", handle)

    device = mixed(kernel)
    np.testing.assert_array_equal(c, product(a, b))
    found = [row[2] for row in rows(device)]
    assert found.count("kfc_notify") == found.count("kfc_wait") == 1


def test_rounds_of_batches_are_fetched_from_the_workspace(mixed: Any, bench: Any, tiling: Any, rng: Any) -> None:
    m, n, k, loops, heads = 16, 32, 16, 2, 2
    a, b = whole(rng, (loops, heads, m, k), F16), whole(rng, (loops, heads, k, n), F16)
    fields = {
        f"{side}LayoutInfo{axis}": size
        for side, names, sizes in (
            ("A", "BNSD", (loops, heads, m, k)), ("B", "BNSD", (loops, heads, k, n)),
            ("C", ("B", "N", "S1", "S2"), (loops, heads, m, n)),
        )
        for axis, size in zip(names, sizes, strict=True)
    }  # fmt: skip
    setup = bench(tiling(m, n, k, **fields), layouts=(4, 4, 4), is_n_batch=1)
    seen: list[np.ndarray] = []

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        if core.info.block:
            return
        yield from call("matmul.set_workspace", handle, device.gm(np.zeros(loops * heads * m * n, F32)), None)
        yield from setup.give(call, handle, device.gm(a), device.gm(b))
        yield from call("matmul.iterate_n_batch", handle, loops, heads, heads, 0, 0, 0, 0, 0, 0)
        for _ in range(loops):
            room = local(device, core, np.zeros(heads * m * n, F32))
            yield from call("matmul.get_batch_tensor_c_local_mem", handle, room, heads, heads, 0, 0)
            seen.append(held(room))

    device = mixed(kernel)
    np.testing.assert_array_equal(np.stack(seen).reshape(loops, heads, m, n), product(a, b))
    found = [row[2] for row in rows(device)]
    assert found.count("kfc_notify") == found.count("kfc_wait") == loops


def test_a_handle_in_l1_means_the_cube_cores_l1(mixed: Any, bench: Any, tiling: Any, rng: Any) -> None:
    a, b, c = whole(rng, (32, 16), F16), whole(rng, (16, 32), F16), np.zeros((32, 32), F32)
    setup = bench(tiling(32, 32, 16))

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        if core.is_aic:
            core.memories[Space.L1].bytes[: a.nbytes] = a.reshape(-1).view(np.uint8)  # 16 columns: NZ is ND
        handle = yield from setup.register(call)
        if core.info.block:
            return
        own = local(device, core, np.zeros((32, 16), F16), Space.L1)
        yield from setup.give(call, handle, own, device.gm(b))
        yield from call("matmul.iterate_all", handle, device.gm(c), 0, 0, 0, 0, 1)

    mixed(kernel)
    np.testing.assert_array_equal(c, product(a, b))


def test_a_fake_message_computes_nothing(mixed: Any, bench: Any, rng: Any) -> None:
    a, b, c = whole(rng, (M, K), F16), whole(rng, (K, N), F16), np.full((M, N), 3, F32)
    setup = bench()

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        yield from setup.give(call, handle, device.gm(a), device.gm(b))
        yield from call("matmul.iterate_all", handle, device.gm(c), 0, 0, 0, 1, 1)

    found = rows(mixed(kernel))
    assert (c == 3).all()
    assert "mmad" not in [row[2] for row in found]
    assert [row[2] for row in found].count("kfc_wait") == 2


def test_hf32_is_set_on_the_cube_core(mixed: Any, bench: Any) -> None:
    setup = bench()
    seen: list[bool] = []

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        if core.info.block == 0:
            yield from call("matmul.set_hf32", handle, 1, 0)
            seen.append(device.machine.cores[0].registers.hf32)
            seen.append(core.registers.hf32)

    mixed(kernel)
    assert seen == [True, False]


def test_a_second_object_is_refused(mixed: Any, bench: Any) -> None:
    setup = bench()

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        yield from setup.register(call)
        yield from setup.register(call)

    assert faults(mixed(kernel)) == ["the number of register_matmul calls of a mixed kernel"] * 2


def test_errors_of_a_client_name_what_is_missing(mixed: Any, bench: Any, rng: Any) -> None:
    setup = bench()

    def kernel(device: Any, core: Core, call: Any) -> Kernel:
        handle = yield from setup.register(call)
        yield from call("matmul.set_tensor_a", handle, device.gm(whole(rng, (M, K), F16)), 0)
        yield from call("matmul.iterate", handle, 0, 1)

    with pytest.raises(UserError, match="set_tensor_b"):
        mixed(kernel)
