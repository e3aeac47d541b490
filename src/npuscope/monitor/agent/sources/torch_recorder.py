"""The calls of PyTorch that record what one thread does, and what makes them safe in a job that knows nothing of them.

PyTorch has two recorders. The one behind `torch.profiler` hands every operator that begins a pointer into its memory
and writes through it when the operator ends; an operator that ends after that recording is over, and while the next one
goes on, writes into memory that has been freed. So only the older recorder is used here. It notes beginnings and ends
as separate entries of a list under a lock, an end names its beginning by a number, and one that comes too late is an
entry that nobody reads. What was found out about it, in PyTorch 2.13 and its sources, and what this relies on:

* It belongs to the thread that starts it, and only that thread can end it. Threads that work for this one (gloo's,
  those that run the backward pass on a device) inherit it and write into the same lists.
* It must be ended completely each time: its option to hand over the entries and go on leaves a callback behind.
* The backward pass restores, after each of its nodes, the state in which it began. Started or ended by a hook in there,
  a recorder would be brought back from the dead, so nothing is done in there (`inside_backward`).
* The end of an operator looks for the thread's recorder, and takes whatever is there for one of its kind. So no other
  recorder may begin on this thread while an operator is going on that began under ours: `torch_rivals`. User ranges,
  within which a job may well start a profiler, are not let through to PyTorch meanwhile: `torch_ranges`.
* While it is on, torch.distributed.rpc asks other processes to record too, so with rpc nothing is recorded.
"""

from __future__ import annotations

import sys
from typing import Any

from npuscope.monitor.agent.sources.source import Unavailable
from npuscope.monitor.agent.sources.torch_rivals import original

NEEDED = ("_enable_profiler_legacy", "_disable_profiler_legacy", "_profiler_enabled")
RPC = "torch.distributed.rpc.api"
NO_GRAPH_TASK = -1


def demand() -> None:
    """Raises Unavailable where this PyTorch cannot be recorded safely."""
    torch = sys.modules.get("torch")
    if torch is None:
        raise Unavailable("PyTorch is not imported in this process")
    if not all(hasattr(torch._C._autograd, name) for name in NEEDED) or not hasattr(torch._C, "_current_graph_task_id"):
        version = getattr(torch, "__version__", "of an unknown version")
        raise Unavailable(f"PyTorch {version} has no recorder that is safe to use in a running job; 2.4 to 2.13 have")
    if uses_rpc():
        raise Unavailable("the job uses torch.distributed.rpc, which a recorder here would make record everywhere")


def begin(*, shapes: bool, memory: bool) -> None:
    """Record this thread's operators from now on. Raises Unavailable, and then nothing is recorded."""
    torch = sys.modules["torch"]
    try:
        original("_enable_profiler_legacy")(_settings(torch._C._profiler, shapes, memory))
    except Exception as error:
        raise Unavailable(f"PyTorch's recorder does not start: {error}") from error


def end() -> list[list[Any]]:
    """Stop, on the thread that began; the entries of each thread that wrote some, in order of time. Raises
    Unavailable when there is no recorder to end."""
    try:
        found: list[list[Any]] = sys.modules["torch"]._C._autograd._disable_profiler_legacy()
        return found
    except Exception as error:
        raise Unavailable(f"PyTorch's recorder does not stop: {error}") from error


def recorded_already() -> bool:
    """Whether this thread is recorded by anybody."""
    return bool(sys.modules["torch"]._C._autograd._profiler_enabled())


def inside_backward() -> bool:
    """Whether this thread runs a backward pass, in whose hooks nothing may begin or end."""
    return int(sys.modules["torch"]._C._current_graph_task_id()) != NO_GRAPH_TASK


def uses_rpc() -> bool:
    """Whether torch.distributed.rpc is at work."""
    is_set = getattr(sys.modules.get(RPC), "_is_current_rpc_agent_set", None)
    return is_set is not None and bool(is_set())


def _settings(inner: Any, shapes: bool, memory: bool) -> Any:
    return inner.ProfilerConfig(
        inner.ProfilerState.CPU, shapes, memory, False, False, False, inner._ExperimentalConfig()
    )
