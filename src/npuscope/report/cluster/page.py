"""One self-contained page: the verdict, the slow ranks with their evidence, and who waited when."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from npuscope import __version__
from npuscope.monitor.activity.batch import Column
from npuscope.monitor.analysis.cluster import Cluster
from npuscope.report.cluster.document import communicators, ranks, slow_ranks
from npuscope.report.cluster.words import headline, link, verdict
from npuscope.report.page.blobs import Blobs
from npuscope.report.page.parts import embedded, filled, static

HERE = "npuscope.report.cluster"
SHARED_SCRIPTS = ("base", "format", "tip", "table")
SCRIPTS = ("findings", "heat", "tables", "page")
SHADES = 254
"""Of a cell; 255 stands for a step that the rank lacks."""
MOST_ROWS, MOST_COLUMNS = 2048, 2000
"""Of a map; with more ranks or steps than that a cell is the mean of several, which the page says."""
MOST_NOTES = 50


def page(cluster: Cluster) -> bytes:
    """The page, UTF-8."""
    blobs = Blobs()
    data = {
        "npuscope": __version__,
        "about": headline(cluster),
        "verdict": verdict(cluster),
        "found": bool(cluster.slow or cluster.links),
        "slow": slow_ranks(cluster),
        "links": [{"text": link(one)} for one in cluster.links],
        "commands": cluster.commands,
        "problems": _problems(cluster),
        "ranks": ranks(cluster),
        "communicators": communicators(cluster),
        "maps": [
            _map("Waiting in collectives", cluster.waits.waiting, cluster, blobs),
            _map("Own time", cluster.matrices.own, cluster, blobs),
            _map("Compute", cluster.matrices.compute, cluster, blobs),
        ],
    }
    parts = {
        "TITLE": escape(f"{verdict(cluster)[:80]} - npuscope cluster"),
        "STYLE": static("page.css") + static("cluster.css", HERE),
        "SCRIPT": "\n".join(
            [*(static(f"{name}.js") for name in SHARED_SCRIPTS), *(static(f"{name}.js", HERE) for name in SCRIPTS)]
        ),
        "DATA": embedded(data),
        "BLOBS": blobs.html(),
    }
    return filled(static("page.html", HERE), parts)


def _problems(cluster: Cluster) -> list[str]:
    lines = [*(f"left out: {line}" for line in cluster.left_out), *cluster.notes]
    more = [f"and {len(lines) - MOST_NOTES} more, in cluster.json"] if len(lines) > MOST_NOTES else []
    return lines[:MOST_NOTES] + more


def _map(title: str, values: Column, cluster: Cluster, blobs: Blobs) -> dict[str, Any]:
    """A map as bytes: 0 to 254 from `low` to `high`, which are the 1st and 99th percentile so that one outlier does not
    take all the shades; by rows of ranks and columns of steps."""
    tall, wide = (max(1, -(-have // most)) for have, most in zip(values.shape, (MOST_ROWS, MOST_COLUMNS), strict=True))
    values = _means(values, tall, wide)
    known = np.isfinite(values)
    low, high = np.percentile(values[known], [1, 99]) if known.any() else (0.0, 1.0)
    scaled = np.clip((values - low) / (high - low if high > low else 1), 0, 1) * SHADES
    shades = np.where(known, np.nan_to_num(scaled), SHADES + 1).astype(np.uint8)
    return {
        "title": title, "low": low, "high": high, "rows": values.shape[0], "columns": values.shape[1],
        "ranks_a_row": tall, "steps_a_column": wide,
        "ranks": [one.rank for one in cluster.matrices.ranks[::tall]],
        "steps": cluster.matrices.label[::wide].tolist(), "cells": blobs.add(shades.reshape(-1)),
    }  # fmt: skip


def _means(values: Column, tall: int, wide: int) -> Column:
    """Blocks of cells, the known ones averaged."""
    if tall == wide == 1:
        return values
    height, width = (-(-have // size) * size for have, size in zip(values.shape, (tall, wide), strict=True))
    padded = np.full((height, width), np.nan)
    padded[: values.shape[0], : values.shape[1]] = values
    blocks = padded.reshape(height // tall, tall, width // wide, wide)
    count = np.isfinite(blocks).sum((1, 3))
    return np.where(count > 0, np.nansum(blocks, (1, 3)) / np.maximum(count, 1), np.nan)
