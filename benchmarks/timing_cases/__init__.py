"""Kernels of published measurements and of a public simulator's table, and the figures they are held against."""
