"""The daemon's side of the RPC: a request's bytes in, the reply's text out. Always a reply, whatever came."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from npuscope import __version__
from npuscope.monitor.daemon.absence import explained
from npuscope.monitor.daemon.conflict import conflict
from npuscope.monitor.daemon.folders import Folders, Refused
from npuscope.monitor.daemon.identity import ROOT, own_user
from npuscope.monitor.daemon.ledger import Asked, Ledger, measure
from npuscope.monitor.daemon.order import Order, Outcome
from npuscope.monitor.daemon.registry import Registry
from npuscope.monitor.daemon.replies import failed, measured, outcome_reply, refusal
from npuscope.monitor.daemon.status import Account
from npuscope.monitor.daemon.upkeep import Registrar, bury, finish
from npuscope.monitor.metrics.record import PROCESS, Record
from npuscope.monitor.protocol import rpc
from npuscope.monitor.protocol.audience import audience
from npuscope.monitor.protocol.config import BadConfig, expected_end, loosely_read, read, require_plain, validate
from npuscope.monitor.protocol.fabric import Dialect

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
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`latest` gives the newest measurements; `note` takes lines for the log, without waiting."""
        self._registrar = registrar
        self._folders = folders
        self._latest = latest
        self._note = note
        self._account = account or Account(registrar, Ledger())

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
            bury(self._registrar, self._note)
            return self._account.status(own_user() if uid is None else uid, remote=uid is None)
        if function == "setKinetOnDemandRequest":
            return self._trace(request, uid)
        if function == "getMetrics":
            return {"records": [measured(record) for record in self._latest() if _may_see(record, uid)]}
        if function in ("dcgmProfPause", "dcgmProfResume"):
            return {"status": False}  # there is no GPU monitor to pause
        raise BadRequest(f"json.exception: unknown function {function!r}")

    def _trace(self, request: dict[str, Any], uid: int | None) -> dict[str, Any]:
        config, job, pids, limit = _read_trace(request)
        now = time.time()
        requester = own_user() if uid is None else uid
        dialect = audience(config)
        try:
            pairs = self._understood(config, dialect, requester, now)
        except (BadConfig, Refused) as error:
            return refusal(str(error))
        everybody = uid == ROOT  # who comes from another host may only be taken for the daemon's user
        ends = expected_end(pairs, now) if dialect is Dialect.KINETO else None
        order = Order(config, job, pids, limit, None if everybody else requester, dialect, ends)
        return self._placed(order, pairs, now)

    def _placed(self, order: Order, pairs: dict[str, str], now: float) -> dict[str, Any]:
        bury(self._registrar, self._note)
        finish(self._registrar, now)
        if order.dialect is Dialect.MSMONITOR:
            held = self._registrar(lambda registry: conflict(registry, order))
            if held:
                return outcome_reply(self._explained(Outcome((), held.reason), order), pairs, held.status)
        outcome = self._registrar(lambda registry: registry.trigger(order, now))
        reply = outcome_reply(self._explained(outcome, order), pairs)
        self._remember(outcome, reply["processes"], order, pairs, now)
        return reply

    def _explained(self, outcome: Outcome, order: Order) -> Outcome:
        registered: dict[int, set[Dialect]] = {}
        for sender in self._registrar(Registry.senders):
            registered.setdefault(sender.pid, set()).add(sender.dialect)
        return explained(outcome, order, registered)

    def _remember(
        self, outcome: Outcome, shown: list[dict[str, Any]], order: Order, pairs: dict[str, str], now: float
    ) -> None:
        for match, process in zip(outcome.matches, shown, strict=True):
            if match.trace_id is not None:
                asked = Asked(
                    match.trace_id, match.pid, match.sender_pid, match.user, order.job, process["rank"],
                    process["command"], order.dialect, process["traceFile"], measure(pairs), now, order.ends,
                )  # fmt: skip
                self._account.ledger.note(asked)

    def _understood(self, config: str, dialect: Dialect, uid: int, now: float) -> dict[str, str]:
        require_plain(config)
        if dialect is Dialect.MSMONITOR:
            pairs = loosely_read(config)
            folder = pairs.get("NPU_MONITOR_LOG_FILE") or pairs.get("ACTIVITIES_LOG_FILE")
            if folder:
                self._folders.check(folder, uid, is_folder=True)
            return pairs
        pairs = read(config)
        validate(pairs, now)
        self._folders.check(pairs.get("ACTIVITIES_LOG_FILE", ""), uid)
        return pairs


def _read_trace(request: dict[str, Any]) -> tuple[str, int, tuple[int, ...], int]:
    """The configuration, the job, the processes and the limit of a request. Raises BadRequest."""
    if "config" not in request or "pids" not in request:
        raise BadRequest("")
    config, pids = request["config"], request["pids"]
    job, limit = request.get("job_id", 0), request.get("process_limit", DEFAULT_LIMIT)
    _require_type("config", config, str)
    _require_type("pids", pids, list)
    for name, value in (("job_id", job), ("process_limit", limit), *(("pids", pid) for pid in pids)):
        _require_type(name, value, int)
    if len(pids) > LARGEST_LIST:
        raise BadRequest(f"json.exception: pids names more than {LARGEST_LIST} processes")
    return config, job, tuple(pids), limit


def _require_type(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadRequest(f"json.exception: {name} has the wrong type")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise BadRequest(f"json.exception: {name} is out of range")


def _may_see(record: Record, uid: int | None) -> bool:
    """Whether a user, None for one of another host, is told: of processes only of their own, unless it is root."""
    if record.entity != PROCESS or uid == ROOT:
        return True
    return record.labels.get("uid") == str(own_user() if uid is None else uid)
