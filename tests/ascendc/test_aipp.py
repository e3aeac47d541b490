"""LoadImageToLocal with what SetAippFunctions asks for, pixel by pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuscope.ascendc.params import construct
from npuscope.ascendc.registry import entries
from npuscope.errors import UserError
from npuscope.trace.schema import CoreInfo, CoreType, Pipe, Role

entries()  # loads the library, which names the fields of parameter structs

VECIN, A1 = 9, 1
INT8, UINT8, HALF = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.float16)
YUV420SP, XRGB8888, RGB888, YUV400 = 0, 1, 4, 9


def settings(**given: Any) -> Any:
    parts = {
        "padding": construct("aipp_padding_params", "", *given.get("padding", ())),
        "swap": construct("aipp_swap_params", "", *given.get("swap", ())),
        "single": construct("aipp_single_line_params", "", given.get("single", False)),
        "conversion": construct("aipp_dtc_params", "", *given.get("conversion", ())),
        "channels": construct("aipp_cpadding_params", "", *given.get("channels", ())),
        "colours": construct("aipp_csc_params", "", *given.get("colours", ())),
    }
    return construct("aipp_params", "", *parts.values())


def image(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 256, shape).astype(UINT8)


def load(
    cube: Any, planes: list[np.ndarray], kind: int, dtype: np.dtype[Any], cut: tuple[int, ...], out: tuple[int, int],
    **given: Any,
) -> np.ndarray:
    lanes = 4 if given.get("channels", (0,))[0] else 32 // dtype.itemsize
    l1 = cube.local(np.full((*out, lanes), 77, dtype), A1)
    cube.run("set_aipp_functions", *(cube.gm(plane) for plane in planes), settings(**given), format=kind)
    cube.run("load_image_to_local", l1, construct("load_image_to_local_params", "", *cut))
    return cube.values(l1).reshape(*out, lanes)


def test_a_part_of_an_rgb_picture(cube: Any) -> None:
    x = image(10, 16, 3)
    result = load(cube, [x], RGB888, UINT8, (6, 4, 2, 3, 16), (4, 6), channels=(0, 9))
    assert result[:, :, :3].tolist() == x[3:7, 2:8].tolist()
    assert set(result[:, :, 3:].reshape(-1).tolist()) == {9}
    assert cube.opcodes() == ["set_aipp", "load_image"]


@pytest.mark.parametrize(
    ("kind", "swap", "order"),
    [
        (RGB888, (True, False, False), [2, 1, 0]), (XRGB8888, (False, False, False), [0, 1, 2]),
        (XRGB8888, (False, False, True), [1, 2, 3]), (XRGB8888, (True, False, True), [3, 2, 1]),
        (XRGB8888, (True, False, False), [2, 1, 0]),
    ],
)
def test_channels_are_swapped(cube: Any, kind: int, swap: tuple[bool, ...], order: list[int]) -> None:
    x = image(4, 6, 3 if kind == RGB888 else 4)
    result = load(cube, [x], kind, UINT8, (6, 4, 0, 0, 6), (4, 6), swap=swap, channels=(1, 5))
    assert result[:, :, :3].tolist() == x[:, :, order].tolist()
    assert set(result[:, :, 3].reshape(-1).tolist()) == {5}


@pytest.mark.parametrize("swap", [False, True])
def test_a_picture_in_two_planes(cube: Any, swap: bool) -> None:
    luma, chroma = image(8, 12), image(4, 12)
    result = load(cube, [luma, chroma], YUV420SP, UINT8, (6, 3, 2, 4, 12), (3, 6), swap=(False, swap, False))
    for i in range(3):
        for j in range(6):
            u, v = chroma[2 + i // 2, 2 + j // 2 * 2 : 4 + j // 2 * 2]
            assert result[i, j, :3].tolist() == [luma[4 + i, 2 + j], *([v, u] if swap else [u, v])]


def test_a_grey_picture_has_one_channel(cube: Any) -> None:
    x = image(4, 6)
    result = load(cube, [x], YUV400, UINT8, (6, 4, 0, 0, 6), (4, 6), channels=(1, 3))
    assert result[:, :, 0].tolist() == x.tolist()
    assert set(result[:, :, 1:].reshape(-1).tolist()) == {3}


def test_one_line_only(cube: Any) -> None:
    x = image(4, 6, 3)
    result = load(cube, [x], RGB888, UINT8, (6, 4, 0, 2, 6), (2, 6), single=True)
    assert result[0, :, :3].tolist() == x[2].tolist()
    assert set(result[1].reshape(-1).tolist()) == {77}


def test_bytes_become_signed_or_half(cube: Any) -> None:
    x = image(4, 6, 3)
    rule = (128, 100, 7, 0.5, -1.0, 2.0, 0.25, 2.0, 1.0)
    result = load(cube, [x], RGB888, INT8, (6, 4, 0, 0, 6), (4, 6), conversion=rule)
    assert result[:, :, :3].tolist() == np.clip(x.astype(int) - [128, 100, 7], -128, 127).tolist()
    result = load(cube, [x], RGB888, HALF, (6, 4, 0, 0, 6), (4, 6), conversion=rule)
    expected = (x.astype(float) - [128, 100, 7] - [0.5, -1, 2]) * [0.25, 2, 1]
    assert result[:, :, :3].tolist() == expected.tolist()
    assert result.shape[2] == 16


def test_colours_from_rgb(cube: Any) -> None:
    """RGB to YUV: matrix in 1/256, halves up, offsets added."""
    x = image(4, 6, 3)
    matrix = np.array([[66, 129, 25], [-38, -74, 112], [112, -94, -18]])
    colours = (True, *matrix.reshape(-1).tolist(), 0, 0, 0, 16, 128, 128)
    result = load(cube, [x], RGB888, UINT8, (6, 4, 0, 0, 6), (4, 6), colours=colours)
    expected = np.floor((x.astype(int) @ matrix.T + 128) / 256) + [16, 128, 128]
    assert result[:, :, :3].tolist() == np.clip(expected, 0, 255).tolist()


def test_colours_from_yuv(cube: Any) -> None:
    luma, chroma = image(4, 4), image(2, 4)
    matrix = np.array([[256, 0, 359], [256, -88, -183], [256, 454, 0]])
    colours = (True, *matrix.reshape(-1).tolist(), 0, 128, 128, 0, 0, 0)
    result = load(cube, [luma, chroma], YUV420SP, UINT8, (4, 4, 0, 0, 4), (4, 4), colours=colours)
    whole = chroma.reshape(2, 2, 2).repeat(2, axis=0).repeat(2, axis=1).astype(int)
    yuv = np.concatenate([luma[:, :, None].astype(int), whole - 128], axis=2)
    assert result[:, :, :3].tolist() == np.clip(np.floor((yuv @ matrix.T + 128) / 256), 0, 255).tolist()


def test_constant_padding_left_and_right(cube: Any) -> None:
    x = image(3, 4, 3)
    result = load(
        cube, [x], RGB888, UINT8, (4, 3, 0, 0, 4, 0, 0, 2, 1), (3, 7), padding=(0, 1, 2, 3, 4), channels=(0, 9)
    )
    assert result[:, 2:6, :3].tolist() == x.tolist()
    for column in (0, 1, 6):
        assert result[:, column, :4].tolist() == [[1, 2, 3, 4]] * 3
    assert set(result[:, :, 4:].reshape(-1).tolist()) == {9}


@pytest.mark.parametrize(
    ("mode", "rows", "columns"),
    [
        (1, [0, 0, 0, 1, 2, 3, 3], [0, 0, 1, 2, 3, 3, 3]),
        (2, [0, 1, 0, 1, 2, 3, 3], [0, 0, 1, 2, 3, 2, 3]),
        (3, [1, 0, 0, 1, 2, 3, 3], [0, 0, 1, 2, 3, 3, 2]),
    ],
)
def test_padding_from_the_picture(cube: Any, mode: int, rows: list[int], columns: list[int]) -> None:
    x = image(4, 4, 3)
    result = load(cube, [x], RGB888, UINT8, (4, 4, 0, 0, 4, 2, 1, 1, 2), (7, 7), padding=(mode,))
    assert result[:, :, :3].tolist() == x[rows][:, columns].tolist()
    assert cube.recorder.faults == []


def test_footprint(cube: Any) -> None:
    x = image(6, 8, 3)
    source, l1 = cube.gm(x), cube.local(np.zeros(2 * 4 * 32, UINT8), A1)
    cube.run("set_aipp_functions", source, settings(), format=RGB888)
    cube.run("load_image_to_local", l1, construct("load_image_to_local_params", "", 4, 2, 2, 3, 8))
    expected = {source.address + row * 24 + 6 + byte for row in (3, 4) for byte in range(12)}
    assert cube.touched(source, Role.READ) == expected


def test_illegal_pictures(cube: Any) -> None:
    x, l1 = cube.gm(image(6, 8, 3)), cube.local(np.zeros(4096, UINT8), A1)
    cut = construct("load_image_to_local_params", "", 4, 2, 1, 0, 8, 1, 0, 33, 0)
    with pytest.raises(UserError, match="SetAippFunctions before"):
        cube.run("load_image_to_local", l1, cut)
    cube.run("set_aipp_functions", x, settings(), format=RGB888)
    cube.run("load_image_to_local", l1, cut)
    assert [fault.facts["what"] for fault in cube.recorder.faults] == [
        "padding of LoadImageToLocal", "left of LoadImageToLocal", "rows of constant padding of LoadImageToLocal",
    ]
    with pytest.raises(UserError, match="int8_t, uint8_t or half"):
        cube.run("load_image_to_local", cube.local(np.zeros(64, np.float32), A1), cut)
    cube.run("set_aipp_functions", x, settings(), format=YUV420SP)
    with pytest.raises(UserError, match="UV plane"):
        cube.run("load_image_to_local", l1, cut)
    cube.run("set_aipp_functions", x, settings(), format=7)
    with pytest.raises(UserError, match="format number 7"):
        cube.run("load_image_to_local", l1, cut)


def test_vector_cores_keep_the_settings_and_load_nothing(device: Any) -> None:
    device.run("set_aipp_functions", device.gm(image(4, 4, 3)), settings(), format=RGB888)
    device.run(
        "load_image_to_local", device.local(np.zeros(512, UINT8), A1),
        construct("load_image_to_local_params", "", 4, 4, 0, 0, 4),
    )
    assert device.opcodes() == ["set_aipp"]


def test_the_newer_chip_loads_into_ub(make_device: Any) -> None:
    newer = make_device("950PR", (CoreInfo(CoreType.AIV, 0),))
    x = image(4, 4, 3)
    ub = newer.local(np.zeros((4, 4, 4), UINT8), VECIN)
    newer.run("set_aipp_functions", newer.gm(x), settings(channels=(1, 0)), format=RGB888)
    newer.run("load_image_to_local", ub, construct("load_image_to_local_params", "", 4, 4, 0, 0, 4))
    assert newer.values(ub).reshape(4, 4, 4)[:, :, :3].tolist() == x.tolist()
    assert newer.trace().column("pipe").tolist() == [Pipe.S, Pipe.MTE2]
