"""Robust statistics over steps.

A rank is compared with its peers step by step: the *excess* of a rank in a step is its value less the median of the
others' values in that step. Two tests look for a rank whose excess is no accident.

*Steady*: the sign test. A rank that is at most `margin` slow has an excess above `margin` in at most every second step,
whatever the noise looks like. So p = P(X >= k), X binomial with n steps and probability 1/2, where k of the n steps are
above the margin. Steps in a row may be alike: with r the correlation of neighbours, n steps count as
n (1 - r) / (1 + r). It is done for all steps, and for parts of them (`PARTS`), since a rank may be slow for a time.

*Bursts*: steps whose excess is beyond 5 robust standard deviations of the whole class and beyond 5 % of the value. If
such steps met all ranks alike, a rank would have as many as its peers: p = P(X >= k), X binomial with n steps and the
peers' share of such steps.

The smallest p counts, corrected for how many were tried (Bonferroni): confidence = 1 - `TESTS` N p for N ranks, and 0
where that is negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from npuscope.monitor.activity.batch import Column

MAD_TO_DEVIATION = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation: 1 / 0.6745."""
BURST_DEVIATIONS, BURST_SHARE, LEAST_BURSTS = 5.0, 0.05, 3
LEVEL_CHANGE, CHANGE_SCORE = 0.25, 6.0
"""A change in time: the lower level is below this share of the higher, and the score of the split above this."""
PARTS = ((0, 1), (0, 1 / 2), (1 / 2, 1), (0, 1 / 4), (1 / 4, 1 / 2), (1 / 2, 3 / 4), (3 / 4, 1), (0, 1 / 8), (7 / 8, 1))
"""All steps, halves, quarters, and the first and last eighth."""
TESTS = len(PARTS) + 1
INTERVAL = 1.96
"""Deviations of a 95 % interval."""


def peers_median(values: Column) -> Column:
    """For each of (ranks, steps) the median of the other ranks in the step; NaN is not known, and has no peers."""
    count = np.isfinite(values).sum(0)
    order = np.argsort(values, 0, kind="stable")  # NaN comes last
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(len(values))[:, None], order.shape), 0)
    ranked = np.take_along_axis(values, order, 0)
    others = count - 1

    def other(at: Column) -> Column:
        at = np.maximum(at, 0)[None, :]
        return np.take_along_axis(ranked, np.minimum(np.where(at < place, at, at + 1), len(values) - 1), 0)

    found = (other((others - 1) // 2) + other(others // 2)) / 2
    return np.where(np.isfinite(values) & (others > 0), found, np.nan)


def deviation(values: Column) -> float:
    """The robust standard deviation of all values around their median; 0 where there are none."""
    known = values[np.isfinite(values)]
    return float(MAD_TO_DEVIATION * np.median(np.abs(known - np.median(known)))) if len(known) else 0.0


def binomial_tail(successes: int, trials: int, rate: float) -> float:
    """P(X >= successes) of a binomial distribution."""
    if successes <= 0:
        return 1.0
    if successes > trials or rate <= 0:
        return 0.0
    if rate >= 1:
        return 1.0
    hits = np.arange(successes, trials + 1)
    logs = (
        math.lgamma(trials + 1) - _log_factorials(trials)[hits] - _log_factorials(trials)[trials - hits]
        + hits * math.log(rate) + (trials - hits) * math.log1p(-rate)
    )  # fmt: skip
    return float(min(np.exp(logs - (top := logs.max())).sum() * math.exp(top), 1.0))


def _log_factorials(most: int) -> Column:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])


def independent(flags: Column) -> Column:
    """How many independent steps each row's steps (NaN: none) are worth, from the correlation of neighbours."""
    known = np.isfinite(flags)
    steps = known.sum(1)
    mean = np.nansum(flags, 1) / np.maximum(steps, 1)
    around = np.where(known, flags - mean[:, None], 0.0)
    whole = (around**2).sum(1)
    likeness = np.where(whole > 0, (around[:, 1:] * around[:, :-1]).sum(1) / np.maximum(whole, 1e-12), 0.0)
    likeness = np.clip(likeness, 0, 0.99)
    return np.floor(steps * (1 - likeness) / (1 + likeness)).astype(np.int64)


@dataclass(frozen=True)
class Trials:
    """What both tests say of the ranks of one class, an entry for each rank: the median excess, how many steps are
    above the margin out of how many, how many are bursts, and the two probabilities, not corrected."""

    excess: Column
    """(ranks, steps)."""
    median: Column
    above: Column
    steps: Column
    bursts: Column
    beyond: Column
    """(ranks, steps): which steps are bursts."""
    steady: Column
    burst: Column
    margin: float


def tried(values: Column, margin: float, costs: float) -> Trials:
    """Test the ranks of a class: (ranks, steps), at least two ranks. A rank whose bursts cost less than `costs` a step
    on average has none."""
    excess = values - peers_median(values)
    known = np.isfinite(excess)
    steps = known.sum(1)
    flags = np.where(known, excess > margin, np.nan)
    above = np.nansum(flags, 1).astype(np.int64)
    typical = float(np.nanmedian(values)) if np.any(known) else 0.0
    beyond = known & (excess > max(BURST_DEVIATIONS * deviation(excess), BURST_SHARE * typical))
    bursts = beyond.sum(1)
    cost = np.where(beyond, excess, 0).sum(1) / np.maximum(steps, 1)
    with np.errstate(all="ignore"):
        median = np.array([np.median(row[row == row]) if np.any(row == row) else np.nan for row in excess])
    count = values.shape[1]
    steady = np.min([_signs(flags[:, int(first * count) : int(last * count)]) for first, last in PARTS], axis=0)
    burst = np.ones(len(values))
    for row in np.flatnonzero((bursts >= LEAST_BURSTS) & (cost >= costs)):
        others, tries = bursts.sum() - bursts[row], steps.sum() - steps[row]
        burst[row] = binomial_tail(int(bursts[row]), int(steps[row]), (others + 1) / (tries + 2))
    return Trials(excess, median, above, steps, bursts, beyond, steady, burst, margin)


def _signs(flags: Column) -> Column:
    """The sign test of each row: 1 where the step is above the margin, 0 where not, NaN where it lacks."""
    steps, above = np.isfinite(flags).sum(1), np.nansum(flags, 1)
    worth = independent(flags)
    found = np.ones(len(flags))
    for row in np.flatnonzero(above * 2 > steps).tolist():
        found[row] = binomial_tail(int(above[row] / steps[row] * worth[row]), int(worth[row]), 0.5)
    return found


def median_interval(values: Column) -> tuple[float, float]:
    """A 95 % interval of the median, from the order of the values: no distribution is supposed."""
    ranked = np.sort(values[np.isfinite(values)])
    half = INTERVAL * math.sqrt(len(ranked)) / 2
    middle = (len(ranked) - 1) / 2
    low, high = max(math.floor(middle - half), 0), min(math.ceil(middle + half), len(ranked) - 1)
    return float(ranked[low]), float(ranked[high])


@dataclass(frozen=True)
class Change:
    """The level of a rank's excess changed between two steps."""

    at: int
    """Index of the first step after the change."""
    before: float
    after: float


def change(excess: Column) -> Change | None:
    """The one split in time that parts slow steps from others best, if it parts them well."""
    known = np.flatnonzero(np.isfinite(excess))
    series = excess[known]
    count = len(series)
    if count < 2 * LEAST_BURSTS:
        return None
    left = np.arange(1, count)
    sums = np.cumsum(series)
    gap = np.abs(sums[:-1] / left - (sums[-1] - sums[:-1]) / (count - left))
    score = gap * np.sqrt(left * (count - left) / count)
    cut = int(left[np.argmax(score)])
    before, after = float(np.median(series[:cut])), float(np.median(series[cut:]))
    noise = max(deviation(series[:cut] - before), deviation(series[cut:] - after), 1e-9)
    high, low = max(before, after), min(before, after)
    if min(cut, count - cut) < LEAST_BURSTS or high <= 0 or low > LEVEL_CHANGE * high:
        return None
    if abs(before - after) * math.sqrt(cut * (count - cut) / count) < CHANGE_SCORE * noise:
        return None
    return Change(int(known[cut]), before, after)
