"""The server object of a mixed kernel that keeps its cube core's kernel going."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from npuscope.ascendc.adv.kfc import server_of
from npuscope.ascendc.params import construct
from npuscope.errors import UserError
from npuscope.npu.core import Core
from npuscope.trace.schema import OPCODES, CoreInfo, CoreType


def test_the_server_runs_until_its_clients_have_ended(mixed: Any) -> None:
    ended: list[str] = []

    def kernel(device: Any, core: Core, call: Any) -> Generator[Any, None, None]:
        if core.is_aic:
            server = construct("kfc_server", "!ascendc.kfc_server")
            yield from call("kfc_server.init", server, None)
            handle = construct("matmul", "!ascendc.matmul<>")
            yield from call("kfc_server.init_obj", server, None, [handle])
            while (yield from call("kfc_server.is_run", server)):
                yield from call("kfc_server.run", server, handle)
            yield from call("kfc_server.quit", server)
        else:
            for _turn in range(1 + core.info.block):
                yield 0
        ended.append(core.info.name)

    device = mixed(kernel, blocks=2)
    assert ended.index("AIC 0") > max(ended.index("AIV 0"), ended.index("AIV 1"))
    assert ended.index("AIC 1") > max(ended.index("AIV 2"), ended.index("AIV 3"))
    assert [OPCODES.names[code] for code in device.trace().column("opcode")].count("kfc_serve") == 2


def test_a_core_serves_itself_or_is_served_by_its_block(make_device: Any) -> None:
    cube = make_device(cores=(CoreInfo(CoreType.AIC, 0),))
    assert server_of(cube.core) is cube.core
    both = make_device("310P3")
    assert server_of(both.core) is both.core
    vector = make_device()
    with pytest.raises(UserError, match="mixed"):
        server_of(vector.core)
