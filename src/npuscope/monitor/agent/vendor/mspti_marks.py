"""Marker records as the callbacks of ``MstxMonitor`` get them: marks, and ranges that are over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from npuscope.monitor.activity.batch import Batch
from npuscope.monitor.activity.kinds import Side
from npuscope.monitor.agent.processors.ranges import Ranges, instants, of_side
from npuscope.monitor.agent.vendor.mspti_data import (
    MarkerData,
    MsptiActivityFlag,
    MsptiActivitySourceKind,
    MsptiObjectId,
    RangeMarkerData,
)


class Marks:
    """What has come of the markers of one collection."""

    def __init__(self) -> None:
        self._ranges = {side: Ranges() for side in Side}

    def marks(self, markers: Batch, texts: Sequence[str]) -> Iterator[MarkerData]:
        """The marks among these records."""
        found = instants(markers)
        columns = (found[name].tolist() for name in ("flag", "side", "time", "id", "name", "domain"))
        for place, flag, side, time, number, name, domain in zip(_places(found), *columns, strict=True):
            yield MarkerData(
                flag=MsptiActivityFlag(flag), source_kind=MsptiActivitySourceKind(side), timestamp=time, id=number,
                object_id=place, name=texts[name], domain=texts[domain],
            )  # fmt: skip

    def ranges(self, markers: Batch, texts: Sequence[str]) -> Iterator[RangeMarkerData]:
        """The ranges that end with these records."""
        for side, pairs in self._ranges.items():
            starts, ends = pairs.pair(of_side(markers, side))
            columns = (starts[name].tolist() for name in ("id", "name", "domain", "time"))
            rows = zip(_places(starts), *columns, ends["time"].tolist(), strict=True)
            for place, number, name, domain, start, end in rows:
                yield RangeMarkerData(
                    source_kind=MsptiActivitySourceKind(side), id=number, object_id=place, name=texts[name],
                    domain=texts[domain], start=start, end=end,
                )  # fmt: skip


def _places(markers: Batch) -> list[MsptiObjectId]:
    columns = (np.maximum(markers[name], 0).tolist() for name in ("process", "thread", "device", "stream"))
    return [MsptiObjectId(*place) for place in zip(*columns, strict=True)]
