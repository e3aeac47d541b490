"""Limits on what may change: ``cycles>+5%``.

``METRIC OP VALUE``, with OP one of ``> >= < <=``. METRIC is a name of :func:`.difference.metrics` (``cycles``,
``time_us``, ``busy:MTE2``, ``critical:VECTOR``, ``aiv_vec_ratio``), ``duration`` for ``time_us``, or the cycles of a
line: ``line:add.py:33``, ``line:*`` for every line. VALUE with a sign is a change, ``+1000`` or ``-3%``; one with ``%``
is a change in any case; a plain number is held against the new figure itself. The limit is broken where the
relation holds.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath

from npuscope.errors import UserError
from npuscope.profiler.compare.difference import Change, Difference, LaunchChange

FORM = re.compile(
    r"\s*(?P<metric>[^<>=]+?)\s*(?P<relation>[<>]=?)\s*(?P<value>[+-]?(?:\d+\.?\d*|\.\d+))\s*(?P<unit>%?)\s*"
)
RELATIONS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
}  # fmt: skip
ALIASES = {"duration": "time_us", "time": "time_us", "Task Duration(us)": "time_us"}
LINE = "line:"
EPSILON = 1e-9
"""Keeps what rounding alone makes differ from breaking a limit on a change."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One expression. `kind` is ``share`` (of the old figure, `value` 0.05 for 5 %), ``delta`` or ``new``."""

    text: str
    metric: str
    relation: str
    value: float
    kind: str

    def broken(self, change: Change) -> bool | None:
        """Whether a change breaks the limit; None where the figure is not known on both sides."""
        figure = {"share": change.relative, "delta": change.delta, "new": change.new}[self.kind]
        if figure is None:
            return None
        slack = EPSILON if self.relation in (">", "<=") else -EPSILON
        return RELATIONS[self.relation](figure, self.value + (slack if self.kind == "share" else 0.0))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a limit says of one launch. `worst` is the change that breaks it, or the one that was looked at."""

    limit: Limit
    kernel: str
    number: int
    worst: Change
    broken: bool


def read_limit(text: str) -> Limit:
    """The limit that an expression stands for. Raises UserError, one line, where it is none."""
    found = FORM.fullmatch(text)
    if found is None:
        raise UserError(f"--fail-if {text!r}: not of the form 'cycles>+5%' (METRIC, one of > >= < <=, VALUE)")
    value, kind = float(found["value"]), "new"
    if found["unit"]:
        value, kind = value / 100, "share"
    elif found["value"][0] in "+-":
        kind = "delta"
    metric = found["metric"]
    return Limit(text.strip(), ALIASES.get(metric, metric), found["relation"], value, kind)


def judge(difference: Difference, limits: Sequence[Limit]) -> list[Verdict]:
    """What the limits say of every launch that both runs have. Raises UserError for a metric that no launch has, and
    where there is no launch to judge."""
    if limits and not difference.launches:
        raise UserError("--fail-if: the two runs have no launch in common")
    verdicts = []
    for limit in limits:
        found = [verdict for launch in difference.launches for verdict in _judge(limit, launch)]
        if not found:
            raise UserError(_unknown(limit, difference))
        verdicts.extend(found)
    return verdicts


def _judge(limit: Limit, launch: LaunchChange) -> Iterator[Verdict]:
    known = [(change, broken) for change in _changes(limit, launch) if (broken := limit.broken(change)) is not None]
    if not known:
        return
    bad = [change for change, broken in known if broken]
    worst = max(bad or [change for change, _ in known], key=lambda change: abs(change.delta or 0))
    yield Verdict(limit, launch.kernel, launch.number, worst, bool(bad))


def _changes(limit: Limit, launch: LaunchChange) -> list[Change]:
    if not limit.metric.startswith(LINE):
        change = launch.metrics.get(limit.metric)
        return [change] if change is not None else []
    wanted = limit.metric.removeprefix(LINE)
    file, _, number = wanted.rpartition(":")
    return [
        Change(f"{LINE}{line.place}", line.cycles.old, line.cycles.new)
        for line in launch.lines
        if wanted == "*"
        or (
            (line.file == file or PurePath(line.file).name == file)
            and number in (str(line.new_line), str(line.old_line))
        )
    ]


def _unknown(limit: Limit, difference: Difference) -> str:
    if limit.metric.startswith(LINE):
        return f"--fail-if {limit.text!r}: no launch has cycles at {limit.metric.removeprefix(LINE)}"
    names = {name for launch in difference.launches for name in launch.metrics}
    if limit.metric in names:
        return f"--fail-if {limit.text!r}: {limit.metric} is not known in both runs"
    near = get_close_matches(limit.metric, sorted(names), n=3, cutoff=0.4) or ["cycles", "time_us"]
    return f"--fail-if {limit.text!r}: no metric {limit.metric!r}; there is {', '.join(near)}"
