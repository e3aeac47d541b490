"""The happens-before engine: one pass over a trace that finds unordered accesses and reads of bytes never written.

* :mod:`.events` says what each instruction orders and what it makes of its operands, from its trace row.
* :mod:`.clocks` keeps what every (core, pipe) knows to be complete; :mod:`.signals` carries out what a row orders.
* :mod:`.segments` keeps every memory as stretches of bytes, :mod:`.marks` who touched each of them last,
  :mod:`.undefined` which of them were never written; :mod:`.shadow` brings one access to them, :mod:`.races` reports.
* :mod:`.runs` turns footprints into runs of bytes.
* :mod:`.sweep` is the loop over rows; :mod:`.engine` drives it, keeps its tables (:mod:`.state`, :mod:`.tables`) and is
  what the rest of the sanitizer sees.

All state is plain arrays, so that the loop compiles once (numba, cached) and goes through about a million rows a
second.
"""

from pathlib import Path

from npuscope.trace.stale import drop_stale

drop_stale(Path(__file__).parent)
