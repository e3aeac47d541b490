"""Who collects in this process: the monitor, a trace and the vendor's Monitor API exclude each other, because a card
has room for one subscriber."""

from __future__ import annotations

import os
from collections.abc import Callable

Says = Callable[[], str]
"""What occupies the process now, as a sentence; "" for nothing."""
_occupants: dict[int, Says] = {}
os.register_at_fork(after_in_child=_occupants.clear)


def enter(who: object, says: Says) -> None:
    """From now on, ask `says` before somebody else starts to collect. `who` is what `leave` will name."""
    _occupants[id(who)] = says


def leave(who: object) -> None:
    """Ask no longer."""
    _occupants.pop(id(who), None)


def in_the_way_of(who: object) -> str:
    """What somebody else does that excludes a collection by `who`; "" for nothing."""
    others = (says() for key, says in tuple(_occupants.items()) if key != id(who))
    return next((sentence for sentence in others if sentence), "")
