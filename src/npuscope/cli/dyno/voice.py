"""Lines for people. Where a program reads the standard output, they go to the standard error or nowhere."""

from __future__ import annotations

from dataclasses import dataclass

from npuscope.cli.output import complain


@dataclass(frozen=True)
class Voice:
    """Says things in the way that fits who listens."""

    as_json: bool = False

    def tell(self, line: str = "") -> None:
        """Part of the result; a program has it in the JSON document."""
        if not self.as_json:
            print(line, flush=True)

    def warn(self, line: str) -> None:
        """What a person has to know, in the place where the stock command says it."""
        if self.as_json:
            complain(line)
        else:
            print(line, flush=True)

    def note(self, line: str) -> None:
        """What the stock command does not say."""
        complain(f"dyno: {line}")
