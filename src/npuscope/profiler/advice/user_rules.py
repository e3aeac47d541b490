"""Rules that a user writes: a Python file whose functions named ``rule_...`` take a Case and yield Advice.

from npuscope.profiler.advice import Advice

def rule_too_many_copies(case):
    copies = int((case.timeline.slice("lane") == 4).sum())
    if copies > 1000:
        yield Advice("MY-C1", f"{copies} copies into the core", {"copies": copies}, "more than 1000")
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from npuscope.errors import UserError
from npuscope.profiler.advice.advice import Advice
from npuscope.profiler.advice.case import Case


def load_rules(path: Path) -> list[Callable[[Case], Iterable[Advice]]]:
    """The rules of a file, in its order. Raises UserError, one line, where it cannot be run or has none; a rule that
    fails, or gives something else than Advice, raises UserError when it is used."""
    try:
        names = runpy.run_path(str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except Exception as error:
        raise UserError(f"{path}: {_said(error)}") from error
    rules = [
        _guarded(path, name, value) for name, value in names.items() if name.startswith("rule_") and callable(value)
    ]
    if not rules:
        raise UserError(f"{path}: has no rules: a rule is a function whose name begins with rule_")
    return rules


def _guarded(path: Path, name: str, rule: Callable[[Case], Any]) -> Callable[[Case], Iterable[Advice]]:
    def run(case: Case) -> Iterator[Advice]:
        try:
            found = list(rule(case) or ())
        except Exception as error:
            raise UserError(f"{path}: {name}: {_said(error)}") from error
        for advice in found:
            if not isinstance(advice, Advice):
                raise UserError(f"{path}: {name} gives {type(advice).__name__}, a rule gives Advice")
        yield from found

    return run


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
