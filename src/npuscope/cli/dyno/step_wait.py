"""Waiting until the vendor's plug-in has traced its steps."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from npuscope.cli.dyno.carry_out import Result, Waiter
from npuscope.cli.dyno.errand import Reply, read
from npuscope.cli.dyno.options import host_name
from npuscope.cli.dyno.server import Call
from npuscope.cli.dyno.voice import Voice
from npuscope.errors import UserError
from npuscope.monitor.fanout import Limits, Question, ask_all
from npuscope.monitor.protocol import rpc
from npuscope.monitor.trace_file import CLOCK_SECONDS

ASK_SECONDS = 0.5
PATIENCE_SECONDS = 3.0
ENDING, METADATA = "_ascend_pt", "profiler_metadata.json"
ACTIVE = ("Ready", "Running")


@dataclass
class Node:
    """One host's plug-in: it reports one status for all its processes, and writes a folder for each."""

    result: Result
    folder: str
    doing: str = ""
    started: bool = False
    done: bool = False

    def hear(self, reply: Reply, began: float) -> str | None:
        """Take note of a status; returns what is new, in words."""
        state = str(reply.get("nputrace"))
        words = {
            "Ready": f"starts at step {reply.get('start_step')}, now at {reply.get('current_step')}",
            "Running": f"traces up to step {reply.get('stop_step')}, now at {reply.get('current_step')}",
        }.get(state, "waits for the plug-in to take the request")
        self.started = self.started or state in ACTIVE
        if state == "Idle" and (self.started or any(map(finished, outputs(self.folder, began)))):
            self.done, words = True, "has stopped tracing"
        if words == self.doing:
            return None
        self.doing = words
        return words


@dataclass
class StepWaiter(Waiter):
    """Waits for the plug-in's word that it is done; folders are listed where they can be seen."""

    seconds: float
    folder: str
    began: float = field(default_factory=time.time)

    def wait(self, results: Sequence[Result], call: Call, voice: Voice) -> bool:
        """Whether the plug-in of every host that was told has traced and stopped."""
        nodes = [Node(one, host_name(self.folder, one.endpoint.host if call.hosts else None)) for one in results]
        told = [node for node in nodes if node.result.verdict.done]
        self._watch(told, call, voice)
        for node in told:
            node.result.files = [_document(path) for path in outputs(node.folder, self.began)]
            for file in node.result.files:
                voice.note(f"{node.result.endpoint}: written: {file['path']}")
            if not node.done:
                reason = f"not done after {self.seconds:g} s: {node.doing or 'the daemon does not answer'}"
                node.result.verdict = replace(node.result.verdict, done=False, reason=reason)
                voice.note(f"{node.result.endpoint}: {reason}")
        return all(node.done for node in told)

    def _watch(self, nodes: Sequence[Node], call: Call, voice: Voice) -> None:
        deadline = time.monotonic() + self.seconds
        limits = Limits(call.limits.parallel, min(call.limits.seconds, PATIENCE_SECONDS))
        while left := [node for node in nodes if not node.done]:
            questions = [Question(node.result.endpoint, rpc.simple_request("getStatus")) for node in left]
            for node, answer in zip(left, ask_all(questions, limits, call.server.certificates), strict=True):
                try:
                    words = node.hear(read(answer.reply or "", answer.endpoint), self.began)
                except UserError:
                    continue
                if words:
                    voice.note(f"{answer.endpoint}: {words}")
            if time.monotonic() >= deadline:
                return
            time.sleep(min(ASK_SECONDS, max(0.0, deadline - time.monotonic())))


def outputs(folder: str, began: float) -> list[str]:
    """The folders of results below `folder` that are not older than `began`; none where it cannot be seen."""
    try:
        with os.scandir(folder) as entries:
            found = [
                entry.path
                for entry in entries
                if entry.name.endswith(ENDING) and entry.is_dir() and entry.stat().st_mtime >= began - CLOCK_SECONDS
            ]
    except OSError:
        return []
    return sorted(found)


def finished(folder: str) -> bool:
    """Whether a trace's folder has what is written into it last. A short trace may be over between two questions."""
    return os.path.exists(os.path.join(folder, METADATA))


def _document(path: str) -> dict[str, Any]:
    return {"path": path}
