"""AIPP: SetAippFunctions and LoadImageToLocal."""

from __future__ import annotations

from typing import Any

from npuscope.ascendc.params import FIELDS, Record
from npuscope.ascendc.registry import operation
from npuscope.errors import UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.image import Colours, Conversion, Cut, Preprocessing, load_image
from npuscope.npu.isa.move import runs_here
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Pipe

_MATRIX = {f"csc_matrix_r{row}_c{column}": 0 for row in range(3) for column in range(3)}
FIELDS.update(
    {
        "aipp_padding_params": {"mode": 0, "ch0": 0, "ch1": 0, "ch2": 0, "ch3": 0},
        "aipp_swap_params": {"rb": False, "uv": False, "ax": False},
        "aipp_single_line_params": {"is_single_line_copy": False},
        "aipp_dtc_params": {
            **{f"mean{number}": 0 for number in range(3)}, **{f"min{number}": 0.0 for number in range(3)},
            **{f"var{number}": 1.0 for number in range(3)}, "round_mode": 0,
        },
        "aipp_cpadding_params": {"mode": 0, "value": 0},
        "aipp_csc_params": {
            "is_enable_csc": False, **_MATRIX, **{f"in{number}": 0 for number in range(3)},
            **{f"out{number}": 0 for number in range(3)},
        },
        "aipp_params": {
            "padding": None, "swap": None, "single_line": None, "conversion": None, "channels": None, "colours": None,
        },
        "load_image_to_local_params": {
            "horiz_size": 0, "vert_size": 0, "horiz_start_pos": 0, "vert_start_pos": 0, "src_horiz_size": 0,
            "top_pad_size": 0, "bot_pad_size": 0, "left_pad_size": 0, "right_pad_size": 0,
        },
    }
)

S = int(Pipe.S)
SET_AIPP = opcode("set_aipp")
AIPP = "aipp"
"""Register file: the settings of the last SetAippFunctions."""


@operation("ascendc.set_aipp_functions")
def set_aipp_functions(
    core: Core, site: int, source: Tensor, second: Tensor | Record, third: Record | None = None, *, format: int
) -> None:
    """Where LoadImageToLocal finds its picture and what it does to it: one plane and AippParams, or two planes and
    those (`format` is an AippInputFormat).

    The rounding mode of the type conversion exists on another chip only (vendor's SetAippFunctions page).
    """
    chroma = second if isinstance(second, Tensor) else None
    config: Any = second if third is None else third
    core.begin(site, S, SET_AIPP, format)
    pads, swap, rule, colours = config.padding, config.swap, config.conversion, config.colours
    core.registers.values[AIPP] = Preprocessing(
        source, chroma, format,
        padding_mode=pads.mode,
        padding_values=(pads.ch0, pads.ch1, pads.ch2, pads.ch3),
        swap_rb=bool(swap.rb), swap_uv=bool(swap.uv), swap_ax=bool(swap.ax),
        single_line=bool(config.single_line.is_single_line_copy),
        conversion=Conversion(_three(rule, "mean"), _three(rule, "min"), _three(rule, "var")),
        colours=_colours(colours) if colours.is_enable_csc else None,
        narrow=bool(config.channels.mode),
        channel_value=config.channels.value,
    )


def _three(record: Record, name: str) -> tuple[Any, ...]:
    return tuple(getattr(record, f"{name}{number}") for number in range(3))


def _colours(record: Record) -> Colours:
    matrix = tuple(
        tuple(getattr(record, f"csc_matrix_r{row}_c{column}") for column in range(3)) for row in range(3)
    )
    return Colours(matrix, _three(record, "in"), _three(record, "out"))


@operation("ascendc.load_image_to_local")
def load_image_to_local(core: Core, site: int, destination: Tensor, params: Record) -> None:
    """A part of the picture that SetAippFunctions named, preprocessed, into L1 (UB on NPU arch 3510)."""
    if not runs_here(core, destination):
        return
    settings = core.registers.values.get(AIPP)
    if not isinstance(settings, Preprocessing):
        raise UserError("LoadImageToLocal needs a picture: call SetAippFunctions before it")
    cut = Cut(
        params.horiz_size, params.vert_size, params.horiz_start_pos, params.vert_start_pos, params.src_horiz_size,
        params.top_pad_size, params.bot_pad_size, params.left_pad_size, params.right_pad_size,
    )
    load_image(core, site, destination, settings, cut)
