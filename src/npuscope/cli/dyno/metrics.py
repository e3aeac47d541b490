"""`dyno metrics`: the newest measurements of a daemon."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from npuscope.cli.dyno.carry_out import carry_out
from npuscope.cli.dyno.errand import Errand, Reply, Verdict
from npuscope.cli.dyno.options import call_options
from npuscope.cli.dyno.server import Call
from npuscope.cli.dyno.usage import Command
from npuscope.cli.dyno.voice import Voice
from npuscope.monitor.protocol import rpc

NONE = "this daemon has no metrics"


class Metrics(Errand):
    """The newest records."""

    def request(self, host: str | None) -> str:
        """The question."""
        return rpc.simple_request("getMetrics")

    def show(self, answer: str, reply: Reply, voice: Voice) -> None:
        """A paragraph for each record."""
        for record in _records(reply) or []:
            for line in _lines(record):
                voice.tell(line)

    def verdict(self, reply: Reply) -> Verdict:
        """How many there are."""
        found = _records(reply)
        if found is None:
            return Verdict(False, "failed", NONE)
        return Verdict(True, f"{len(found)} records", None if found else "nothing has been measured yet")

    def refusal(self, words: str) -> str:
        """An older daemon does not know the question."""
        return f"{NONE}: {words}"

    def unanswered(self, words: str) -> str:
        """A stock daemon closes the connection at a question that it does not know."""
        return f"{NONE}: {words}"


def _records(reply: Reply) -> list[Mapping[str, Any]] | None:
    found = reply.get("records")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else None


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    labels, measured = (record.get(key) for key in ("labels", "values"))
    names = [f"{name}={value}" for name, value in labels.items()] if isinstance(labels, dict) else []
    yield " ".join([str(record.get("entity", "?")), *names, _clock(record.get("time"))])
    for name, value in sorted(measured.items()) if isinstance(measured, dict) else ():
        yield f"  {name:32} {_number(value)}"


def _clock(moment: object) -> str:
    if not isinstance(moment, int | float):
        return "(no time)"
    try:
        return time.strftime("(%Y-%m-%d %H:%M:%S)", time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return f"({moment})"


def _number(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


@click.command(cls=Command, short_help="Show the newest measurements.")
@call_options
def metrics(call: Call) -> int:
    """Show the newest measurements of the host, of your training processes, and of the daemon itself."""
    return carry_out(Metrics(), call)
