"""The findings as sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npuscope.monitor.analysis.cluster import Cluster, listed
from npuscope.monitor.analysis.operators import Slower
from npuscope.monitor.analysis.slow_links import SlowLink
from npuscope.monitor.analysis.slow_ranks import AT_START, BOTH, COMPUTE, HOST, SINCE, SPORADIC, SlowRank

SURE = 0.9999
MORE_CALLS = 1.01


def duration(nanoseconds: float) -> str:
    """Time with a unit that suits: `1.25 ms`."""
    size = abs(nanoseconds)
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if size >= scale:
            return f"{nanoseconds / scale:.3g} {unit}" if size < 100 * scale else f"{nanoseconds / scale:,.0f} {unit}"
    return f"{nanoseconds:.0f} ns"


def share(value: float) -> str:
    """A share in percent, one digit where it is small."""
    return f"{100 * value:.1f} %" if abs(value) < 0.1 else f"{100 * value:.0f} %"


def sureness(confidence: float) -> str:
    """A confidence, which is never called certainty."""
    if confidence > SURE:
        return "above 99.99 %"
    return f"{100 * confidence:.2f} %" if confidence > 0.9 else f"{100 * confidence:.0f} %"


def headline(cluster: Cluster) -> str:
    """What was looked at."""
    matrices = cluster.matrices
    step = float(np.nanmedian(matrices.duration))
    hosts = len({one.host for one in matrices.ranks})
    return (
        f"{_many(len(matrices.ranks), 'rank')} on {_many(hosts, 'host')}, {_many(len(matrices.label), 'step')}, "
        f"{_many(len(cluster.waits.communicators), 'communicator')}; a step takes {duration(step)}"
    )


def verdict(cluster: Cluster) -> str:
    """Who is slow, in one line."""
    if not cluster.slow and not cluster.links:
        return nobody(cluster)
    parts = []
    nodes = {one.host: one.ranks for one in cluster.nodes}
    if nodes:
        parts.append(
            "; ".join(f"host {host} is slow: all its ranks ({listed(ranks)})" for host, ranks in nodes.items())
        )
    covered = {rank for ranks in nodes.values() for rank in ranks}
    single = [one.rank for one in cluster.slow if one.rank not in covered]
    if single:
        parts.append(f"rank {listed(single)} {'is' if len(single) == 1 else 'are'} slow")
    parts += [f"the link of {one.name} is slow" for one in cluster.links]
    return "; ".join(parts)


def nobody(cluster: Cluster) -> str:
    """That no rank is slow, and how near one comes to it."""
    if cluster.largest is None:
        return "no rank can be compared with peers"
    rank, excess, confidence = cluster.largest
    chance = f"confidence {sureness(confidence)}" if confidence > 0 else "no more than chance"
    return (
        f"no rank is slow beyond noise: the largest deviation is rank {rank}, whose own time is "
        f"{share(excess)} above that of its peers ({chance}; {share(cluster.limits.own)} would count)"
    )


def when(one: SlowRank) -> str:
    """The pattern in time."""
    if one.pattern == AT_START:
        return f"only at the start, before step {one.first_step}"
    if one.pattern == SINCE:
        return f"since step {one.first_step}"
    if one.pattern == SPORADIC:
        return f"now and then, in {share(one.slow_steps / max(one.steps, 1))} of the steps"
    return "steadily"


def evidence(one: SlowRank, *, host: str) -> Iterator[str]:
    """Why a rank is called slow, a sentence each; the first names it."""
    place = f" on {host}" if host else ""
    yield (
        f"rank {one.rank}{place} is slow {when(one)}: its own time is {share(one.slower)} ({duration(one.excess)}, "
        f"95 % interval {duration(one.low)} to {duration(one.high)}) above that of its {_many(one.peers, 'peer')}; "
        f"confidence {sureness(one.confidence)}"
    )
    yield f"costs {share(one.cost)} of each step on average; beyond the limit in {one.slow_steps} of {one.steps} steps"
    yield (
        f"waits {duration(one.waiting)} a step in collectives, its peers {duration(one.peers_waiting)}; "
        f"waits least of them in {share(one.last)} of the steps"
    )
    if one.compute is not None and one.idle is not None:
        assert one.peers_compute is not None and one.peers_idle is not None
        yield (
            f"computes {duration(one.compute)} a step, its peers {duration(one.peers_compute)}; "
            f"idle {duration(one.idle)}, its peers {duration(one.peers_idle)}"
        )
    yield cause(one)


def cause(one: SlowRank) -> str:
    """Where the time goes, and what to look at."""
    if one.cause == HOST:
        where = "most of it passes outside its operators: look at its host (data loading, Python, a busy processor)"
        return "; ".join([where, *(f"it {work}" for work in _more_work(one.operators))])
    if one.cause not in (COMPUTE, BOTH):
        return "no operators were recorded: collect the kind Kernel too (API without a card), to see what it does"
    also = "; its host is slower, too" if one.cause == BOTH else ""
    return _operators(one.operators, one.alike) + also


def _operators(slower: tuple[Slower, ...], alike: float | None) -> str:
    if not slower:
        return "no operator by itself takes much longer"
    for work in _more_work(slower):
        return work
    if alike is not None:
        return f"all its operators take {alike:.2f} times as long: look at the card (clock, heat, power)"
    words = (
        f"{one.name} {duration(one.each)} against {duration(one.peers_each)} ({one.ratio:.2f} times), "
        f"{duration(one.excess)} a step"
        for one in slower[:3]
    )
    return "slower operators: " + "; ".join(words)


def _more_work(slower: tuple[Slower, ...]) -> Iterator[str]:
    """That the operator which costs most is called more often."""
    for one in slower[:1]:
        if one.calls > MORE_CALLS * one.peers_calls and one.calls / max(one.peers_calls, 1e-9) > one.ratio:
            yield f"does more work: {one.calls:.3g} calls of {one.name} a step, its peers {one.peers_calls:.3g}"


def link(one: SlowLink) -> str:
    """Why a link is called slow."""
    hosts = ", ".join(one.hosts[:4]) + (f" and {len(one.hosts) - 4} more" if len(one.hosts) > 4 else "")
    return (
        f"the link of {one.name} (ranks {listed(one.ranks)}; {hosts}) is slow: its transfers take "
        f"{duration(one.transfer)} a step, waiting left out, those of {_many(one.peers, 'communicator')} alike "
        f"{duration(one.peers_transfer)} ({share(one.slower)} more), in {one.slow_steps} of {one.steps} steps; "
        f"confidence {sureness(one.confidence)}; costs {share(one.cost)} of each step"
    )


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" + ("" if count == 1 else "s")
