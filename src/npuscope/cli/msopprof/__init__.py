"""`msopprof`, which is `msprof op`: the vendor's command line of the operator profiler, on a simulated device."""
