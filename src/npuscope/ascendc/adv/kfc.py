"""The message queue between the vector cores of a mixed kernel (clients) and their AIC (the server).

On the device, register_matmul turns the AIC into a server that never reaches the lines after it, and a client's calls
post messages through GM. Here the client's call does the AIC's work at once, in rows of the AIC, because the client's
order of calls is the order in which the server takes them. Three rows mark what orders the two cores:

* ``kfc_post``, on the client's MTE3 (which writes the message): a: kind of message, b: the server's core. What the
  client's MTE3 did before is done when the server sees the message.
* ``kfc_notify``, on the server's FIX: a: kind, b: the client's core.
* ``kfc_wait``, on the client's S: a: kind, b: the server's core. The client goes on after the notification.

The queue's own memory (the workspace that the kernel passes) is not modelled.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import IntEnum
from typing import Any

from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.errors import UserError
from npuscope.npu.core import Core, opcode
from npuscope.npu.sync import HardEvent, Wait
from npuscope.npu.tensor import Tensor
from npuscope.trace.schema import Origin, Pipe

S, V, MTE2, MTE3, FIX = int(Pipe.S), int(Pipe.V), int(Pipe.MTE2), int(Pipe.MTE3), int(Pipe.FIX)
POST, NOTIFY, WAIT = opcode("kfc_post"), opcode("kfc_notify"), opcode("kfc_wait")
SERVE = opcode("kfc_serve")
SET_FLAG, WAIT_FLAG = opcode("set_flag"), opcode("wait_flag")
FRAMEWORK = int(Origin.FRAMEWORK)


class Message(IntEnum):
    """What a client asks of its server."""

    INIT = 1
    ITERATE = 2
    GET_TENSOR_C = 3
    ITERATE_ALL = 4
    ITERATE_BATCH = 5
    ITERATE_N_BATCH = 6
    ORG_SHAPE = 7
    HF32 = 8
    USER_DEF_INFO = 9
    END = 10


def server_of(core: Core) -> Core:
    """The core that multiplies for `core`: itself where it has a cube, else the AIC of its block.

    Raises UserError on a vector core of a launch without cube cores.
    """
    if core.is_aic or not core.chip.split:
        return core
    aic = core.machine.cross_core.group(core.index).aic
    if aic is None:
        raise UserError("Matmul needs a cube core and this launch has none: kernel_type must be a mixed one")
    return core.machine.cores[aic]


def serve(core: Core, site: int) -> Generator[Wait, None, None]:
    """An AIC waits until the vector cores of its block, its clients, have ended."""
    clients = core.machine.cross_core.group(core.index).aivs
    while any(core.machine.cores.made(client) is not None for client in clients):
        yield Wait(core.index, S, "messages of Matmul clients", site)


def post(client: Core, server: Core, site: int, message: Message) -> None:
    """A message on its way; nothing where the core serves itself."""
    if server is not client:
        client.begin(site, MTE3, POST, int(message), server.index, origin=FRAMEWORK)


def notify(client: Core, server: Core, site: int, message: Message) -> None:
    """The server says that it is done."""
    if server is not client:
        server.begin(site, FIX, NOTIFY, int(message), client.index, origin=FRAMEWORK)


def wait(client: Core, server: Core, site: int, message: Message) -> None:
    """The client waits for the server's notification."""
    if server is not client:
        client.begin(site, S, WAIT, int(message), server.index, origin=FRAMEWORK)


def ready_in_ub(core: Core, site: int, tensor: Tensor) -> None:
    """The flag by which the library makes the vector unit wait for a copy into `tensor`; it is named after the buffer,
    as the flags of queues are."""
    _flag(core, site, HardEvent.MTE2_V, MTE2, V, tensor)


def ready_to_send(core: Core, site: int, tensor: Tensor) -> None:
    """The flag by which the library makes its copy out of `tensor` wait for the vector unit."""
    _flag(core, site, HardEvent.V_MTE3, V, MTE3, tensor)


def _flag(core: Core, site: int, event: HardEvent, source: int, target: int, tensor: Tensor) -> None:
    core.begin(site, source, SET_FLAG, int(event), 0, tensor.buffer, origin=FRAMEWORK)
    core.begin(site, target, WAIT_FLAG, int(event), 0, tensor.buffer, origin=FRAMEWORK)


@operation("ascendc.kfc_server.init")
def server_init(core: Core, site: int, server: Record, workspace: Any) -> None:
    """KfcServer.Init: the core becomes a server without leaving the kernel."""
    core.begin(site, S, SERVE, origin=FRAMEWORK)
    server.__dict__["objects"] = []


@operation("ascendc.kfc_server.init_obj", variadic=("objects",))
def server_init_object(core: Core, site: int, server: Record, pipe: Any, objects: list[Any]) -> None:
    """KfcServer.InitObj: the Matmul objects that are served; a client's object knows its server by itself."""
    server.__dict__["objects"] = list(objects)


@operation("ascendc.kfc_server.is_run")
def server_is_run(core: Core, site: int, server: Record) -> Generator[Wait, None, int]:
    """KfcServer.isRun: comes back with 0 when the clients have ended; until then they have their messages carried out
    when they post them."""
    yield from serve(core, site)
    return 0


@operation("ascendc.kfc_server.run")
def server_run(core: Core, site: int, server: Record, matmul: Record) -> None:
    """KfcServer.Run: carry out what has been posted and not been done, which is never anything."""


@operation("ascendc.kfc_server.quit")
def server_quit(core: Core, site: int, server: Record) -> None:
    """KfcServer.Quit: no client will post again."""
    server.__dict__["objects"] = []
