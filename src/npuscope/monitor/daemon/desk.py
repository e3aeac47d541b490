"""The daemon's side of the RPC: a request's bytes in, the reply's text out. Always a reply, whatever came."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from npuscope import __version__
from npuscope.monitor.daemon.absence import explained
from npuscope.monitor.daemon.folders import Folders, Refused
from npuscope.monitor.daemon.identity import ROOT, command, gone, own_user, rank
from npuscope.monitor.daemon.ledger import Asked, Ledger, measure
from npuscope.monitor.daemon.registry import Match, Order, Outcome, Registry
from npuscope.monitor.daemon.status import Account, Registrar
from npuscope.monitor.metrics.record import PROCESS, Record
from npuscope.monitor.protocol import rpc
from npuscope.monitor.protocol.config import BadConfig, expected_end, read, require_plain, trace_file, validate
from npuscope.monitor.protocol.fabric import Channel, Dialect

MONITOR_KEY = "NPU_MONITOR_START"
PLUGIN_KEYS = ("PROFILE_START_STEP", "PROFILE_ACTIVITIES", "PROFILE_PROFILER_LEVEL", "PROFILE_IS_RANK")
DEFAULT_LIMIT = 1000
LARGEST_LIST = 4096


class BadRequest(ValueError):
    """A request that is answered with the word failed; the message is the reason, "" when the keys are missing."""


class Desk:
    """Answers requests."""

    def __init__(
        self,
        registrar: Registrar,
        folders: Folders,
        latest: Callable[[], Sequence[Record]] = tuple,
        account: Account | None = None,
    ) -> None:
        """`latest` gives the newest measurements."""
        self._registrar = registrar
        self._folders = folders
        self._latest = latest
        self.account = account or Account(registrar, Ledger())

    def answer(self, payload: bytes, uid: int | None) -> str:
        """The reply to a request of user `uid`, None when it comes from another host."""
        try:
            return rpc.compact(self._reply(rpc.parse(payload), uid))
        except (rpc.BadFrame, BadRequest) as error:
            return failed(str(error))

    def _reply(self, request: dict[str, Any], uid: int | None) -> dict[str, Any]:
        function = request.get("fn")
        if function == "getVersion":
            return {"version": __version__}
        if function == "getStatus":
            self._bury()
            return self.account.status(own_user() if uid is None else uid, remote=uid is None)
        if function == "setKinetOnDemandRequest":
            return self._trace(request, uid)
        if function == "getMetrics":
            return {"records": [_measured(record) for record in self._latest() if _may_see(record, uid)]}
        if function in ("dcgmProfPause", "dcgmProfResume"):
            return {"status": False}
        raise BadRequest(f"json.exception: unknown function {function!r}")

    def _trace(self, request: dict[str, Any], uid: int | None) -> dict[str, Any]:
        if "config" not in request or "pids" not in request:
            raise BadRequest("")
        config, pids = request["config"], request["pids"]
        job, limit = request.get("job_id", 0), request.get("process_limit", DEFAULT_LIMIT)
        _typed("config", config, str)
        _typed("pids", pids, list)
        for name, value in (("job_id", job), ("process_limit", limit), *(("pids", pid) for pid in pids)):
            _typed(name, value, int)
        if len(pids) > LARGEST_LIST:
            raise BadRequest(f"json.exception: pids names more than {LARGEST_LIST} processes")
        requester = own_user() if uid is None else uid
        now = time.time()
        try:
            pairs, dialect = self._understood(config, requester, now)
        except (BadConfig, Refused) as error:
            return _told(Outcome((), str(error)), {}, refused=True)
        everybody = requester == ROOT and uid is not None
        ends = expected_end(pairs, now) if dialect is Dialect.KINETO else None
        order = Order(config, job, tuple(pids), limit, None if everybody else requester, dialect, ends)
        if dialect is Dialect.MSMONITOR and (held := self._registrar(lambda registry: obstacle(registry, order))):
            return _told(explained(Outcome((), held[1]), order), pairs) | {"commandStatus": held[0]}
        self._bury()
        outcome = self._registrar(lambda registry: registry.trigger(order, now))
        reply = _told(explained(outcome, order), pairs)
        self._note(outcome, reply["processes"], order, pairs, now)
        return reply

    def _note(
        self, outcome: Outcome, shown: list[dict[str, Any]], order: Order, pairs: dict[str, str], now: float
    ) -> None:
        folder = pairs.get("NPU_MONITOR_LOG_FILE", "")
        for match, process in zip(outcome.matches, shown, strict=True):
            if match.trace_id is not None:
                file = process["traceFile"] or folder
                asked = Asked(
                    match.trace_id, match.pid, match.sender_pid, match.user, order.job, process.get("rank"),
                    process["command"], order.dialect, file, measure(pairs), now, order.ends,
                )  # fmt: skip
                self.account.ledger.note(asked)

    def _bury(self) -> None:
        """Have processes forgotten that have ended; looking them up is too slow for the thread that answers polls."""
        dead = [sender for sender in self._registrar(Registry.senders) if gone(sender.pid)]
        if dead:
            self._registrar(lambda registry: registry.forget(dead))

    def _understood(self, config: str, uid: int, now: float) -> tuple[dict[str, str], Dialect]:
        require_plain(config)
        if for_plugin(config):
            pairs = dict(line.split("=") for line in config.split("\n") if line.count("=") == 1)
            folder = pairs.get("NPU_MONITOR_LOG_FILE") or pairs.get("ACTIVITIES_LOG_FILE")
            if folder:
                self._folders.check(folder, uid, is_folder=True)
            return pairs, Dialect.MSMONITOR
        pairs = read(config)
        validate(pairs, now)
        self._folders.check(pairs.get("ACTIVITIES_LOG_FILE", ""), uid)
        return pairs, Dialect.KINETO


def for_plugin(config: str) -> bool:
    """Whether a text is meant for the vendor's plug-in: stock PyTorch knows none of these keys."""
    keys = {line.partition("=")[0].strip() for line in config.split("\n")}
    return config.startswith(MONITOR_KEY) or not keys.isdisjoint(PLUGIN_KEYS)


def failed(reason: str) -> str:
    """The reply to what cannot be answered."""
    return rpc.compact({"status": f"failed with exception = {reason}" if reason else "failed"})


def _typed(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadRequest(f"json.exception: {name} has the wrong type")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise BadRequest(f"json.exception: {name} is out of range")


def conflict(registry: Registry, config: str) -> tuple[str, str] | None:
    """(command status, why) when the plug-in's trace or monitor stands in the way; None when the order may pass."""
    trace, monitor = (
        registry.statuses[channel].status if channel in registry.statuses else -1
        for channel in (Channel.TRACE, Channel.MONITOR)
    )
    own, other = (monitor, trace) if config.startswith(MONITOR_KEY) else (trace, monitor)
    names = ("monitor", "trace") if config.startswith(MONITOR_KEY) else ("trace", "monitor")
    if own == -1:
        return "ineffective", f"the plug-in has not said yet where its {names[0]} stands"
    if other == 1:
        return "ineffective", f"a {names[1]} is running, and the two exclude each other"
    if other == 0 or (other == 2 and names[1] == "trace"):
        return None
    return "unknown", f"the plug-in has not said yet where its {names[1]} stands"


def obstacle(registry: Registry, order: Order) -> tuple[str, str] | None:
    """The conflict in the way of an order; where no plug-in is registered at all, that is the reason."""
    held = conflict(registry, order.config)
    if held and not any(process.sender.dialect is order.dialect for process in registry.processes.values()):
        return held[0], registry.why_nothing(order)
    return held


def _told(outcome: Outcome, pairs: dict[str, str], *, refused: bool = False) -> dict[str, Any]:
    reply: dict[str, Any] = {
        "activityProfilersBusy": len(outcome.pids("busy")),
        "activityProfilersTriggered": outcome.pids("triggered"),
        "eventProfilersBusy": 0,
        "eventProfilersTriggered": [],
        "processesMatched": outcome.pids(),
        "commandStatus": "effective" if outcome.pids("triggered") else "ineffective",
        "processes": [_shown(match, pairs.get("ACTIVITIES_LOG_FILE", "")) for match in outcome.matches],
    }
    if outcome.reason:
        reply["reason"] = outcome.reason
    if refused:
        reply["refused"] = True
    return reply


def _shown(match: Match, log_file: str) -> dict[str, Any]:
    shown: dict[str, Any] = {"pid": match.pid, "outcome": match.outcome, "command": command(match.sender_pid)}
    shown |= _where(match.sender_pid)
    if (number := rank(match.sender_pid)) is not None:
        shown["rank"] = number
    if match.sender_pid > 0:
        shown["hostPid"] = match.sender_pid
    if match.launcher:
        shown["launcher"] = True
    if match.outcome == "busy":
        shown["state"] = match.state
    if match.trace_id is not None:
        shown |= {"traceId": match.trace_id, "traceFile": trace_file(log_file, match.pid)}
    return shown


def _may_see(record: Record, uid: int | None) -> bool:
    """Whether a user, None for one of another host, is told: of processes only of their own, unless it is root."""
    if record.entity != PROCESS or uid == ROOT:
        return True
    return record.labels.get("uid") == str(own_user() if uid is None else uid)


def _measured(record: Record) -> dict[str, Any]:
    return {
        "time": record.time,
        "entity": record.entity,
        "labels": dict(record.labels),
        "values": dict(record.values),
    }


def _where(sender_pid: int) -> dict[str, bool]:
    """Marks a process that the daemon cannot see; its number, and the paths it writes to, are those inside."""
    return {"container": True} if sender_pid <= 0 else {}
