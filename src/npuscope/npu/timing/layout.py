"""Where everything stands in the arrays of the compiled schedule."""

from __future__ import annotations

# -- ops: (ops, OP_FIELDS) int64, the instructions of a launch sorted by core, in the order in which each issues them --

CORE, SLOT, KIND, NEXT, AHEAD, LINE0, LINE1, RANGE, GM0, GM1, DEP0, DEP1, STEP, PLACE, STRICT = range(15)
"""Core; pipe (kinds.PIPES); kinds.Kind; the next op of the same pipe and core, and the `depth`-th before it (-1: none);
first and last line of code; row of `ranges` (-1: none); part of `gm`; part of `deps`; the step; the address of a scalar
access to GM; whether a scalar access to UB waits for the pipes (the compiler's or the library's own flags), or a copy
that waits has its pipe meanwhile (unit flags)."""
OP_FIELDS = 15

(K_SCALAR, K_WORK, K_COPY, K_SET, K_WAIT, K_BARRIER, K_DRAIN, K_END, K_LOAD_UB, K_STORE_UB, K_LOAD_GM, K_STORE_GM,
 K_RESULT) = range(13)  # fmt: skip
"""kinds.Kind as plain numbers, which compile faster."""

# -- costs: (ops, COST_FIELDS) float64 ---------------------------------------------------------------------------------

HIDDEN, BUSY, LATENCY, LATENCY_HIT, BYTES, L2_BYTES = range(6)
"""Cycles of the scalar unit before it issues the op; cycles of its pipe; from then to the result, and the same when L2
had all; bytes moved through GM; those weighed for L2."""
COST_FIELDS = 6

# -- times: (ops, TIME_FIELDS) float64, UNKNOWN_TIME until known -------------------------------------------------------

FETCH, CONTROL, ISSUE, START, END, FIRE = range(6)
TIME_FIELDS = 6
UNKNOWN_TIME = -1.0

# -- results: (ops, RESULT_FIELDS) int64 -------------------------------------------------------------------------------

HITS, MISSES, VICTIMS = range(3)
RESULT_FIELDS = 3

# -- deps: (2, links): op, delay; ranges: (8, vector ops): written low and high, up to three reads ---------------------

DEP_OP, DEP_DELAY, DEP_AT_ISSUE = range(3)
RANGES = 4

# -- cores: (CORE_FIELDS, cores) float64 -------------------------------------------------------------------------------

(C_START, C_END, C_BUSY, C_WAIT, C_SINGLE, C_FETCH, C_STALL_UB, C_ICACHE, C_ICACHE_MISS, C_DCACHE_HIT, C_DCACHE_MISS,
 C_STALL) = range(12)  # fmt: skip
"""C_STALL and on: one for each of kinds.PIPES."""
CORE_FIELDS = 12 + 7

# -- settings: float64 -------------------------------------------------------------------------------------------------

(F_ISSUE, F_ICACHE_MISS, F_ICACHE_NEXT, F_UB_LOAD, F_UB_STORE, F_DC_HIT, F_DC_MISS_L2, F_DC_MISS_GM, F_FLAG, F_GM_RATE,
 F_L2_RATE, F_WRITE_WEIGHT, F_OVERHEAD, F_DISPATCH, F_LINE) = range(15)  # fmt: skip
SETTINGS = 15
