"""What simulators call their pipes, and what we call them (opprof.md 4.3)."""

from __future__ import annotations

from npuscope.trace.timeline import Lane

ALIASES = {
    "VEC": Lane.VECTOR,
    "VEC0": Lane.VECTOR,
    "VECTOR0": Lane.VECTOR,
    "FC": Lane.FLOWCTRL,
    "FIX_PIPE": Lane.FIXP,
    "ISSUE": Lane.EVENT,
}
NAMES = {lane.name: lane for lane in Lane} | ALIASES
SCALAR_ACCESSES = ("scalar_ld", "scalar_st")
"""Mnemonics that belong to the scalar unit whatever pipe their line names."""


def lane_of(pipe: str, mnemonic: str) -> Lane:
    """The lane of an instruction that a log puts on `pipe`; ALL where neither tells."""
    lane = NAMES.get(pipe)
    if lane is not None:
        return lane
    return Lane.SCALAR if any(name in mnemonic for name in SCALAR_ACCESSES) else Lane.ALL
