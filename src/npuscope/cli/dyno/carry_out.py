"""Carrying an errand out: at one daemon, or at many."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from npuscope.cli.dyno.errand import FAILED, Errand, Reply, Verdict, failure, read
from npuscope.cli.dyno.host_table import show_hosts
from npuscope.cli.dyno.server import Call
from npuscope.cli.dyno.voice import Voice
from npuscope.errors import UserError
from npuscope.monitor.client import NoReply
from npuscope.monitor.endpoint import Endpoint
from npuscope.monitor.fanout import Answer, Question, ask_all


@dataclass
class Result:
    """What came of an errand at one host."""

    endpoint: Endpoint
    verdict: Verdict
    reply: Reply | None = None
    seconds: float = 0.0
    files: list[dict[str, Any]] | None = None


class Waiter:
    """Whoever waits, after the requests, until what was asked for has happened. The base does not wait."""

    def wait(self, results: Sequence[Result], call: Call, voice: Voice) -> bool:
        """Whether all that was awaited came; each result is told its files."""
        return True


def carry_out(errand: Errand, call: Call, waiter: Waiter | None = None) -> int:
    """Ask, print what there is to print, wait where that is wanted; returns the exit code."""
    voice = Voice(call.as_json)
    try:
        return _at_hosts(errand, call, waiter, voice) if call.hosts else _at_one(errand, call, waiter, voice)
    except UserError as error:
        if call.as_json:
            _print({"error": str(error)})
        raise


def _at_one(errand: Errand, call: Call, waiter: Waiter | None, voice: Voice) -> int:
    server = call.server
    errand.prepare(voice)

    def request() -> str:
        errand.check(voice)
        return errand.request(None)

    try:
        answer = server.ask(request)
    except NoReply as error:
        raise UserError(errand.unanswered(str(error)), exit_code=error.exit_code) from None
    reply = read(answer, server.endpoint)
    result = Result(server.endpoint, _judged(errand, reply), reply)
    if failure(reply) is None:
        errand.show(answer, reply, voice)
    if result.verdict.reason:
        voice.note(result.verdict.reason)
    came = waiter.wait([result], call, voice) if waiter else True
    if call.as_json:
        _print({**errand.document(reply), **_files(result)})
    return 0 if result.verdict.done and came else FAILED


def _judged(errand: Errand, reply: Reply) -> Verdict:
    if words := failure(reply):
        return Verdict(False, "refused", errand.refusal(words))
    return errand.verdict(reply)


def _at_hosts(errand: Errand, call: Call, waiter: Waiter | None, voice: Voice) -> int:
    errand.prepare(voice)
    errand.check(voice)
    questions = [Question(endpoint, errand.request(endpoint.host)) for endpoint in call.hosts]
    answers = ask_all(questions, call.limits, call.server.certificates)
    results = [_result(errand, answer) for answer in answers]
    failed = sum(not result.verdict.done for result in results)
    if waiter and failed:
        voice.note(f"{failed} of {len(results)} hosts failed or trace nothing; waiting for the others")
    came = waiter.wait(results, call, voice) if waiter else True
    if call.as_json:
        _print([_document(errand, result) for result in results])
    else:
        show_hosts([(str(one.endpoint), one.verdict, one.seconds) for one in results])
    return 0 if came and all(result.verdict.done for result in results) else FAILED


def _result(errand: Errand, answer: Answer) -> Result:
    if answer.reply is None:
        return Result(answer.endpoint, Verdict(False, "failed", answer.error), None, answer.seconds)
    try:
        reply = read(answer.reply, answer.endpoint)
    except UserError as error:
        return Result(answer.endpoint, Verdict(False, "failed", str(error)), None, answer.seconds)
    return Result(answer.endpoint, _judged(errand, reply), reply, answer.seconds)


def _document(errand: Errand, result: Result) -> dict[str, Any]:
    return {
        "host": result.endpoint.host,
        "port": result.endpoint.port,
        "done": result.verdict.done,
        "summary": result.verdict.summary,
        "error": None if result.verdict.done else result.verdict.reason,
        "seconds": round(result.seconds, 3),
        "reply": None if result.reply is None else errand.document(result.reply),
        **_files(result),
    }


def _files(result: Result) -> dict[str, Any]:
    return {} if result.files is None else {"files": result.files}


def _print(document: object) -> None:
    # What a daemon quotes back may hold half a character; JSON spells it out.
    print(json.dumps(document, separators=(",", ":")))
