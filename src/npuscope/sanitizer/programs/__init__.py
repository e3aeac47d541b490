"""Checks of tile kernels: programs of a grid that nothing orders but atomic operations. No check here runs the engine
that judges the pipes of a core; what programs touched is compared as sorted intervals, whole launches at a time."""
