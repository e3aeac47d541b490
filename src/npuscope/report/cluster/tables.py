"""Every step as CSV: one table of the ranks, one of the communicators."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO

import numpy as np

from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.cluster import Cluster


def rank_steps(cluster: Cluster) -> bytes:
    """rank, step, and nanoseconds of the step: its duration, in which kernels ran, collectives ran, collectives ran
    alone, the rank waited in them, and neither ran."""
    matrices = cluster.matrices
    known = np.isfinite(matrices.duration)
    row, step = np.nonzero(known)
    rank = np.array([one.rank for one in matrices.ranks])
    columns = {
        "rank": rank[row],
        "step": matrices.label[step],
        "duration_ns": matrices.duration[known],
        "compute_ns": matrices.compute[known],
        "communication_ns": matrices.communication[known],
        "exposed_communication_ns": matrices.exposed[known],
        "waiting_ns": cluster.waits.waiting[known],
        "idle_ns": matrices.idle[known],
    }
    return _csv({name: np.rint(values).astype(np.int64) for name, values in columns.items()})


def communicator_steps(cluster: Cluster) -> bytes:
    """communicator, step, and nanoseconds of its collectives in the step: the transfer, the waiting of all ranks
    together, the longest of one rank; and the rank that waited least."""
    ranks = np.array([one.rank for one in cluster.matrices.ranks])
    parts: list[dict[str, Column]] = []
    for one in cluster.waits.communicators:
        used = one.last >= 0
        if used.any():
            parts.append(
                {
                    "communicator": np.full(used.sum(), one.label, object),
                    "step": cluster.matrices.label[used],
                    "bytes": one.bytes[used].astype(np.int64),
                    "transfer_ns": np.rint(one.transfer[used]).astype(np.int64),
                    "waiting_ns": np.rint(one.waiting[used]).astype(np.int64),
                    "longest_wait_ns": np.rint(one.longest[used]).astype(np.int64),
                    "last_rank": ranks[one.last[used]],
                }
            )
    names = ("communicator", "step", "bytes", "transfer_ns", "waiting_ns", "longest_wait_ns", "last_rank")
    return _csv({name: np.concatenate([part[name] for part in parts]) if parts else [] for name in names})


def _csv(columns: Mapping[str, object]) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    stream = BytesIO()
    csv.write_csv(pa.table(dict(columns)), stream, csv.WriteOptions(quoting_style="needed"))
    return stream.getvalue()
