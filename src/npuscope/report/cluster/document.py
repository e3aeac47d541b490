"""The analysis as plain values: the JSON document, and what the page shows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import orjson

from npuscope import __version__
from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.cluster import Cluster
from npuscope.monitor.analysis.communicators import Communicator, last_share
from npuscope.report.cluster.words import evidence, headline, link, verdict

VERSION = 1


def document(cluster: Cluster) -> dict[str, Any]:
    """Everything but the figures of single steps. Times are nanoseconds a step, medians over the steps."""
    return {
        "version": VERSION,
        "npuscope": __version__,
        "verdict": verdict(cluster),
        "about": headline(cluster),
        "slow_ranks": slow_ranks(cluster),
        "slow_nodes": [asdict(one) for one in cluster.nodes],
        "slow_links": [{**asdict(one), "slower": one.slower, "text": link(one)} for one in cluster.links],
        "links_compared": cluster.compared_links,
        "largest_deviation": _largest(cluster),
        "limits": asdict(cluster.limits),
        "partial": cluster.partial,
        "left_out": list(cluster.left_out),
        "notes": list(cluster.notes),
        "trace": cluster.commands,
        "steps": cluster.matrices.label,
        "ranks": ranks(cluster),
        "communicators": communicators(cluster),
    }


def slow_ranks(cluster: Cluster) -> list[dict[str, Any]]:
    """The slow ranks with their evidence, in figures and in words."""
    found = []
    for one in cluster.slow:
        host = cluster.matrices.ranks[one.row].host
        plain = {name: value for name, value in asdict(one).items() if name != "row"}
        plain["operators"] = [{**asdict(part), "ratio": part.ratio} for part in one.operators]
        found.append({**plain, "host": host, "slower": one.slower, "text": list(evidence(one, host=host))})
    return found


def ranks(cluster: Cluster) -> list[dict[str, Any]]:
    """A line for each rank."""
    matrices, waiting = cluster.matrices, cluster.waits.waiting
    slow = {one.rank for one in cluster.slow}
    columns = {
        "step": matrices.duration, "compute": matrices.compute, "communication": matrices.communication,
        "waiting": waiting, "idle": matrices.idle, "own": matrices.own,
    }  # fmt: skip
    medians = {name: median(values) for name, values in columns.items()}
    least = np.full(len(matrices.ranks), np.nan)
    for part in cluster.peers:
        least[part.rows] = last_share(waiting[part.rows]) if len(part.rows) > 1 else np.nan
    return [
        {
            "rank": one.rank, "host": one.host, "device": one.device, "pid": one.pid, "file": one.path,
            "slow": one.rank in slow, "steps": len(one.label),
            **{name: _known(values[row]) for name, values in medians.items()},
            "waits_least": _known(least[row]),
        }
        for row, one in enumerate(matrices.ranks)
    ]  # fmt: skip


def communicators(cluster: Cluster) -> list[dict[str, Any]]:
    """A line for each communicator; `waiting` is a rank's mean, `last` the rank that waits least most often."""
    return [_communicator(cluster, one) for one in cluster.waits.communicators]


def _communicator(cluster: Cluster, one: Communicator) -> dict[str, Any]:
    used = one.last[one.last >= 0]
    rows, counts = np.unique(used, return_counts=True)
    often = int(np.argmax(counts)) if len(rows) else -1
    everyone = [cluster.matrices.ranks[row].rank for row in one.rows.tolist()]
    return {
        "name": one.name, "title": one.title, "ranks": everyone, "without_file": list(one.missing),
        "operations": list(one.operations), "collectives": one.count,
        "bytes": _known(np.median(one.bytes[one.last >= 0])) if len(used) else None,
        "transfer": _known(median(one.transfer)), "waiting": _known(median(one.waiting / max(len(one.rows), 1))),
        "longest_wait": _known(median(one.longest)),
        "last": cluster.matrices.ranks[int(rows[often])].rank if len(rows) else None,
        "last_share": _known(counts[often] / len(used)) if len(rows) else None,
    }  # fmt: skip


def median(values: Column) -> Column:
    """Over the steps; NaN where a row has none."""
    known = np.isfinite(values).any(-1)
    found = np.full(known.shape, np.nan)
    found[known] = np.nanmedian(values[known], -1) if values.ndim > 1 else np.nanmedian(values)
    return found


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _largest(cluster: Cluster) -> dict[str, Any] | None:
    if cluster.largest is None:
        return None
    rank, excess, confidence = cluster.largest
    return {"rank": rank, "slower": excess, "confidence": confidence}


def json_bytes(cluster: Cluster) -> bytes:
    """The document, indented, with a newline at the end."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY
    return orjson.dumps(document(cluster), option=options)
