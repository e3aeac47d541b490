"""Ranks from what daemons tell Prometheus: sums of activities by kind, device, process and rank.

Sums say less than files. Between two scrapes a rank has spent so much time in kernels and so much in collectives for
each of its reports; that is taken for a step. Its length is not told, so the longest sum of both among the ranks stands
for it: ranks are then told apart by their time in collectives, as they are with files.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from npuscope.errors import UserError
from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.records import Group
from npuscope.monitor.analysis.reduction import Occurrences, Operators, Summary

SECONDS, REPORTS = "npuscope_activity_seconds_total", "npuscope_activity_reports_total"
COMPUTE, TALK = ("Kernel",), ("Communication", "Hccl")
ALL = "all collectives"
SUMS = "between scrapes: sums of daemons, not single collectives"
NANOSECONDS = 1e9
TIMEOUT_SECONDS = 10
LEAST_SCRAPES = 3

Series = tuple[int, str, int, int]
"""Rank, host, process, device; -1 where not known."""


@dataclass(frozen=True)
class Sums:
    """Of one rank at one scrape: seconds and reports, by kind."""

    seconds: Mapping[str, float]
    reports: Mapping[str, float]


Scrape = Mapping[Series, Sums]


def is_url(place: str) -> bool:
    """Whether a place is to be asked and not to be opened."""
    return place.startswith(("http://", "https://"))


def scraped(urls: Sequence[str], times: int, interval: float) -> list[Summary]:
    """Ask daemons several times. Raises UserError when one does not answer, or they tell of no rank."""
    scrapes = []
    due = time.monotonic()
    for number in range(times):
        time.sleep(max(0.0, due + number * interval - time.monotonic()))
        together: dict[Series, Sums] = {}
        for url in urls:
            together.update(read_scrape(_asked(url), url))
        scrapes.append(together)
    return summaries_of(scrapes)


def read_expositions(paths: Sequence[Path]) -> list[Summary]:
    """Earlier answers: each file is a scrape of one daemon, in the order of their names; files of a host are told by
    its name inside, so that the n-th of each belong together. Raises UserError where that makes no scrapes."""
    by_hosts: dict[frozenset[str], list[Scrape]] = {}
    for path in sorted(paths, key=lambda one: (one.stat().st_mtime_ns, one.name)):
        try:
            found = read_scrape(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot read {path}: {error}") from None
        by_hosts.setdefault(frozenset(key[1] for key in found), []).append(found)
    scrapes = []
    for parts in zip(*by_hosts.values(), strict=False):
        together: dict[Series, Sums] = {}
        for part in parts:
            together.update(part)
        scrapes.append(together)
    return summaries_of(scrapes)


def _asked(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            return str(answer.read().decode("utf-8", "replace"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"no metrics from {url}: {reason}") from None


def read_scrape(text: str, what: str) -> Scrape:
    """One answer. Raises UserError for text that is none."""
    from prometheus_client.parser import text_string_to_metric_families

    seconds: dict[Series, dict[str, float]] = {}
    reports: dict[Series, dict[str, float]] = {}
    wanted = {SECONDS: seconds, REPORTS: reports}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name in wanted and sample.labels.get("rank", ""):
                    key = _series(sample.labels)
                    kinds = wanted[sample.name].setdefault(key, {})
                    kind = sample.labels.get("kind", "")
                    kinds[kind] = kinds.get(kind, 0.0) + sample.value
    except (ValueError, KeyError, IndexError) as error:
        raise UserError(f"{what} holds no metrics: {error}") from None
    return {key: Sums(kinds, reports.get(key, {})) for key, kinds in seconds.items()}


def _series(labels: Mapping[str, str]) -> Series:
    def whole(name: str) -> int:
        return int(labels[name]) if labels.get(name, "").isdecimal() else -1

    return whole("rank"), labels.get("host_name", ""), whole("pid"), whole("device")


def summaries_of(scrapes: Sequence[Scrape]) -> list[Summary]:
    """What happened between scrapes, by rank. Raises UserError when there are too few, or they tell of no rank."""
    if len(scrapes) < LEAST_SCRAPES:
        raise UserError(f"{len(scrapes)} scrapes of all hosts; at least {LEAST_SCRAPES} are needed")
    newest: dict[int, Series] = {}
    for key in scrapes[-1]:
        if key[0] >= 0 and _spent(scrapes[-1][key], TALK):
            newest[key[0]] = key
    if not newest:
        raise UserError(
            f"the daemons tell of no rank's collectives: {SECONDS} has none with a rank and the kind {TALK[0]}"
        )
    talk, compute = (
        np.stack([_each(scrapes, newest[rank], kinds) for rank in sorted(newest)]) for kinds in (TALK, COMPUTE)
    )
    both = talk + np.nan_to_num(compute)
    length = np.nanmax(np.where(np.isfinite(both), both, -np.inf), 0)
    everyone = tuple(sorted(newest))
    return [_summary(newest[rank], everyone, talk[row], compute[row], length) for row, rank in enumerate(everyone)]


def _spent(sums: Sums, kinds: Iterable[str]) -> str | None:
    """The kind to take: collectives are told of by one of two."""
    return next((kind for kind in kinds if kind in sums.seconds), None)


def _each(scrapes: Sequence[Scrape], key: Series, kinds: Sequence[str]) -> Column:
    """Nanoseconds for each report between scrapes; NaN where there was none."""
    kind = _spent(scrapes[-1][key], kinds)
    if kind is None:
        return np.full(len(scrapes) - 1, np.nan)
    found = [scrape.get(key) for scrape in scrapes]
    seconds = np.diff([one.seconds.get(kind, np.nan) if one else np.nan for one in found])
    reports = np.diff([one.reports.get(kind, np.nan) if one else np.nan for one in found])
    new = (reports > 0) & (seconds >= 0)  # a daemon that was started again begins at 0
    return np.where(new, seconds / np.where(new, reports, 1), np.nan) * NANOSECONDS


def _summary(key: Series, everyone: tuple[int, ...], talk: Column, compute: Column, length: Column) -> Summary:
    known = np.isfinite(talk)
    label = np.flatnonzero(known)
    count = len(label)
    spent = talk[known]
    kernels = np.nan_to_num(compute[known])
    nothing = np.zeros(count, np.float32)
    one = Occurrences(
        ALL, Group("", everyone), np.arange(count, dtype=np.int32), np.zeros(count, np.uint8), (ALL,),
        np.zeros(count, np.int64), nothing, spent.astype(np.float32), nothing,
    )  # fmt: skip
    rank, host, pid, device = key
    # Kernels and collectives may have run at the same time; what is said of a step must not exceed its length.
    return Summary(
        rank, pid, host, device, f"metrics of {host}", label, (label + 1).astype(np.int64), length[known],
        np.minimum(kernels, np.maximum(length[known] - spent, 0)), spent, spent, (one,), Operators(), SUMS,
        bool(np.isfinite(compute).any()),
    )  # fmt: skip
