"""Block CACHELINE_HEAT_MAP: hits and misses of each line of the L2 cache, and whose they were."""

from __future__ import annotations

from functools import cache

import numpy as np
import orjson

from npuscope.profiler.charts.cache_map import CacheMap
from npuscope.profiler.insight.plain import address_ranges
from npuscope.profiler.writers.bin import DETAIL_LIMIT
from npuscope.trace.timeline import Loss, Step

ROOM = 4096


def cacheline(chart: CacheMap, steps: list[Step], limit: int = DETAIL_LIMIT) -> tuple[bytes, list[Loss]]:
    """The document as JSON, no longer than `limit`: lines with the fewest misses are left out where it would be, and
    that is told. A line's id is its place among all that were touched."""
    records = list(_records(chart, steps))
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
    everyone = sorted({step.address for step in steps})

    @cache
    def ranges(numbers: bytes) -> bytes:
        """Few sets of instructions touch many lines, so each is put into words once."""
        mine = np.frombuffer(numbers, np.int64).tolist()
        return orjson.dumps(address_ranges((steps[number].address for number in mine), everyone))

    total = np.maximum(chart.hits + chart.misses, 1)
    rates = np.round(100.0 * chart.hits / total, 6).tolist()
    counts = zip(chart.hits.tolist(), chart.misses.tolist(), chart.address.tolist(), rates, strict=True)
    found, first = [], chart.first.tolist()
    for row, (hits, misses, address, rate) in enumerate(counts):
        part = slice(first[row], first[row + 1])
        numbers = chart.touched[1, part]
        hit = ranges(numbers[chart.pair_hits[part] > 0].tobytes())
        miss = ranges(numbers[chart.pair_misses[part] > 0].tobytes())
        found.append(
            b'{"Cacheline Id":%d,"Address":"0x%x","Hit":{"Value":[%d,%b],"Address Range":%b},'
            b'"Miss":{"Value":[%d,%b],"Address Range":%b}}'
            % (row, address, hits, repr(rate).encode(), hit, misses, repr(round(100 - rate, 6)).encode(), miss)
        )
    return found
