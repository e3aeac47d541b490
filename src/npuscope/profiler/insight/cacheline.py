"""Block CACHELINE_HEAT_MAP: hits and misses of each line of the L2 cache, and whose they were."""

from __future__ import annotations

import numpy as np

from npuscope.profiler.charts.cache_map import CacheMap
from npuscope.profiler.writers.bin import DETAIL_LIMIT
from npuscope.trace.timeline import Loss, Step

ROOM = 4096


def cacheline(chart: CacheMap, steps: list[Step], limit: int = DETAIL_LIMIT) -> tuple[bytes, list[Loss]]:
    """The document as JSON, no longer than `limit`: lines with the fewest misses are left out where it would be, and
    that is told. A line's id is its place among all that were touched."""
    records = _records(chart, steps)
    kept = records
    sizes = np.array([len(record) + 1 for record in records])
    if sizes.sum() + ROOM > limit:
        order = np.argsort(-chart.misses, kind="stable")
        fits = order[np.cumsum(sizes[order]) + ROOM <= limit]
        kept = [records[number] for number in np.sort(fits)]
    body = b'{"Cacheline Records":[' + b",".join(kept) + b"]}"
    lost = len(records) - len(kept)
    sentence = f"the cache map holds {len(kept)} of {len(records)} lines, those with the most misses"
    return body, [Loss("cache lines", sentence, count=lost, total=len(records))] if lost else []


def _records(chart: CacheMap, steps: list[Step]) -> list[bytes]:
    total = np.maximum(chart.hits + chart.misses, 1)
    rates = np.round(100.0 * chart.hits / total, 6).tolist()
    hit = _ranges(chart, chart.pair_hits > 0, steps)
    miss = _ranges(chart, chart.pair_misses > 0, steps)
    counts = zip(chart.hits.tolist(), chart.misses.tolist(), chart.address.tolist(), rates, strict=True)
    return [
        b'{"Cacheline Id":%d,"Address":"0x%x","Hit":{"Value":[%d,%b],"Address Range":[%b]},'
        b'"Miss":{"Value":[%d,%b],"Address Range":[%b]}}'
        % (row, address, hits, repr(rate).encode(), hit[row], misses, repr(round(100 - rate, 6)).encode(), miss[row])
        for row, (hits, misses, address, rate) in enumerate(counts)
    ]


def _ranges(chart: CacheMap, chosen: np.ndarray, steps: list[Step]) -> list[bytes]:
    """For each line the ranges of addresses of those instructions that touched it and are `chosen`, (pairs,) bool: an
    instruction goes on with a range where its address is the next of all after the range's last."""
    addresses, rank = np.unique([step.address for step in steps], return_inverse=True)
    names = [b'"0x%x"' % address for address in addresses.tolist()]
    row, place = chart.touched[0, chosen], rank.reshape(-1)[chart.touched[1, chosen]]
    order = np.lexsort((place, row))
    row, place = row[order], place[order]
    new = np.ones(row.size, bool)
    new[1:] = (row[1:] != row[:-1]) | (place[1:] - place[:-1] > 1)
    begin = np.flatnonzero(new)
    end = np.append(begin[1:], row.size)[: begin.size] - 1
    pairs = zip(place[begin].tolist(), place[end].tolist(), strict=True)
    texts = [b"[%b,%b]" % (names[low], names[high]) for low, high in pairs]
    bounds = np.searchsorted(row[begin], np.arange(chart.address.size + 1)).tolist()
    return [b",".join(texts[low:high]) for low, high in zip(bounds[:-1], bounds[1:], strict=True)]
