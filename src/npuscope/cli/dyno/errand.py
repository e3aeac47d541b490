"""What one command wants of a daemon, whether it asks one or thousands."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from npuscope.cli.dyno.voice import Voice
from npuscope.errors import UserError

FAILED = 1
Reply = Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What a reply amounts to: whether the errand is done, in a few words, and why not."""

    done: bool
    summary: str
    reason: str | None = None


class Errand(ABC):
    """A command's request and how its replies are read. The base shows the reply as the stock command does."""

    def prepare(self, voice: Voice) -> None:  # noqa: B027 - most commands have nothing to say
        """What is said and judged before there is a connection."""

    def check(self, voice: Voice) -> None:  # noqa: B027 - nor to judge
        """What is judged with the connection there, before the request is made. Raises UserError."""

    @abstractmethod
    def request(self, host: str | None) -> str:
        """The request to the daemon of a host of a list; None when there is no list. Raises UserError."""

    def show(self, answer: str, reply: Reply, voice: Voice) -> None:
        """Print one daemon's reply."""
        show(answer, voice)

    def verdict(self, reply: Reply) -> Verdict:
        """What a reply amounts to."""
        return Verdict(True, "answered")

    def refusal(self, words: str) -> str:
        """What a person is told when the daemon could not make sense of the request."""
        return f"the daemon refused: {words}"

    def unanswered(self, words: str) -> str:
        """What a person is told when the daemon does not answer this request."""
        return words

    def document(self, reply: Reply) -> dict[str, Any]:
        """What a program is told of a reply."""
        return dict(reply)


def show(answer: str, voice: Voice) -> None:
    """A reply, as the stock command shows it."""
    voice.tell(f"response length = {len(answer.encode())}")
    voice.tell(f"response = {answer}")


def read(answer: str, who: object) -> dict[str, Any]:
    """The object in an answer. Raises UserError for anything else."""
    try:
        reply = json.loads(answer)
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        raise UserError(f"the daemon at {who} gave no proper reply: not a JSON object", exit_code=FAILED)
    return reply


def failure(reply: Reply) -> str | None:
    """The daemon's own words when it could not make sense of a request."""
    status = reply.get("status")
    return status if isinstance(status, str) and status.startswith("failed") else None
