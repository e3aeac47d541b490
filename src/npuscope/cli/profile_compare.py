"""`npuscope profile --baseline`: what changed since an earlier run, and whether that is too much."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from npuscope.errors import EXIT_CLEAN, EXIT_FINDINGS, UserError
from npuscope.profiler.compare.difference import compare
from npuscope.profiler.compare.limits import judge, read_limit
from npuscope.profiler.compare.saved import read_launches
from npuscope.profiler.profile import Profile
from npuscope.report.profile.comparison import comparison_text
from npuscope.report.profile.document import document


class Baseline:
    """An earlier run to compare with; false where there is none. Raises UserError for limits that are none."""

    def __init__(self, path: Path | None, limits: Sequence[str]) -> None:
        if limits and path is None:
            raise UserError("--fail-if needs --baseline OLD, against which it holds")
        self.limits = [read_limit(text) for text in limits]
        self.old = read_launches(path) if path is not None else None

    def __bool__(self) -> bool:
        return self.old is not None

    def compares(self, target: str) -> bool:
        """Whether the target is a run that was saved, and not something to run."""
        return bool(self) and (Path(target).is_dir() or target.endswith(".json"))

    def compare_saved(self, path: Path) -> int:
        """Compare with another saved run; returns the exit code."""
        return self._compare(read_launches(path))

    def compare_new(self, profiles: Sequence[Profile]) -> int:
        """Compare with a run that just was; returns the exit code."""
        import orjson

        plain = orjson.loads(orjson.dumps(document(profiles), option=orjson.OPT_SERIALIZE_NUMPY))
        return self._compare(plain["launches"])

    def _compare(self, new: Sequence[Any]) -> int:
        difference = compare(self.old or [], new)
        verdicts = judge(difference, self.limits)
        click.echo(comparison_text(difference, verdicts), nl=False)
        return EXIT_FINDINGS if any(verdict.broken for verdict in verdicts) else EXIT_CLEAN
