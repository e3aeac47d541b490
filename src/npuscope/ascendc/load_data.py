"""LoadData in its forms, Fill, and the registers that LoadData (3D) reads."""

from __future__ import annotations

from typing import Any

from npuscope.ascendc.copy import bits_of
from npuscope.ascendc.params import FIELDS, Record
from npuscope.ascendc.registry import operation
from npuscope.errors import Unsupported, UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.fractal import ROWS, columns_of
from npuscope.npu.isa.image_to_column import Columns, Geometry, Window, column_fractals, image_to_column
from npuscope.npu.isa.load import (
    Fractals,
    Squares,
    Steps,
    fill,
    fractals_of_square,
    load_fractals,
    load_sparse,
    load_squares,
    load_steps,
)
from npuscope.npu.isa.move import bounded, runs_here
from npuscope.npu.numbers import dtype_of, type_name
from npuscope.npu.numbers.dtypes import INT4
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe, Space

_PADS = {"pad_left": 0, "pad_right": 0, "pad_top": 0, "pad_bottom": 0}
_FILTER = {
    "stride_w": 1, "stride_h": 1, "filter_w": 1, "filter_h": 1, "dilation_filter_w": 1, "dilation_filter_h": 1,
}
FIELDS.update(
    {
        "init_const_value_params": {"repeat_times": 0, "block_num": 0, "dst_gap": 0, "init_value": 0},
        "load_data_2d_params": {
            "start_index": 0, "repeat_times": 0, "src_stride": 0, "sid": 0, "dst_gap": 0, "if_transpose": False,
            "addr_mode": 0,
        },
        "load_data_2d_params_v2": {
            "m_start_position": 0, "k_start_position": 0, "m_step": 0, "k_step": 0, "src_stride": 0, "dst_stride": 0,
            "if_transpose": False, "sid": 0,
        },
        "load_data_2d_transpose_params": {
            "start_index": 0, "repeat_times": 0, "src_stride": 0, "dst_gap": 0, "dst_frac_gap": 0, "addr_mode": 0,
        },
        "load_data_2d_transpose_params_v2": {
            "start_index": 0, "repeat_times": 0, "src_stride": 0, "dst_gap": 0, "dst_frac_gap": 0, "src_frac_gap": 0,
            "addr_mode": 0,
        },
        "load_data_3d_params_v1": {
            **_PADS, "l1_h": 1, "l1_w": 1, "c1_index": 0, "fetch_filter_w": 0, "fetch_filter_h": 0, "left_top_w": 0,
            "left_top_h": 0, **_FILTER, "jump_stride": 1, "repeat_mode": 0, "repeat_time": 1, "c_size": 0,
            "pad_value": 0,
        },
        "load_data_3d_params_v2": {
            **_PADS, "l1_h": 0, "l1_w": 0, "channel_size": 0, "k_extension": 0, "m_extension": 0, "k_start_pt": 0,
            "m_start_pt": 0, **_FILTER, "en_transpose": False, "pad_value": 0, "filter_size_w": False,
            "filter_size_h": False, "f_matrix_ctrl": False,
        },
        "load_data_3d_params_v2_pro": {
            "channel_size": 0, "en_transpose": False, "en_small_k": False, "filter_size_w": False,
            "filter_size_h": False, "f_matrix_ctrl": False, "ext_config": 0, "filter_config": 0x10101010101,
        },
        "load_data_repeat_param": {"repeat_time": 1, "repeat_stride": 0, "repeat_mode": 0, "dst_stride": 0},
    }
)

S = int(Pipe.S)
SET_FMATRIX, SET_PADDING = opcode("set_fmatrix"), opcode("set_load_padding")
SET_REPEAT, SET_BOUNDARY = opcode("set_load_repeat"), opcode("set_load_boundary")

FMATRIX = ("fmatrix", "fmatrix_b")
"""Registers (left, right): height, width, (left, right, top, bottom) padding of the image in L1."""
PADDING, REPEAT, BOUNDARY = "load_padding", "load_repeat", "load_boundary"
"""Registers: bits of the fill value; (times, stride, mode, destination stride); bytes of L1 before it is read from its
start again, 0 for none."""
_MATRIX = (0, 0, (0, 0, 0, 0))
_ONCE = (1, 0, 0, 0)


# -- fractals ----------------------------------------------------------------------------------------------------------


@operation("ascendc.load_data_l0", "ascendc.load_data_g2l")
def load_data_2d(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """LoadData with LoadData2DParams: fractals from GM or L1."""
    if runs_here(core, destination, source):
        load_fractals(
            core, site, destination, source,
            Fractals(
                params.start_index, params.repeat_times, params.src_stride, params.dst_gap, bool(params.if_transpose),
                bool(params.addr_mode),
            ),
        )


@operation("ascendc.load_data_l0_v2", "ascendc.load_data_g2l_v2")
def load_data_2d_v2(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """LoadData with LoadData2DParamsV2: a rectangle of fractals (NPU arch 3510)."""
    if not runs_here(core, destination, source):
        return
    _newer_only(core, "LoadData with LoadData2DParamsV2")
    load_steps(
        core, site, destination, source,
        Steps(
            params.m_start_position, params.k_start_position, params.m_step, params.k_step, params.src_stride,
            params.dst_stride, bool(params.if_transpose),
        ),
    )


def _newer_only(core: Core, what: str) -> None:
    if core.chip.arch != "3510":
        raise UserError(f"{what} is not for {core.chip.name}, only for Ascend 950")


@operation("ascendc.load_data_with_transpose")
def load_data_with_transpose(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """LoadDataWithTranspose; start and stride count square matrices."""
    if not runs_here(core, destination, source):
        return
    _check_squares(core, destination, source)
    unit = fractals_of_square(source)
    load_squares(
        core, site, destination, source,
        Squares(
            params.start_index * unit, params.repeat_times, params.src_stride * unit, params.dst_gap,
            params.dst_frac_gap, descending=bool(params.addr_mode),
        ),
    )


@operation("ascendc.load_data_with_transpose_v2")
def load_data_with_transpose_v2(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """LoadDataWithTranspose whose start and stride count fractals (NPU arch 3510)."""
    if not runs_here(core, destination, source):
        return
    _newer_only(core, "LoadDataWithTranspose with LoadData2dTransposeParamsV2")
    _check_squares(core, destination, source)
    load_squares(
        core, site, destination, source,
        Squares(
            params.start_index, params.repeat_times, params.src_stride, params.dst_gap, params.dst_frac_gap,
            params.src_frac_gap, bool(params.addr_mode),
        ),
    )


def _check_squares(core: Core, destination: Tensor, source: Tensor) -> None:
    to_a = destination.memory.space == Space.L0A
    if (core.chip.arch == "3510" or source.dtype == INT4) and to_a:
        raise UserError(f"LoadDataWithTranspose cannot load {type_name(source.dtype)} to L0A on {core.chip.name}")
    if source.dtype != INT4 and source.dtype.itemsize not in (1, 2, 4):
        raise UserError(f"LoadDataWithTranspose takes elements of 4 to 32 bits, not {type_name(source.dtype)}")


@operation("ascendc.load_data_with_sparse")
def load_data_with_sparse(
    core: Core, site: int, destination: Tensor, source: Tensor, index: Tensor, params: Record
) -> None:
    """LoadDataWithSparse: dense fractals and their index matrix; of the parameters only start and repeat count."""
    if not runs_here(core, destination, source, index):
        return
    if core.chip.arch != "2201":
        raise UserError(f"LoadDataWithSparse is not for {core.chip.name}")
    types = (type_name(destination.dtype), type_name(source.dtype), type_name(index.dtype))
    if types != ("int8_t", "int8_t", "uint8_t"):
        raise UserError(f"LoadDataWithSparse takes int8_t, int8_t and a uint8_t index, not {', '.join(types)}")
    load_sparse(core, site, destination, source, index, params.start_index, params.repeat_times)


@operation("ascendc.init_const_value")
def init_const_value(core: Core, site: int, destination: Tensor, params: Record) -> None:
    """InitConstValue (Fill): one value all over L1, L0A or L0B."""
    if runs_here(core, destination):
        fill(core, site, destination, params.repeat_times, params.block_num, params.dst_gap, params.init_value)


# -- image to column ---------------------------------------------------------------------------------------------------


@operation("ascendc.load_data_3d_l0_v2")
def load_data_3d_v2(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """LoadData with LoadData3DParamsV2, which also sets the registers of the image and of the fill value."""
    if not runs_here(core, destination, source):
        return
    pads = (params.pad_left, params.pad_right, params.pad_top, params.pad_bottom)
    matrix, padding = (params.l1_h, params.l1_w, pads), bits_of(params.pad_value, source.dtype)
    registers = core.registers.values
    chosen = registers.get(FMATRIX[1], _MATRIX) if params.f_matrix_ctrl else matrix
    filters = (
        params.stride_w, params.stride_h, params.filter_w + 256 * bool(params.filter_size_w),
        params.filter_h + 256 * bool(params.filter_size_h), params.dilation_filter_w, params.dilation_filter_h,
    )
    window = (params.m_start_pt, params.m_extension, params.k_start_pt, params.k_extension)
    shape = _columns(core, source, chosen, params.channel_size, filters, window, bool(params.en_transpose), padding)
    image_to_column(core, site, destination, source, _effective(destination, shape))
    _check_image(core, chosen, filters, window)
    registers[FMATRIX[0]], registers[PADDING] = matrix, padding


@operation("ascendc.load_data_3d_l0_v2pro")
def load_data_3d_v2_pro(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """LoadData with LoadData3DParamsV2Pro: image and fill value come from the registers, windows and filter are packed
    into two words."""
    if not runs_here(core, destination, source):
        return
    chosen = core.registers.values.get(FMATRIX[bool(params.f_matrix_ctrl)], _MATRIX)
    extent, packed = params.ext_config, params.filter_config
    window = (extent >> 48 & 0xFFFF, extent >> 16 & 0xFFFF, extent >> 32 & 0xFFFF, extent & 0xFFFF)
    stride_w, stride_h, filter_w, filter_h, dilation_w, dilation_h = (packed >> 8 * byte & 0xFF for byte in range(6))
    filters = (
        stride_w, stride_h, filter_w + 256 * bool(params.filter_size_w), filter_h + 256 * bool(params.filter_size_h),
        dilation_w, dilation_h,
    )
    padding = int(_register(core, PADDING, 0))
    shape = _columns(core, source, chosen, params.channel_size, filters, window, bool(params.en_transpose), padding)
    image_to_column(core, site, destination, source, _effective(destination, shape))
    _check_image(core, chosen, filters, window)


def _register(core: Core, name: str, default: Any) -> Any:
    return core.registers.values.get(name, default)


def _columns(
    core: Core, source: Tensor, matrix: Any, channels: int, filters: tuple[int, ...], window: tuple[int, ...],
    transpose: bool, padding: int,
) -> Columns:
    """The instruction from its parameters and the registers; the repeat register joins windows along rows (mode 0, 16
    rows a step) or columns (mode 1, 32 bytes a step)."""
    height, width, pads = matrix
    times, stride, mode, step = _register(core, REPEAT, _ONCE)
    m_start, m_count, k_start, k_count = window
    rows, columns = Window(m_start, m_count), Window(k_start, k_count)
    if mode == 0:
        rows = Window(m_start, m_count, times, stride * ROWS)
    else:
        columns = Window(k_start, k_count, times, stride * columns_of(source.dtype))
    geometry = Geometry(height, width, channels, pads, *filters)
    return Columns(geometry, rows, columns, transpose, padding, _register(core, BOUNDARY, 0), step)


def _effective(destination: Tensor, shape: Columns) -> Columns:
    """L0B is always transposed: enTranspose means nothing there."""
    if destination.memory.space == Space.L0B and shape.transpose:
        return Columns(
            shape.geometry, shape.rows, shape.columns, False, shape.pad_bits, shape.boundary, shape.step
        )
    return shape


def _check_image(core: Core, matrix: Any, filters: tuple[int, ...], window: tuple[int, ...]) -> None:
    """Limits of hardware.md 2.2."""
    height, width, pads = matrix
    bounded(core, "image height of LoadData", height, 32767)
    bounded(core, "image width of LoadData", width, 32767)
    for pad in pads:
        bounded(core, "padding of LoadData", pad, 255)
    for stride in filters[:2]:
        bounded(core, "stride of LoadData", stride, 63, 1)
    for dilation in filters[4:]:
        bounded(core, "dilation of LoadData", dilation, 255, 1)
    bounded(core, "first row of LoadData", window[0], 32767)


@operation("ascendc.load_data_3d_l0_v1")
def load_data_3d_v1(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """LoadData with LoadData3DParamsV1 (coupled chips), to L0A: `repeat_time` fractals of the column matrix, along its
    columns (mode 0: next point of the filter, then next channel block) or along its rows (mode 1: next 16
    positions)."""
    if not runs_here(core, destination, source):
        return
    if core.chip.arch != "2002":
        raise UserError(f"LoadData with LoadData3DParamsV1 is not for {core.chip.name}; use LoadData3DParamsV2")
    if destination.memory.space != Space.L0A or params.c_size:
        raise Unsupported("LoadData with LoadData3DParamsV1 is simulated to L0A and without c_size")
    lanes = columns_of(source.dtype)
    pads = (params.pad_left, params.pad_right, params.pad_top, params.pad_bottom)
    points = params.filter_w * params.filter_h
    first = params.c1_index * points + params.fetch_filter_h * params.filter_w + params.fetch_filter_w
    blocks = params.c1_index + -(-params.repeat_time // max(points, 1)) + 1
    geometry = Geometry(
        params.l1_h, params.l1_w, blocks * lanes, pads, params.stride_w, params.stride_h, params.filter_w,
        params.filter_h, params.dilation_filter_w, params.dilation_filter_h,
    )
    _, wide = geometry.positions
    start_h = (params.left_top_h + pads[2]) // max(params.stride_h, 1)
    start = start_h * wide + (params.left_top_w + pads[0]) // max(params.stride_w, 1)
    along_rows = bool(params.repeat_mode)
    padding = bits_of(params.pad_value, source.dtype)
    shapes = [
        Columns(
            geometry,
            Window(start + ROWS * number * along_rows, ROWS),
            Window((first + number * (not along_rows)) * lanes, lanes),
            pad_bits=padding,
        )
        for number in range(params.repeat_time)
    ]
    column_fractals(core, site, destination, source, shapes, params.jump_stride)


_BY_PARAMETERS = {
    "load_data_2d_params": load_data_2d,
    "load_data_2d_params_v2": load_data_2d_v2,
    "load_data_3d_params_v1": load_data_3d_v1,
    "load_data_3d_params_v2": load_data_3d_v2,
    "load_data_3d_params_v2_pro": load_data_3d_v2_pro,
}


@operation("ascendc.load_data")
def load_data(core: Core, site: int, destination: Tensor, source: Tensor, params: Record) -> None:
    """LoadData by the type of its parameters."""
    form = _BY_PARAMETERS.get(params.type_name)
    if form is None:
        raise UserError(f"LoadData does not take {params.type_name}")
    form(core, site, destination, source, params)


# -- registers ---------------------------------------------------------------------------------------------------------


def _on_cube(core: Core) -> bool:
    return not (core.chip.split and core.is_aiv)


@operation("ascendc.set_fmatrix")
def set_fmatrix(core: Core, site: int, height: int, width: int, pads: Any, mode: int) -> None:
    """Size and padding (left, right, top, bottom) of the image that LoadData (3D) reads; mode 1 sets the second set of
    registers, which fMatrixCtrl names."""
    if not _on_cube(core):
        return
    core.begin(site, S, SET_FMATRIX, height, width, int(mode))
    kept = tuple(int(pads[number]) for number in range(4))
    core.registers.values[FMATRIX[bool(mode)]] = (height, width, kept)


@operation("ascendc.set_load_data_padding_value")
def set_load_data_padding_value(core: Core, site: int, value: Any, *, operand_types: tuple[str, ...]) -> None:
    """The fill value of LoadData (3D). The register keeps bits: narrower elements take the low ones."""
    if not _on_cube(core):
        return
    core.begin(site, S, SET_PADDING)
    core.registers.values[PADDING] = bits_of(value, dtype_of(operand_types[0]))


@operation("ascendc.set_load_data_repeat")
def set_load_data_repeat(core: Core, site: int, params: Record) -> None:
    """How often and in which direction LoadData (3D) repeats its window."""
    if not _on_cube(core):
        return
    core.begin(site, S, SET_REPEAT, params.repeat_time, params.repeat_stride, params.repeat_mode)
    times = bounded(core, "repeat of SetLoadDataRepeat", params.repeat_time, 255)
    mode = bounded(core, "mode of SetLoadDataRepeat", params.repeat_mode, 1)
    core.registers.values[REPEAT] = (times, params.repeat_stride, mode, params.dst_stride)


@operation("ascendc.set_load_data_boundary")
def set_load_data_boundary(core: Core, site: int, value: int) -> None:
    """Bytes of L1 after which LoadData (3D) goes on at its start; 0 for all of L1."""
    if not _on_cube(core):
        return
    core.begin(site, S, SET_BOUNDARY, value)
    if value:
        bounded(core, "boundary of SetLoadDataBoundary", value, (1 << 32) - 1, 1024)
    core.registers.values[BOUNDARY] = value
