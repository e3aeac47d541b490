"""The happens-before engine: one pass over a trace that finds unordered accesses and reads of bytes never written.

* :mod:`.events` says what each instruction orders, from its trace row.
* :mod:`.clocks` keeps what every (core, pipe) knows to be complete.
* :mod:`.shadow` keeps, for every stretch of every memory, who touched it last.
* :mod:`.runs` turns footprints into runs of bytes.
* :mod:`.sweep` is the loop over rows, compiled; :mod:`.engine` drives it and keeps its tables.

All state is plain arrays, so that the loops compile once (numba, cached) and run at some millions of rows a second.
"""
