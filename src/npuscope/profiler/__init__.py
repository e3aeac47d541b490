"""The profiler: figures, charts and advice from a launch's timeline. It computes and writes; it never runs a kernel."""
