"""The classes that stand in for the C++ module of `asc.lib.host`: values, refusals, and pyasc's proxies over them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from npuscope.errors import Unsupported
from npuscope.frontends.pyasc_host import host_module
from npuscope.npu.chip import load_chip

HOST = host_module(load_chip("Ascend910B1"))
L1 = 524288  # bytes of a 910B core (hardware.md 1.3)


def small_request() -> Any:
    """A tiling object for a 64 x 64 x 64 product of float16."""
    tiling = HOST.MultiCoreMatmulTiling(HOST.PlatformAscendCManager.get_instance("Ascend910B1"))
    operand = (HOST.TPosition.GM, HOST.CubeFormat.ND, HOST.DataType.DT_FLOAT16, False)
    assert (tiling.set_a_type(*operand), tiling.set_b_type(*operand), tiling.set_shape(64, 64, 64)) == (0, 0, 0)
    return tiling


def test_setters_refuse_nonsense() -> None:
    request = small_request()
    position, layout, types = HOST.TPosition, HOST.CubeFormat, HOST.DataType
    refused = [
        request.set_dim(0),
        request.set_shape(0, 1, 1),
        request.set_shape(1, 2**31, 1),
        request.set_org_shape(1, -1, 1),
        request.set_fix_split(0, 16, 16),
        request.set_split_range(-2),
        request.set_single_shape(-5),
        request.set_single_range(1, 1, 1, 1, 1, -3),
        request.set_align_split(-2, 1, 1),
        request.set_buffer_space(L1 + 1),
        request.set_buffer_space(-1, -1, -1, -2),
        request.set_batch_num(0),
        request.set_batch_info_for_normal(0, 1, 1, 1, 1),
        request.set_a_layout(1, 1, 1, 1, 0),
        request.set_a_type(position.A2, layout.ND, types.DT_FLOAT16, False),
        request.set_a_type(position.GM, layout.ZZ, types.DT_FLOAT16, False),
        request.set_b_type(position.GM, layout.ND, types.DT_STRING, False),
        request.set_c_type(position.CO1, layout.ND, types.DT_FLOAT),
        request.set_bias_type(position.GM, layout.ND, types.DT_INT8),
        request.set_mad_type(HOST.MatrixMadType.MXMODE),
    ]
    assert refused == [-1] * len(refused)
    t = SimpleNamespace()
    assert request.get_tiling(t) == 0  # and nothing of it stuck
    assert (t.m, t.used_core_num, t.batch_num) == (64, 1, 0)


def test_wrong_types_are_type_errors() -> None:
    request = small_request()
    with pytest.raises(TypeError, match="TPosition is expected"):
        request.set_a_type(0, HOST.CubeFormat.ND, HOST.DataType.DT_FLOAT16, False)
    with pytest.raises(TypeError, match="PlatformAscendC is expected"):
        HOST.MatmulApiTiling("Ascend910B1")


def test_what_the_chip_lacks_is_unsupported() -> None:
    request = small_request()
    with pytest.raises(Unsupported, match="enable_l1_cache_ub"):
        request.set_matmul_config_params(1, True)
    with pytest.raises(Unsupported, match="mm_config_type 7"):
        request.set_matmul_config_params(HOST.MatmulConfigParams(7))


def test_cores_are_those_of_the_chip() -> None:
    small = host_module(load_chip("Ascend910B3"))  # 20 AIC and 40 AIV (hardware.md 1.2)
    tiling = small.MultiCoreMatmulTiling(small.PlatformAscendCManager.get_instance("Ascend910B3"))
    tiling.set_shape(16 * 48, 16, 16)
    tiling.set_dim(48)
    t = SimpleNamespace()
    assert tiling.get_tiling(t) == 0
    assert t.used_core_num == 24  # two fractals a core: 48 would be 48 cores, and 40 cannot share 48 evenly


def test_enumerations_have_the_vendors_values() -> None:
    position, types = HOST.TPosition, HOST.DataType
    assert [position.GM.value, position.A1.value, position.CO2.value, position.VECCALC.value] == [0, 1, 8, 11]
    assert position.LCM is position.VECCALC
    assert (position.SHM.value, position.TSCM.value, position.MAX.value) == (12, 13, 14)
    assert (types.DT_FLOAT.value, types.DT_INT32.value, types.DT_UINT8.value, types.DT_INT16.value) == (0, 3, 4, 6)
    assert (types.DT_BOOL.value, types.DT_STRING.value, types.DT_QINT8.value, types.DT_QUINT16.value) == (
        12,
        13,
        18,
        22,
    )
    assert (types.DT_BF16.value, types.DT_INT4.value, types.DT_BFLOAT16.value, types.DT_MAX.value) == (27, 29, 33, 40)
    assert HOST.CubeFormat.ROW_MAJOR is HOST.CubeFormat.ND
    assert (HOST.CubeFormat.VECTOR.value, HOST.CubeFormat.COLUMN_MAJOR.value) == (7, 8)
    assert (HOST.MatrixTraverse.FIRSTN.value, HOST.MatrixMadType.MXMODE.value) == (2, 2)
    assert (HOST.DequantType.TENSOR.value, HOST.ScheduleType.OUTER_PRODUCT.value) == (1, 1)


def test_pyasc_proxies_find_every_name(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("asc")
    from asc.lib import host
    from asc.lib.host.loader import Loader

    monkeypatch.setattr(Loader, "module", HOST)
    for name in (name for name in host.__all__ if name != "get_ascendc_platform"):
        ours = getattr(HOST, name)
        for proxy in type.mro(getattr(host, name))[:-2]:  # without ProxyBase and object
            inside = type.__getattribute__(proxy, "__dict__")
            wanted = {*inside, *inside.get("__annotations__", {})}
            missing = wanted - {*dir(ours), *getattr(ours, "__members__", {}), "name", "value"}
            assert not {member for member in missing if not member.startswith("_")}, name


def test_pyasc_struct_is_filled_through_the_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    asc = pytest.importorskip("asc")
    from asc.lib import host
    from asc.lib.host.loader import Loader

    monkeypatch.setattr(Loader, "module", HOST)
    tiling = host.MultiCoreMatmulTiling(host.get_ascendc_platform())
    position, layout, types = host.TPosition, host.CubeFormat, host.DataType
    assert tiling.set_a_type(position.GM, layout.ND, types.DT_FLOAT16, False) == 0
    assert tiling.set_b_type(position.GM, layout.ND, types.DT_FLOAT16, False) == 0
    assert tiling.set_c_type(position.VECCALC, layout.ND, types.DT_FLOAT) == 0
    assert tiling.set_bias_type(position.GM, layout.ND, types.DT_FLOAT) == 0
    assert tiling.set_dim(2) == 0
    assert tiling.set_org_shape(1024, 640, 256) == 0
    assert tiling.set_shape(1024, 640, 256) == 0
    assert tiling.enable_bias(True) == 0
    assert tiling.set_traverse(host.MatrixTraverse.FIRSTM) == 0
    assert tiling.set_fix_split(256, 128, -1) == 0
    assert tiling.set_matmul_config_params(host.MatmulConfigParams()) is None
    struct, plain = asc.adv.TCubeTiling(), SimpleNamespace()
    assert tiling.get_tiling(struct) == 0
    assert (struct.base_m, struct.base_n, struct.used_core_num, struct.is_bias) == (256, 128, 2, 1)
    words = np.frombuffer(struct.pack(), dtype=np.int32)
    assert words[:5].tolist() == [2, 1024, 640, 256, 256]  # used_core_num, m, n, k_a, k_b
    assert tiling.get_tiling(plain) == 0
    assert vars(plain) == {name: getattr(struct, name) for name in struct.struct_fields}
