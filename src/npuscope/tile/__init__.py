"""Tile programs: kernels whose values are blocks of numbers, run many programs at a time.

The first axis of every array is the program: its length is the number of programs in the batch, or 1 where they all
agree. The other axes are those of the tile, or of length 1 where the tile does not change along them, so that a
broadcast costs nothing until somebody needs the numbers.
"""
