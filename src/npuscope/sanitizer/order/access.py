"""The access that the compiled loop is looking at, as places in one array, and what its role may be."""

from __future__ import annotations

from npuscope.sanitizer.order.state import DETAIL, DETAILS

READ, WRITE, ATOMIC, UNIT, POLL, UNCHANGED = 0, 1, 2, 4, 8, 16
"""Roles, and what is added to a role: UNIT for an instruction that works under a unit flag, POLL for a scalar load that
a loop makes until it sees what another core's scalar unit stores, UNCHANGED for a write of what is there already."""

CORE, PIPE, OVERLAPS, IN_SPACE, MARKING, IN_PLACE, MEMO_IN, MEMO_OUT, OWN_MARK, OWN = range(10)
"""Places in `now`, the access that is being looked at. `OVERLAPS`: earlier instructions of the same pipe may not be
done; `IN_PLACE`: the same instruction writes what it reads here; `MEMO_*`: the last list of marks that was met and what
became of it; `OWN_MARK`: the mark of a write, -1 before there is one; from OWN on, the mark that the access leaves."""
NOW = OWN + DETAIL + DETAILS
