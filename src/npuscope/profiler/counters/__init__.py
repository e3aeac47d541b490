"""Virtual counters: what the vendor's hardware counters would read, with their event numbers (opprof.md 5)."""

from npuscope.profiler.counters.counters import Counters as Counters
from npuscope.profiler.counters.counters import count as count
from npuscope.profiler.counters.counters import counters_of as counters_of
