"""Where the files are reduced: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from typing import TypeVar

from npuscope.errors import UserError

Item = TypeVar("Item")
Made = TypeVar("Made")
FEW = 64
"""So many items are done faster than a process starts."""
MOST_IN_A_PIECE, PIECES_EACH = 64, 8
CONNECT_SECONDS = 30


def each(
    do: Callable[[Item], Made], items: Sequence[Item], *, processes: int | None = None, scheduler: str | None = None
) -> list[Made]:
    """`do` of every item, in their order.

    `processes` is how many processes of this machine do it (all cores by default); with `scheduler`, the address of a
    Dask scheduler, its workers do. Raises UserError when they cannot be had, or are lost.
    """
    if scheduler:
        return _on_dask(do, items, scheduler)
    count = processes if processes is not None else len(os.sched_getaffinity(0))
    if count <= 1 or len(items) <= FEW:
        return [do(item) for item in items]
    try:
        # Not forked: whoever calls may have threads.
        with ProcessPoolExecutor(count, get_context("forkserver")) as pool:
            pieces = _pieces(items, count)
            return [made for part in pool.map(_piece, [do] * len(pieces), pieces) for made in part]
    except BrokenProcessPool:
        raise UserError("a process that read files was ended, perhaps for want of memory; try --processes 1") from None


def _on_dask(do: Callable[[Item], Made], items: Sequence[Item], scheduler: str) -> list[Made]:
    try:
        from distributed import Client
    except ImportError:
        raise UserError("--scheduler needs Dask: pip install 'dask[distributed]'") from None
    try:
        client = Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise UserError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    with client:
        count = max(sum(client.nthreads().values()), 1)
        if not client.nthreads():
            raise UserError(f"the Dask scheduler at {scheduler} has no workers")
        pieces = _pieces(items, count)
        try:
            futures = client.map(_piece, [do] * len(pieces), pieces, pure=False)
            return [made for part in client.gather(futures) for made in part]
        except Exception as error:  # whatever the workers raise, or the connection
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(f"the Dask workers of {scheduler} failed: {reason}") from None


def _piece(do: Callable[[Item], Made], items: Sequence[Item]) -> list[Made]:
    return [do(item) for item in items]


def _pieces(items: Iterable[Item], workers: int) -> list[list[Item]]:
    """Neighbours together, a few pieces for each worker, so that none waits long for the last."""
    whole = list(items)
    size = max(1, min(MOST_IN_A_PIECE, len(whole) // (workers * PIECES_EACH)))
    return list(_batched(iter(whole), size))


def _batched(items: Iterator[Item], size: int) -> Iterator[list[Item]]:
    while part := list(islice(items, size)):
        yield part
