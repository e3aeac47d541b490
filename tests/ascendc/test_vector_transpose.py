"""Transpose and TransDataTo5HD against numpy and the examples on the vendor's pages."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.ascendc.registry import entries
from npuscope.errors import Unsupported, UserError
from npuscope.mlir.program import lower
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Role

HALF, U16, I16, FLOAT, U8 = (np.dtype(kind) for kind in (np.float16, np.uint16, np.int16, np.float32, np.uint8))
B8 = [U8, np.dtype(np.int8)]
B32 = [FLOAT, np.dtype(np.int32), np.dtype(np.uint32)]


def matrix(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


# -- a matrix ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [HALF, U16, I16])
@pytest.mark.parametrize("in_place", [False, True])
def test_transpose(device: Any, dtype: np.dtype[Any], in_place: bool) -> None:
    data = matrix(dtype, (16, 16))
    src = device.local(data)
    dst = src if in_place else device.local(np.zeros((16, 16), dtype))
    device.run("transpose", dst, src)
    assert device.values(dst).reshape(16, 16).tolist() == data.T.tolist()
    assert device.opcodes() == ["vtranspose"]


def test_transpose_footprint(device: Any) -> None:
    src, dst = device.local(matrix(HALF, (16, 16))), device.local(np.zeros(300, HALF))
    device.run("transpose", dst, src)
    assert device.touched(dst, Role.WRITE) == set(range(dst.address, dst.address + 512))
    device.run("transpose", dst, src)
    assert device.touched(src, Role.READ) == set(range(src.address, src.address + 512))


def ext(kind: int, n: int = 0, c: int = 0, h: int = 16, w: int = 16) -> Any:
    entries()  # the library's files add the fields of their records
    return construct("transpose_params_ext", "", n, c, h, w, kind)


def test_transpose_ext_of_a_matrix(device: Any) -> None:
    data = matrix(U16, (16, 16))
    src, dst, work = device.local(data), device.local(np.zeros((16, 16), U16)), device.local(np.zeros(1, U8))
    device.run("transpose_ext", dst, src, work, ext(10))
    assert device.values(dst).reshape(16, 16).tolist() == data.T.tolist()
    assert not device.touched(work, Role.WRITE)


@pytest.mark.parametrize("dtype", [HALF, I16, *B8, *B32])
@pytest.mark.parametrize("shape", [(1, 16, 4, 8), (3, 3, 4, 8), (2, 1, 2, 16), (2, 33, 8, 8)])
def test_nchw_and_nhwc(device: Any, dtype: np.dtype[Any], shape: tuple[int, int, int, int]) -> None:
    data = matrix(dtype, shape)
    src, dst, work = device.local(data), device.local(np.zeros(data.size, dtype)), device.local(np.zeros(65536, U8))
    device.run("transpose_ext", dst, src, work, ext(11, *shape))
    nhwc = data.transpose(0, 2, 3, 1)
    assert device.values(dst).tolist() == nhwc.reshape(-1).tolist()
    back = device.local(np.zeros(data.size, dtype))
    device.run("transpose_ext", back, dst, work, ext(12, *shape))
    assert device.values(back).tolist() == data.reshape(-1).tolist()
    assert device.recorder.faults == []


@pytest.mark.parametrize(
    ("dtype", "kind", "nbytes"),
    # (cSize + 2) * h0 * w0 * sizeof and (cSize * 2 + 1) * h0 * w0 * sizeof, h0 = 16, 32 for 8 bits, w0 * sizeof = 32
    [(HALF, 11, 18 * 16 * 32), (HALF, 12, 33 * 16 * 32), (U8, 11, 18 * 32 * 32), (FLOAT, 12, 33 * 16 * 32)],
)
def test_the_work_buffer_is_as_large_as_the_vendor_says(
    device: Any, dtype: np.dtype[Any], kind: int, nbytes: int
) -> None:
    data = matrix(dtype, (1, 16, 4, 8))
    src, dst, work = device.local(data), device.local(np.zeros(data.size, dtype)), device.local(np.zeros(40000, U8))
    device.run("transpose_ext", dst, src, work, ext(kind, 1, 16, 4, 8))
    assert device.touched(work, Role.WRITE) == set(range(work.address, work.address + nbytes))


@pytest.mark.parametrize(
    ("params", "faults"),
    [
        ((0,), []),
        ((11, 0, 4, 4, 4), []),
        ((12, 2, 0, 4, 4), []),
        ((5,), ["transposeType"]),
        ((10, 0, 0, 8, 16), ["the matrix of TRANSPOSE_ND2ND_B16"]),
    ],
)
def test_what_leaves_the_destination_alone(device: Any, params: tuple[int, ...], faults: list[str]) -> None:
    src, dst = device.local(matrix(U16, (16, 16))), device.local(np.full(256, 7, U16))
    device.run("transpose_ext", dst, src, device.local(np.zeros(1, U8)), ext(*params))
    assert (device.values(dst) == 7).all()
    assert [fault.facts["what"] for fault in device.recorder.faults] == faults
    assert len(device.opcodes()) == 1


def test_images_that_are_no_whole_blocks_are_a_fault(device: Any) -> None:
    data = matrix(HALF, (1, 16, 3, 3))
    src, dst, work = device.local(data), device.local(np.zeros(144, HALF)), device.local(np.zeros(20000, U8))
    device.run("transpose_ext", dst, src, work, ext(11, 1, 16, 3, 3))
    assert device.recorder.faults[0].facts["value"] == "18 bytes"
    assert device.values(dst).tolist() == data.transpose(0, 2, 3, 1).reshape(-1).tolist()


# -- 16 addresses --------------------------------------------------------------------------------------------------


def conversion(repeat: int = 1, dst: int = 0, src: int = 0, dst_high: int = 0, src_high: int = 0) -> Any:
    entries()
    return construct("trans_data_to_5hd_params", "", dst_high, src_high, repeat, dst, src)


def every(tensor: Tensor, elements: int, start: int = 0) -> list[Tensor]:
    """16 tensors `elements` apart."""
    return [tensor.at(start + number * elements) for number in range(16)]


@pytest.mark.parametrize("dtype", [HALF, U16, I16])
def test_16_bit_blocks(device: Any, dtype: np.dtype[Any]) -> None:
    data = matrix(dtype, (16, 16))
    src, dst = device.local(data), device.local(np.zeros((16, 16), dtype))
    device.run("trans_data_to_5hd_tensor_list", every(dst, 16), every(src, 16), conversion())
    assert device.values(dst).reshape(16, 16).tolist() == data.T.tolist()
    assert device.opcodes() == ["vnchwconv"]


@pytest.mark.parametrize("dtype", B32)
def test_32_bit_blocks(device: Any, dtype: np.dtype[Any]) -> None:
    data = np.arange(128).reshape(16, 8).astype(dtype)  # the int32 example of the TransDataTo5HD page
    src, dst = device.local(data), device.local(np.zeros(128, dtype))
    device.run("trans_data_to_5hd_tensor_list", every(dst, 8), every(src, 8), conversion())
    assert device.values(dst).reshape(8, 16).tolist() == data.T.tolist()


@pytest.mark.parametrize("dtype", B8)
@pytest.mark.parametrize("dst_high", [0, 1])
@pytest.mark.parametrize("src_high", [0, 1])
def test_8_bit_half_blocks(device: Any, dtype: np.dtype[Any], dst_high: int, src_high: int) -> None:
    data = (np.arange(512) % 128).reshape(16, 32).astype(dtype)
    src, dst = device.local(data), device.local(np.full((16, 32), 77, dtype))
    params = conversion(dst_high=dst_high, src_high=src_high)
    device.run("trans_data_to_5hd_tensor_list", every(dst, 32), every(src, 32), params)
    expected = np.full((16, 32), 77, dtype)
    expected[:, 16 * dst_high : 16 * dst_high + 16] = data[:, 16 * src_high : 16 * src_high + 16].T
    assert device.values(dst).reshape(16, 32).tolist() == expected.tolist()
    halves = {row * 32 + 16 * dst_high + byte for row in range(16) for byte in range(16)}
    assert {place - dst.address for place in device.touched(dst, Role.WRITE)} == halves


@pytest.mark.parametrize("high", [0, 1])
def test_8_bit_half_blocks_at_uneven_addresses(device: Any, high: int) -> None:
    data = matrix(U8, (20, 32))
    rows = np.random.default_rng(high).permutation(20)[:16]
    src, targets = device.local(data), [device.local(np.zeros(32, U8)) for _ in range(16)]
    params = conversion(dst_high=1 - high, src_high=high)
    device.run("trans_data_to_5hd_tensor_list", targets, [src.at(32 * int(row)) for row in rows], params)
    result = np.array([device.values(target).reshape(2, 16)[1 - high] for target in targets])
    assert result.tolist() == data[rows].reshape(16, 2, 16)[:, high].T.tolist()


@pytest.mark.parametrize(("dtype", "c0"), [(HALF, 16), (FLOAT, 16), (U8, 32)])
def test_nchw_to_nc1hwc0(device: Any, dtype: np.dtype[Any], c0: int) -> None:
    # The page's own loops: 16 source addresses H * W apart, repeats along H * W.
    n, c, h, w = 2, 32, 8, 8
    data = matrix(dtype, (n, c, h, w))
    src, dst = device.local(data), device.local(np.zeros(data.size, dtype))
    lanes = 32 // dtype.itemsize
    for image in range(n):
        for c1 in range(c // c0):
            first = image * c * h * w + c1 * c0 * h * w
            for half in range(c0 // 16):  # 8-bit: two halves of the 32 channels
                sources = every(src, h * w, first + half * 16 * h * w)
                for high in range(2 if dtype == U8 else 1):
                    targets = every(dst, lanes, first + high * 16 * lanes)
                    params = conversion(h * w // lanes, 32 * c0 // 32 if dtype == U8 else 16, 1, half, high)
                    device.run("trans_data_to_5hd_tensor_list", targets, sources, params)
    expected = data.reshape(n, c // c0, c0, h, w).transpose(0, 1, 3, 4, 2)
    assert device.values(dst).tolist() == expected.reshape(-1).tolist()


def test_a_single_repeat_starts_one_stride_further_on(device: Any) -> None:
    # TransDataTo5HD page, repeatTimes: a single repeat adds the strides to the addresses, the first of several not.
    data = matrix(HALF, (16, 2, 16))
    src, dst = device.local(data), device.local(np.zeros((32, 16), HALF))
    device.run("trans_data_to_5hd_tensor_list", every(dst, 16), every(src, 32), conversion(1, 16, 1))
    result = device.values(dst).reshape(32, 16)
    assert not result[:16].any() and result[16:].tolist() == data[:, 1].T.tolist()
    device.run("trans_data_to_5hd_tensor_list", every(dst, 16), every(src, 32), conversion(2, 16, 1))
    result = device.values(dst).reshape(32, 16)
    assert result[:16].tolist() == data[:, 0].T.tolist() and result[16:].tolist() == data[:, 1].T.tolist()


def test_uneven_addresses_and_buffers(device: Any) -> None:
    data = matrix(HALF, (20, 16))
    rows = np.random.default_rng(1).permutation(20)[:16]
    src = device.local(data)
    targets = [device.local(np.zeros(16, HALF)) for _ in range(16)]
    device.run("trans_data_to_5hd_tensor_list", targets, [src.at(16 * int(row)) for row in rows], conversion())
    assert [device.values(target).tolist() for target in targets] == data[rows].T.tolist()
    device.run("trans_data_to_5hd_tensor_list", targets, [src.at(16 * int(row)) for row in rows], conversion())
    assert device.touched(targets[3], Role.WRITE) == set(range(targets[3].address, targets[3].address + 32))


def test_in_place(device: Any) -> None:
    data = matrix(HALF, (16, 16))
    src = device.local(data)
    device.run("trans_data_to_5hd_tensor_list", every(src, 16), every(src, 16), conversion())
    assert device.values(src).reshape(16, 16).tolist() == data.T.tolist()


@pytest.mark.parametrize("form", ["uint_list", "tensor"])
def test_addresses(device: Any, form: str) -> None:
    data = matrix(HALF, (16, 16))
    src, dst = device.local(data), device.local(np.zeros((16, 16), HALF))
    lists = [[tensor.address for tensor in every(operand, 16)] for operand in (dst, src)]
    if form == "uint_list":
        device.run("trans_data_to_5hd_uint_list", *lists, conversion(), address_dtype=HALF)
    else:
        tables = [device.local(np.array(addresses, np.uint64)) for addresses in lists]
        device.run("trans_data_to_5hd", *tables, conversion(), address_dtype=HALF)
        device.run("trans_data_to_5hd", *tables, conversion(0), address_dtype=HALF)
        assert len(device.trace().access.T) == 6  # both address tables each time, and one read and one write
        device.run("trans_data_to_5hd", *tables, conversion(), address_dtype=HALF)
    assert device.values(dst).reshape(16, 16).tolist() == data.T.tolist()
    assert device.touched(dst, Role.WRITE) == set(range(dst.address, dst.address + 512))


def test_addresses_that_nothing_owns(device: Any) -> None:
    table = [32 * number for number in range(16)]
    device.run("trans_data_to_5hd_uint_list", table, table, conversion(), address_dtype=HALF)
    device.run("trans_data_to_5hd_uint_list", table, table, conversion(), address_dtype=HALF)
    assert [(buffer.kind, buffer.size) for buffer in device.recorder.buffers] == [("space", 196608)]


def test_operands_outside_the_memory_do_not_raise(device: Any) -> None:
    src = device.local(matrix(HALF, (16, 16)))
    end = src.memory.size
    lists = [[end - 32 + 32 * number for number in range(16)], [src.address + 32 * number for number in range(16)]]
    device.run("trans_data_to_5hd_uint_list", *lists, conversion(), address_dtype=HALF)
    assert src.memory.bytes[end - 32 :].view(HALF).tolist() == device.values(src).reshape(16, 16)[:, 0].tolist()


def test_high_halves_of_wider_elements_are_a_fault(device: Any) -> None:
    src, dst = device.local(matrix(HALF, (16, 16))), device.local(np.zeros((16, 16), HALF))
    device.run("trans_data_to_5hd_tensor_list", every(dst, 16), every(src, 16), conversion(src_high=1))
    assert device.recorder.faults[0].code == "bad_operand"


# -- the element type behind addresses -----------------------------------------------------------------------------

TENSOR, NUMBERS = "!ascendc.local_tensor<*xsi8>", "!ascendc.local_tensor<*xui64>"
PARAMS = "!ascendc.trans_data_to_5hd_params"


def kernel(lines: list[str]) -> str:
    """A kernel with an 8-bit source at 0, a destination at 512, and address tables at 1024 and 1280."""
    head = [
        '%zero = "arith.constant"() <{value = 0 : ui32}> : () -> ui32',
        '%one = "arith.constant"() <{value = 1 : i32}> : () -> i32',
        '%no = "arith.constant"() <{value = false}> : () -> i1',
    ]
    for name, address, kind in (("s", 0, TENSOR), ("d", 512, TENSOR), ("t0", 1024, NUMBERS), ("t1", 1280, NUMBERS)):
        head += [
            f'%{name}a = "arith.constant"() <{{value = {address} : ui32}}> : () -> ui32',
            f'%{name}l = "arith.constant"() <{{value = {16 if name[0] == "t" else 512} : ui32}}> : () -> ui32',
            f'%{name} = "ascendc.local_tensor_v2"(%{name}a, %{name}l) <{{pos = 9 : i32}}> : (ui32, ui32) -> {kind}',
        ]
    head.append(
        f'%p = "ascendc.construct"(%no, %no, %one, %zero, %zero) : (i1, i1, i32, ui32, ui32) -> {PARAMS}'
    )
    body = "\n".join([*head, *lines, '"func.return"() : () -> ()'])
    properties = 'function_type = () -> (), sym_name = "k"'
    function = f'"func.func"() <{{{properties}}}> ({{\n{body}\n}}) {{ascendc.global}} : () -> ()'
    return f'"builtin.module"() ({{\n{function}\n}}) : () -> ()'


def addresses(tensor: str) -> list[str]:
    """%<tensor>p0 to 15: the addresses of every 32nd element."""
    lines = []
    for number in range(16):
        lines += [
            f'%{tensor}o{number} = "arith.constant"() <{{value = {32 * number} : i32}}> : () -> i32',
            f'%{tensor}s{number} = "ascendc.local_tensor.subindex"(%{tensor}, %{tensor}o{number}) '
            f": ({TENSOR}, i32) -> {TENSOR}",
            f'%{tensor}p{number} = "ascendc.local_tensor.get_phy_addr"(%{tensor}s{number}, %zero) '
            f": ({TENSOR}, ui32) -> ui64",
        ]
    return lines


@pytest.mark.parametrize("form", ["uint_list", "tensor"])
def test_the_element_type_comes_from_get_phy_addr(device: Any, form: str) -> None:
    data = matrix(np.dtype(np.int8), (16, 32))
    memory = device.local(data, address=0).memory.bytes
    memory[512:1024] = 7
    lines = [*addresses("s"), *addresses("d")]
    if form == "uint_list":
        names = ", ".join(f"%{tensor}p{number}" for tensor in "ds" for number in range(16))
        lines.append(
            f'"ascendc.trans_data_to_5hd_uint_list"({names}, %p) <{{operandSegmentSizes = array<i32: 16, 16, 1>}}> '
            f": ({', '.join(['ui64'] * 32)}, {PARAMS}) -> ()"
        )
    else:
        for table, tensor in (("t0", "d"), ("t1", "s")):
            for number in range(16):
                lines += [
                    f'%{table}i{number} = "arith.constant"() <{{value = {number} : ui32}}> : () -> ui32',
                    f'"ascendc.local_tensor.set_value"(%{table}, %{table}i{number}, %{tensor}p{number}) '
                    f": ({NUMBERS}, ui32, ui64) -> ()",
                ]
        lines.append(f'"ascendc.trans_data_to_5hd"(%t0, %t1, %p) : ({NUMBERS}, {NUMBERS}, {PARAMS}) -> ()')
    program = lower(kernel(lines), lambda file: False, device.recorder.add_site)
    for _ in program.entry(device.core):
        raise AssertionError("nothing to wait for")
    result = memory[512:1024].view(np.int8).reshape(16, 32)
    assert result[:, :16].tolist() == data[:, :16].T.tolist() and (result[:, 16:] == 7).all()


def test_addresses_of_unknown_elements_are_refused(device: Any) -> None:
    lines = [f'"ascendc.trans_data_to_5hd"(%t0, %t1, %p) : ({NUMBERS}, {NUMBERS}, {PARAMS}) -> ()']
    with pytest.raises(Unsupported, match="trans_data_to_5hd takes addresses of unknown elements"):
        lower(kernel(lines), lambda file: False, device.recorder.add_site)


# -- errors --------------------------------------------------------------------------------------------------------


def test_wrong_types_are_named(device: Any) -> None:
    wide, brain = device.local(np.zeros(256, FLOAT)), device.local(np.zeros(256, ml_dtypes.bfloat16))
    work = device.local(np.zeros(1, U8))
    with pytest.raises(UserError, match="transpose takes one of half, int16_t, uint16_t"):
        device.run("transpose", wide, wide)
    with pytest.raises(UserError, match="transpose takes one of uint16_t"):
        device.run("transpose_ext", wide, wide, work, ext(10))
    with pytest.raises(UserError, match="trans_data_to_5hd takes one of .* not bfloat16_t"):
        device.run("trans_data_to_5hd_tensor_list", every(brain, 16), every(brain, 16), conversion())


def test_the_cube_core_skips_them(cube: Any) -> None:
    src = cube.local(matrix(HALF, (16, 16)))
    before = cube.values(src).tolist()
    cube.run("transpose", src, src)
    cube.run("transpose_ext", src, src, src, ext(11, 1, 16, 4, 4))
    cube.run("trans_data_to_5hd_tensor_list", every(src, 16), every(src, 16), conversion())
    assert cube.values(src).tolist() == before and cube.opcodes() == []
