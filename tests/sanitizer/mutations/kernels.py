"""The clean kernels that are mutated: rows of the catalogue, and a message between cores through a warm cache."""

from __future__ import annotations

from scenarios import clean_cube, clean_vector, race_cross, race_cube, race_vector
from scenarios.model import Scenario

NAMES = (
    "C02", "C02-ahead", "C03", "C04", "C06", "C06-soft", "C07", "C10", "C11", "C14", "C18", "C19", "C22", "C25", "C26",
    "C-softmax", "D05", "D06", "D07", "C15", "C17", "C04-cube", "C06-mixed", "C05", "R03-clean", "R05-auto-clean",
    "R07-clean", "R07-auto-clean", "R09-clean", "R10-clean", "R11-clean", "R14-clean", "R16-clean", "R19-two-clean",
    "R20-clean", "R29-clean", "P07-clean", "P10-clean",
)

WARM = """
@asc.jit
def kernel(z: asc.GlobalAddress, w: asc.GlobalAddress):
    z_gm = gm(z)
    w_gm = gm(w)
    a = ub(0, 16, asc.int32)
    if asc.get_block_idx() == 1:
        before = w_gm.get_value(0)
        z_gm.set_value(16, before)
        asc.data_cache_clean_and_invalid(asc.CacheLine.SINGLE_CACHE_LINE, z_gm[16:])
    asc.sync_all()
    if asc.get_block_idx() == 0:
        {writer}
    asc.sync_all()
    if asc.get_block_idx() == 1:
        {reader}
    asc.sync_all()

z = np.zeros(64, np.int32)
w = np.zeros(64, np.int32)
kernel[2](z, w)
assert z[0] == 5 and z[16] == 0
"""


def warm(name: str, writer: str, reader: str) -> Scenario:
    """A word from core 0 to core 1, whose cache holds the old one. Both meet at the end, as what a core has not flushed
    reaches memory when its kernel ends."""
    sides = [side.strip("\n").replace("\n", "\n        ") for side in (writer, reader)]
    return Scenario(name, WARM.format(writer=sides[0], reader=sides[1]))


ROWS = (*clean_vector.ROWS, *clean_cube.ROWS, *race_vector.ROWS, *race_cube.ROWS, *race_cross.ROWS)
BASES = (
    *(row for row in ROWS if row.id in NAMES),
    warm("W05", clean_vector.BY_SCALAR, clean_vector.TO_SCALAR),
    warm("W06", clean_vector.BY_COPY, clean_vector.TO_SCALAR),
    warm("W07", clean_vector.BY_SCALAR, clean_vector.TO_COPY),
)
