"""The adv layer of Ascend C: whole algorithms (Matmul, SoftMax, quantisation, math functions) as single operations.

What the device composes of many instructions on the vector unit is one trace row here, its reads, writes and
temporary buffer included. Matmul is the exception: it leaves the rows of the copies, the cube and Fixpipe, base tile by
base tile.
"""
