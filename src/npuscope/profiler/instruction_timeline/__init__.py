"""What timelines draw: lanes, flags and their arrows, scalar spans, marks, throughput, regions, warps, ranges.

Everything here is computed from a :class:`npuscope.trace.timeline.Timeline` (or from raw records) and is plain data;
`npuscope.profiler.writers` makes files of it.
"""
