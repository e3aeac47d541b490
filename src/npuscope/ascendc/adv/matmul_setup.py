"""Matmul: registering an object, and its setters (the vendor's Matmul kernel API pages)."""

from __future__ import annotations

from typing import Any

from npuscope.ascendc.adv import kfc
from npuscope.ascendc.adv.kfc import FRAMEWORK, SERVE, Message, S
from npuscope.ascendc.adv.matmul_matrix import private_copy
from npuscope.ascendc.adv.matmul_object import Given, Matmul, make, matmul_of
from npuscope.ascendc.adv.matmul_types import Operand, Tiling, static_tiling
from npuscope.ascendc.adv.matmul_types import matmul_type as read_type
from npuscope.ascendc.params import Record
from npuscope.ascendc.registry import operation
from npuscope.errors import Unsupported, UserError
from npuscope.npu.core import READ, Core, opcode
from npuscope.npu.layout import contiguous
from npuscope.npu.machine import CoreExit
from npuscope.npu.numbers import type_name
from npuscope.npu.tensor import DType, Pointer, Tensor
from npuscope.trace.schema import Pipe, Space

MTE3 = int(Pipe.MTE3)
REGISTER = opcode("register_matmul")
SEND = {Space.GM: opcode("copy_ub_to_gm"), Space.L1: opcode("copy_ub_to_l1")}


def refuse(core: Core, site: int, what: str, value: Any, limit: str) -> None:
    """Note a use of the object that the device does not take."""
    core.site = site
    core.fault("bad_operand", what=what, value=value, limit=limit)


# -- registering and tiling ------------------------------------------------------------------------------------------


@operation("ascendc.regist_matmul_obj")
def regist_matmul_obj(
    core: Core, site: int, pipe: Any, workspace: Any, matmul: Record, tiling: Record | None = None
) -> None:
    """REGIST_MATMUL_OBJ: ties the object to a cube core. On the AIC of a mixed kernel the rest of the kernel is not
    for this core, which serves its vector cores: raises CoreExit. `workspace` holds the message queue, which is not
    modelled. More than one object in a mixed kernel is refused: the server of the first never comes to the second."""
    if core.is_aic and core.machine.mixed:
        core.begin(site, S, SERVE, origin=FRAMEWORK)
        raise CoreExit
    core.begin(site, S, REGISTER, origin=FRAMEWORK)
    state = make(matmul, core, kfc.server_of(core))
    objects: list[Record] = core.library.setdefault("matmul", [])
    if matmul not in objects:
        objects.append(matmul)
    if state.remote and len(objects) > 1:
        refuse(core, site, "the number of register_matmul calls of a mixed kernel", len(objects), "1")
    if tiling is not None:
        state.init(Tiling.of(tiling))


@operation("ascendc.matmul.init")
def init(core: Core, site: int, matmul: Record, tiling: Record, pipe: Any = None) -> None:
    """Init: the tiling, for an object registered without one or to start with another."""
    state = matmul_of(matmul)
    kfc.post(core, state.worker, site, Message.INIT)
    state.init(Tiling.of(tiling))


@operation("ascendc.get_matmul_api_tiling")
def get_matmul_api_tiling(core: Core, site: int, config: Record, l1_size: int, *, matmul_type: str) -> Record:
    """GetMatmulApiTiling: the tiling that a MatmulConfig with constant sizes fixes."""
    found = read_type(matmul_type)
    bits = (found.a.dtype.itemsize * 8, found.b.dtype.itemsize * 8)
    return static_tiling(config, l1_size, *bits, bool(config.enable_set_bias))


@operation("ascendc.matmul.set_org_shape")
def set_org_shape(
    core: Core, site: int, matmul: Record, org_m: int, org_n: int, org_ka: int,
    org_kb: int | None = None, org_kc: int | None = None,
) -> None:  # fmt: skip
    """SetOrgShape: the whole matrices. With three sizes K is that of both, and C is N wide; the fifth is C's width
    where it is not N."""
    state = matmul_of(matmul)
    kfc.post(core, state.worker, site, Message.ORG_SHAPE)
    shape = state.shape
    shape.m, shape.n, shape.ka = org_m, org_n, org_ka
    shape.kb = org_ka if org_kb is None else org_kb
    shape.kc = org_n if org_kb is None else org_kc or 0


@operation("ascendc.matmul.set_single_shape")
def set_single_shape(core: Core, site: int, matmul: Record, single_m: int, single_n: int, single_k: int) -> None:
    """SetSingleShape: the single core's part, -1 keeps a size."""
    shape = matmul_of(matmul).shape
    shape.single_m = shape.single_m if single_m == -1 else single_m
    shape.single_n = shape.single_n if single_n == -1 else single_n
    shape.single_k = shape.single_k if single_k == -1 else single_k


@operation("ascendc.matmul.set_tail")
def set_tail(core: Core, site: int, matmul: Record, tail_m: int, tail_n: int, tail_k: int) -> None:
    """SetTail: the same as SetSingleShape."""
    set_single_shape(core, site, matmul, tail_m, tail_n, tail_k)


# -- operands --------------------------------------------------------------------------------------------------------


def check_operand(name: str, wanted: DType, given: DType) -> None:
    """UserError unless a tensor has the element type that the object was made for."""
    if wanted != given:
        raise UserError(f"matmul.{name}: the object is made for {type_name(wanted)}, the tensor has {type_name(given)}")


def reachable(state: Matmul, tensor: Tensor) -> Tensor:
    """A tensor in L1 as the cube core sees it: a client's handle means the AIC's L1."""
    if tensor.memory.space != Space.L1 or not state.remote:
        return tensor
    memory = state.worker.memories[Space.L1]
    return Tensor(memory, tensor.address, tensor.dtype, tensor.buffer, tensor.length, tensor.position, tensor.slot)


def sent(state: Matmul, site: int, tensor: Tensor) -> tuple[Tensor, bool]:
    """An operand where the cube core can reach it, and whether it is a copy: a tensor in UB is copied out, to GM or, on
    3510, to L1."""
    if tensor.memory.space != Space.UB:
        return reachable(state, tensor), False
    core = state.client
    layout = contiguous(max(tensor.length, 0), tensor.dtype.itemsize)
    kfc.ready_to_send(core, site, tensor)
    code = SEND[Space.L1 if core.chip.arch == "3510" else Space.GM]
    core.begin(site, MTE3, code, work=layout.count * tensor.dtype.itemsize)
    core.note(READ, tensor, layout)
    return private_copy(core.view(tensor, layout).copy()), True


def _given(
    core: Core, site: int, matmul: Record, name: str, operand: Operand, tensor: Tensor, transpose: int
) -> Given:
    check_operand(name, operand.dtype, tensor.dtype)
    if transpose and not operand.transposed:
        refuse(core, site, f"transpose of {name}", "True", "True only where the MatmulType has is_trans=True")
    where, private = sent(matmul_of(matmul), site, tensor)
    return Given(where, bool(transpose), None, private)


@operation("ascendc.matmul.set_tensor_a")
def set_tensor_a(core: Core, site: int, matmul: Record, tensor: Tensor, transpose: int) -> None:
    """SetTensorA: (M, K), or with `transpose` stored as (K, M); in GM, UB (copied at once) or L1 (NZ)."""
    state = matmul_of(matmul)
    state.given_a = _given(core, site, matmul, "set_tensor_a", state.type.a, tensor, transpose)
    state.fresh = True


@operation("ascendc.matmul.set_tensor_b")
def set_tensor_b(core: Core, site: int, matmul: Record, tensor: Tensor, transpose: int) -> None:
    """SetTensorB: (K, N), or with `transpose` stored as (N, K)."""
    state = matmul_of(matmul)
    state.given_b = _given(core, site, matmul, "set_tensor_b", state.type.b, tensor, transpose)
    state.fresh = True


@operation("ascendc.matmul.set_tensor_a_scalar")
def set_tensor_a_scalar(core: Core, site: int, matmul: Record, scalar: float) -> None:
    """SetTensorA(scalar): every element of A is `scalar`."""
    state = matmul_of(matmul)
    state.given_a, state.fresh = Given(None, scalar=scalar), True


@operation("ascendc.matmul.set_tensor_b_scalar")
def set_tensor_b_scalar(core: Core, site: int, matmul: Record, scalar: float) -> None:
    """SetTensorB(scalar): every element of B is `scalar`."""
    state = matmul_of(matmul)
    state.given_b, state.fresh = Given(None, scalar=scalar), True


@operation("ascendc.matmul.set_bias")
def set_bias(core: Core, site: int, matmul: Record, tensor: Tensor) -> None:
    """SetBias: one value for each column of the single core's C. Takes a tiling with isBias."""
    state = matmul_of(matmul)
    if not state.settled().isBias:
        refuse(core, site, "is_bias of the tiling of a Matmul with set_bias", 0, "1")
    state.next_bias, _ = sent(state, site, tensor)


@operation("ascendc.matmul.disable_bias")
def disable_bias(core: Core, site: int, matmul: Record) -> None:
    """DisableBias: no bias from now on."""
    matmul_of(matmul).next_bias = None


@operation("ascendc.matmul.set_quant_scalar")
def set_quant_scalar(core: Core, site: int, matmul: Record, scalar: int) -> None:
    """SetQuantScalar: one quantisation word for all of C (hardware.md 5)."""
    matmul_of(matmul).quant = int(scalar)


@operation("ascendc.matmul.set_quant_vector")
def set_quant_vector(core: Core, site: int, matmul: Record, vector: Tensor) -> None:
    """SetQuantVector: a uint64 word for each column of the single core's C, in GM or L1."""
    state = matmul_of(matmul)
    state.quant = reachable(state, vector)


@operation("ascendc.matmul.set_hf32")
def set_hf32(core: Core, site: int, matmul: Record, enable: int, mode: int) -> None:
    """SetHF32: round float operands to HF32, mode 1 with the cube's second rounding mode. Holds for the cube core until
    it is set again."""
    state = matmul_of(matmul)
    kfc.post(core, state.worker, site, Message.HF32)
    registers = state.worker.registers
    registers.hf32, registers.hf32_toward_zero = bool(enable), mode == 1


@operation("ascendc.matmul.set_sparse_index")
def set_sparse_index(core: Core, site: int, matmul: Record, index: Tensor) -> None:
    """SetSparseIndex: pyasc cannot make the B of 4:2 sparsity that the index belongs to, and the device ignores the
    index of any other. Raises Unsupported."""
    raise Unsupported("matmul.set_sparse_index: sparse B is not simulated; multiply the dense matrix")


@operation("ascendc.matmul.set_self_define_data")
def set_self_define_data(core: Core, site: int, matmul: Record, data: Any) -> None:
    """SetSelfDefineData: what copy callbacks get. pyasc has no callbacks, so nothing reads it."""
    matmul.__dict__["self_define_data"] = data


@operation("ascendc.matmul.set_user_def_info")
def set_user_def_info(core: Core, site: int, matmul: Record, tiling: Any) -> None:
    """SetUserDefInfo: the tiling address that copy callbacks get; as set_self_define_data."""
    kfc.post(core, matmul_of(matmul).worker, site, Message.USER_DEF_INFO)
    matmul.__dict__["user_def_info"] = tiling


@operation("ascendc.matmul.set_workspace")
def set_workspace(core: Core, site: int, matmul: Record, address: Tensor | Pointer, size: int | None = None) -> None:
    """SetWorkspace: room in GM for the tiles of an asynchronous Iterate and of IterateNBatch; `size` in elements of the
    address."""
    state, dtype = matmul_of(matmul), matmul_of(matmul).type.c.dtype
    length = size if size is not None else getattr(address, "length", -1)
    elements = length * address.dtype.itemsize // dtype.itemsize if length >= 0 else -1
    state.workspace = Tensor(address.memory, address.address, dtype, address.buffer, elements)
