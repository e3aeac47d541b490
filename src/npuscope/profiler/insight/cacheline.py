"""Block CACHELINE_HEAT_MAP: hits and misses of each line of the L2 cache, and whose they were."""

from __future__ import annotations

import numpy as np

from npuscope.profiler.charts.cache_map import CacheMap
from npuscope.profiler.writers.bin import DETAIL_LIMIT
from npuscope.profiler.writers.text_rows import Hex, Sheet, Text, Texts, Whole
from npuscope.trace.timeline import Loss, Step

ROOM = 4096
BETWEEN = b",\n"
"""Between two records; a record has no line feed."""


def cacheline(chart: CacheMap, steps: list[Step], limit: int = DETAIL_LIMIT) -> tuple[bytes, list[Loss]]:
    """The document as JSON, no longer than `limit`: lines with the fewest misses are left out where it would be, and
    that is told. A line's id is its place among all that were touched."""
    text = _records(chart, steps)
    total = kept = chart.address.size
    if len(text) + ROOM > limit:
        records = text.split(BETWEEN)
        order = np.argsort(-chart.misses, kind="stable")
        sizes = np.array([len(record) + len(BETWEEN) for record in records])
        fits = order[np.cumsum(sizes[order]) + ROOM <= limit]
        text, kept = BETWEEN.join([records[number] for number in np.sort(fits)]), fits.size
    body = b'{"Cacheline Records":[' + text + b"]}"
    sentence = f"the cache map holds {kept} of {total} lines, those with the most misses"
    return body, [Loss("cache lines", sentence, count=total - kept, total=total)] if kept < total else []


def _records(chart: CacheMap, steps: list[Step]) -> bytes:
    """The records of all lines, split by BETWEEN."""
    total = np.maximum(chart.hits + chart.misses, 1)
    rates, rate = np.unique(np.round(100.0 * chart.hits / total, 6), return_inverse=True)
    texts = Texts()
    hit, miss = (
        texts.more([b"%b],\"Address Range\":[" % repr(value).encode() for value in values])
        for values in (rates.tolist(), np.round(100 - rates, 6).tolist())
    )
    ranges = [_ranges(chart, chosen > 0, steps, texts) for chosen in (chart.pair_hits, chart.pair_misses)]
    columns = np.stack([
        np.arange(total.size), chart.address, chart.hits, hit + rate, ranges[0], chart.misses, miss + rate, ranges[1],
    ])  # fmt: skip
    form = (
        BETWEEN, b'{"Cacheline Id":', Whole(0), b',"Address":"0x', Hex(1), b'","Hit":{"Value":[', Whole(2), b",",
        Text(3), Text(4), b']},"Miss":{"Value":[', Whole(5), b",", Text(6), Text(7), b"]}}",
    )  # fmt: skip
    return b"".join(map(bytes, Sheet(texts, (form,), columns).chunks()))[len(BETWEEN) :]


def _ranges(chart: CacheMap, chosen: np.ndarray, steps: list[Step], texts: Texts) -> np.ndarray:
    """For each line the number of the text of the ranges of addresses of those instructions that touched it and are
    `chosen`, (pairs,) bool: an instruction goes on with a range where its address is the next of all after the range's
    last."""
    addresses, rank = np.unique([step.address for step in steps], return_inverse=True)
    names = [b'"0x%x"' % address for address in addresses.tolist()]
    row, place = chart.touched[0, chosen], rank.reshape(-1)[chart.touched[1, chosen]]
    order = np.lexsort((place, row))
    row, place = row[order], place[order]
    new = np.ones(row.size, bool)
    new[1:] = (row[1:] != row[:-1]) | (place[1:] - place[:-1] > 1)
    begin = np.flatnonzero(new)
    end = np.append(begin[1:], row.size)[: begin.size] - 1
    pairs, pair = np.unique(place[begin] * len(names) + place[end], return_inverse=True)
    made = [b"[%b,%b]" % (names[number // len(names)], names[number % len(names)]) for number in pairs.tolist()]
    found = np.full(chart.address.size, texts.number(b""))
    found[row[begin]] = texts.more(made) + pair.reshape(-1)
    bounds = np.searchsorted(row[begin], np.arange(found.size + 1))
    for line in np.flatnonzero(np.diff(bounds) > 1).tolist():
        ranges = pair[bounds[line] : bounds[line + 1]].tolist()
        found[line] = texts.number(b",".join([made[number] for number in ranges]))
    return found
