"""What the machine refused, as findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from npuscope.sanitizer.findings import Finding, Severity, launched
from npuscope.trace.recorder import Batch
from npuscope.trace.schema import Fault

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """How a fault reads: class id, severity, what happened, what to do."""

    kind: str
    severity: Severity
    summary: Callable[[Facts], str]
    advice: str


def _queue(text: str) -> Callable[[Facts], str]:
    return lambda facts: text.format(queue=facts.get("queue") or "the queue", buffers=facts.get("buffers", ""))


def _capacity(facts: Facts) -> str:
    parts = ", ".join(f"{name or 'unnamed'} {count} x {size}" for name, count, size in facts["buffers"])
    return (
        f"the buffers need {facts['required']} bytes of {facts['space']}, a kernel has {facts['available']} "
        f"({parts})"
    )


def _capacity_advice(facts: Facts) -> str:
    """The largest size of the last buffer that still fits, when shrinking it alone can do."""
    buffers = facts["buffers"]
    name, count, size = buffers[-1]
    spare = facts["available"] - (facts["required"] - count * size)
    scale = facts["available"] / facts["required"]
    text = f"All buffers scaled by {scale:.3f} would fit (each a multiple of 32 bytes)"
    if spare >= 32 * count:
        text += f"; or {name or 'the last one'} with at most {spare // count // 32 * 32} bytes per buffer"
    return text + "."


FORMS: dict[str, Form] = {
    "over_capacity": Form("over-capacity", Severity.ERROR, _capacity, ""),
    "deque_empty": Form(
        "queue-state", Severity.ERROR, _queue("deque from {queue}, which is empty"),
        "Enque a tensor before this line.",
    ),
    "enque_foreign": Form(
        "queue-state", Severity.ERROR, _queue("enque into {queue} of a tensor that did not come from it"),
        "Enque only what alloc_tensor or deque of the same queue returned.",
    ),
    "enque_not_held": Form(
        "queue-state", Severity.ERROR, _queue("enque into {queue} of a tensor that is free or queued already"),
        "Allocate the tensor before, and enque it once.",
    ),
    "free_foreign": Form(
        "queue-state", Severity.ERROR, _queue("free_tensor on {queue} of a tensor that did not come from it"),
        "Free a tensor with the queue that allocated it.",
    ),
    "free_twice": Form(
        "queue-state", Severity.ERROR, _queue("free_tensor on {queue} of a tensor that is free already"),
        "Remove the second free_tensor.",
    ),
    "queue_no_idle_buffer": Form(
        "queue-state", Severity.ERROR,
        _queue("alloc_tensor on {queue}, all of whose {buffers} buffers are in use: the device would hang"),
        "Free a tensor first, or give the queue more buffers in init_buffer.",
    ),
    "queue_not_initialised": Form(
        "queue-state", Severity.ERROR, _queue("{queue} is used before init_buffer gave it memory"),
        "Call pipe.init_buffer for it first.",
    ),
    "enque_full": Form(
        "queue-state", Severity.WARNING,
        lambda facts: f"enque into {facts['queue'] or 'the queue'} beyond its depth of {facts['depth']}",
        "Deque before the next enque, or declare the queue deeper.",
    ),
    "queue_limit": Form(
        "queue-limit", Severity.ERROR,
        lambda facts: f"the queues of position {facts['position']} need {facts['required']} event ids, "
        f"the device has {facts['available']}",
        "Use fewer queues or fewer buffers per queue.",
    ),
    "trap": Form("trap", Severity.ERROR, lambda facts: "the kernel called trap and ends here", ""),
    "launch_too_large": Form(
        "launch-too-large", Severity.ERROR,
        lambda facts: f"the grid has {facts['blocks']} blocks, a launch takes at most {facts['limit']}; "
        "the kernel was not run",
        "Let each block do more work in a loop.",
    ),
    "copy_truncated": Form(
        "copy-truncated", Severity.WARNING,
        lambda facts: f"the copy is no multiple of {facts['unit']} bytes: the last {facts['bytes']} bytes stay behind",
        "Round the count up where both sides have room, or use data_copy_pad.",
    ),
    "bad_operand": Form(
        "bad-operand", Severity.ERROR,
        lambda facts: f"{facts.get('what', 'an operand')} is {facts.get('value')}, "
        f"the device takes {facts.get('limit')}",
        "Keep the operand within what the instruction takes.",
    ),
}
"""Faults that the memory check reports; those of synchronisation are in sync_faults. What is said of the data cache
(stale_read, lost_write) is evidence for the check of cache maintenance."""

SYNC_OPERANDS = ("event", "cross-core", "pipe of pipe_barrier", "mode of cross-core", "pipe of cross_core")
"""How the names of operands begin that belong to the check of synchronisation."""


def about_synchronisation(fault: Fault) -> bool:
    """Whether a fault ``bad_operand`` is about an operand of a synchronisation."""
    return str(fault.facts.get("what", "")).startswith(SYNC_OPERANDS)


def fault_finding(batch: Batch, fault: Fault) -> Finding | None:
    """The finding for a fault, None for one that another check reports."""
    form = FORMS.get(fault.code)
    if form is None or (fault.code == "bad_operand" and about_synchronisation(fault)):
        return None
    advice = _capacity_advice(fault.facts) if fault.code == "over_capacity" else form.advice
    return form_finding(batch, fault, form, advice)


def form_finding(
    batch: Batch, fault: Fault, form: Form, advice: str = "", notes: tuple[str, ...] = (), site: int = -1
) -> Finding:
    """A fault in its form; `site` is the line where it is not the fault's own, `advice` where it is not the form's."""
    launch = batch.launch
    cores = (launch.cores[fault.core].name,) if 0 <= fault.core < len(launch.cores) else ()
    frames = batch.sites[fault.site if site < 0 else site].frames
    return Finding(
        form.kind, form.severity, form.summary(fault.facts), advice or form.advice, launch.kernel, launch.index, cores,
        launched=launched(launch), launch_frame=launch.frame, notes=notes, facts=dict(fault.facts), frames=frames,
    )
