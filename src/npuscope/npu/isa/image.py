"""AIPP: pictures from GM, preprocessed on the way (vendor's SetAippFunctions and LoadImageToLocal pages).

A picture is cut out, its channels swapped, its colours converted, its pixels converted to the destination's type, then
it is padded in channels and at its edges. Destination: rows of pixels, each 32 bytes or 4 channels wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npuscope.errors import UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.isa.fractal import BYTE
from npuscope.npu.isa.move import bounded, route
from npuscope.npu.layout import BLOCK, contiguous, strided
from npuscope.npu.numbers import type_name
from npuscope.npu.tensor import Tensor, shifted

LOAD_IMAGE = opcode("load_image")
YUV420SP, XRGB8888, RGB888, YUV400 = 0, 1, 4, 9
"""AippInputFormat in Ascend C's numbering."""
_BYTES = {YUV420SP: 1, XRGB8888: 4, RGB888: 3, YUV400: 1}
CONSTANT, EDGE, BLOCKS, MIRROR = range(4)
"""Padding modes: a value a channel (left and right only), the nearest pixel, a copy of the block beside the edge, its
mirror image."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """How bytes become elements: ``byte - mean`` in int8, ``(byte - mean - minimum) * factor`` in half, a value each
    for three channels."""

    mean: tuple[int, ...] = (0, 0, 0)
    minimum: tuple[float, ...] = (0.0, 0.0, 0.0)
    factor: tuple[float, ...] = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Colours:
    """Colour space conversion: rows of a 3 x 3 matrix in 1/256, `before` subtracted from YUV, `after` added to what RGB
    becomes."""

    matrix: tuple[tuple[int, ...], ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """What SetAippFunctions leaves in the registers. `chroma` is the UV plane of YUV420SP; `padding_values` are for
    channels 0 to 3; `colours` None: no conversion; `narrow`: 4 channels a pixel instead of 32 bytes."""

    source: Tensor
    chroma: Tensor | None
    format: int
    padding_mode: int = CONSTANT
    padding_values: tuple[float, ...] = (0, 0, 0, 0)
    swap_rb: bool = False
    swap_uv: bool = False
    swap_ax: bool = False
    single_line: bool = False
    conversion: Conversion = Conversion()
    colours: Colours | None = None
    narrow: bool = False
    channel_value: float = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """LoadImageToLocalParams: size and place of the part in the picture, the picture's width, and padding, in
    pixels."""

    width: int
    height: int
    left: int
    top: int
    pitch: int
    pad_top: int
    pad_bottom: int
    pad_left: int
    pad_right: int


def load_image(core: Core, site: int, destination: Tensor, settings: Preprocessing, cut: Cut) -> None:
    """LoadImageToLocal. Raises UserError for a destination that is not int8, uint8 or half, and for a picture format
    that does not exist or lacks its second plane."""
    kind = type_name(destination.dtype)
    if kind not in ("int8_t", "uint8_t", "half"):
        raise UserError(f"LoadImageToLocal makes int8_t, uint8_t or half, not {kind}")
    if settings.format not in _BYTES:
        raise UserError(f"AIPP has no picture format number {settings.format}")
    if settings.format == YUV420SP and settings.chroma is None:
        raise UserError("AIPP needs two tensors for YUV420SP: the Y plane and the UV plane")
    pipe, _ = route(core, settings.source.memory.space, destination.memory.space)
    height = 1 if settings.single_line else cut.height
    core.begin(site, pipe, LOAD_IMAGE, height, cut.width, settings.format, work=height * cut.width)
    _check(core, settings, cut)
    picture = _channels(core, settings, cut, height)
    if settings.colours is not None:
        picture = _recoloured(picture, settings)
    pixels = _converted(picture, destination, settings)
    out = _padded(core, pixels, destination, settings, cut)
    core.store(destination, contiguous(out.size, destination.dtype.itemsize), out.reshape(-1))


def _check(core: Core, settings: Preprocessing, cut: Cut) -> None:
    """The ranges of the vendor's LoadImageToLocal page."""
    for what, value, low in (
        ("width", cut.width, 2), ("height", cut.height, 2), ("source width", cut.pitch, 2), ("left", cut.left, 0),
        ("top", cut.top, 0),
    ):
        bounded(core, f"{what} of LoadImageToLocal", value, 4095, low)
    for pad in (cut.pad_top, cut.pad_bottom, cut.pad_left, cut.pad_right):
        bounded(core, "padding of LoadImageToLocal", pad, 32)
    evens = [("left", cut.left)]
    if settings.format == YUV420SP:
        evens += [("top", cut.top), ("source width", cut.pitch)]
    for what, value in evens:
        if value % 2:
            core.fault("bad_operand", what=f"{what} of LoadImageToLocal", value=value, limit="an even number")


def _plane(core: Core, tensor: Tensor, top: int, rows: int, left: int, width: int, pitch: int) -> np.ndarray:
    """(rows, width) bytes of a plane whose rows are `pitch` bytes apart."""
    part = shifted(tensor.cast(BYTE), top * pitch + left)
    return core.load(part, strided((rows, width), (pitch, 1), 1))


def _channels(core: Core, settings: Preprocessing, cut: Cut, height: int) -> np.ndarray:
    """The part cut out as (height, width, channels) bytes, channels swapped as asked for."""
    depth = _BYTES[settings.format]
    luma = _plane(core, settings.source, cut.top, height, cut.left * depth, cut.width * depth, cut.pitch * depth)
    picture = luma.reshape(height, cut.width, depth)
    if settings.format == YUV420SP and settings.chroma is not None:
        rows, pairs = -(-height // 2), -(-cut.width // 2)
        chroma = _plane(core, settings.chroma, cut.top // 2, rows, cut.left, 2 * pairs, cut.pitch)
        whole = chroma.reshape(rows, pairs, 2).repeat(2, axis=0).repeat(2, axis=1)[:height, : cut.width]
        picture = np.concatenate([picture, whole[:, :, ::-1] if settings.swap_uv else whole], axis=2)
    elif settings.format == XRGB8888:
        picture = picture[:, :, 1:] if settings.swap_ax else picture[:, :, :3]
    if settings.swap_rb and settings.format in (XRGB8888, RGB888):
        picture = picture[:, :, ::-1]
    return picture


def _recoloured(picture: np.ndarray, settings: Preprocessing) -> np.ndarray:
    """RGB to YUV or back in 8 bits, halves rounded up, kept within a byte."""
    colours = settings.colours
    assert colours is not None
    values = picture.astype(np.int32)
    if values.shape[2] == 1:
        values = np.concatenate([values, np.zeros((*values.shape[:2], 2), np.int32)], axis=2)
    to_yuv = settings.format in (XRGB8888, RGB888)
    if not to_yuv:
        values = values - np.array(colours.before, np.int32)
    mixed = (values @ np.array(colours.matrix, np.int32).T + 128) >> 8
    if to_yuv:
        mixed = mixed + np.array(colours.after, np.int32)
    return np.clip(mixed, 0, 255).astype(np.uint8)


def _converted(picture: np.ndarray, destination: Tensor, settings: Preprocessing) -> np.ndarray:
    """Bytes as the destination's elements; half rounds after every step."""
    if destination.dtype == np.uint8:
        return picture
    channels = picture.shape[2]
    rule = settings.conversion
    centred = picture.astype(np.int32) - np.array(rule.mean[:channels], np.int32)
    if destination.dtype == np.int8:
        return np.clip(centred, -128, 127).astype(np.int8)
    shifted = centred.astype(np.float16) - np.array(rule.minimum[:channels], np.float16)
    return shifted * np.array(rule.factor[:channels], np.float16)


def _sides(extent: int, before: int, after: int, mode: int) -> np.ndarray:
    """Which row or column of the part each one of the padded picture shows."""
    inner = np.arange(extent)
    if mode == BLOCKS:
        return np.concatenate([np.arange(before), inner, np.arange(extent - after, extent)])
    if mode == MIRROR:
        return np.concatenate([np.arange(before)[::-1], inner, np.arange(extent - after, extent)[::-1]])
    return np.concatenate([np.zeros(before, int), inner, np.full(after, extent - 1)])


def _padded(
    core: Core, pixels: np.ndarray, destination: Tensor, settings: Preprocessing, cut: Cut
) -> np.ndarray:
    """The picture padded in channels and at its edges: (height, width, channels of a pixel)."""
    height, width, channels = pixels.shape
    mode = bounded(core, "padding mode of AIPP", settings.padding_mode, MIRROR)
    top, bottom, left, right = cut.pad_top, cut.pad_bottom, cut.pad_left, cut.pad_right
    if mode == CONSTANT and (top or bottom):
        core.fault(
            "bad_operand", what="rows of constant padding of LoadImageToLocal", value=top + bottom,
            limit="0 (padding mode 0 only pads left and right)",
        )
        top = bottom = 0
    if mode in (BLOCKS, MIRROR):
        left, right = (bounded(core, "padding columns of LoadImageToLocal", pad, width) for pad in (left, right))
        top, bottom = (bounded(core, "padding rows of LoadImageToLocal", pad, height) for pad in (top, bottom))
    lanes = 4 if settings.narrow else BLOCK // destination.dtype.itemsize
    out = np.full((height + top + bottom, width + left + right, lanes), settings.channel_value, destination.dtype)
    rows, columns = _sides(height, top, bottom, mode), _sides(width, left, right, mode)
    out[:, :, :channels] = pixels[rows[:, None], columns]
    if mode == CONSTANT and (left or right):
        edge = np.ones(out.shape[1], np.bool_)
        edge[left : left + width] = False
        out[:, edge, :4] = np.array(settings.padding_values).astype(destination.dtype)
    return out
