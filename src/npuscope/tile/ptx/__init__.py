"""Short pieces of PTX as kernels write them for single elements: straight lines of register instructions.

`parse` reads a text, `run` executes it on arrays that hold one register for each group of elements.
"""

from npuscope.tile.ptx.parse import Instruction, PtxError, parse
from npuscope.tile.ptx.run import known, run

__all__ = ["Instruction", "PtxError", "known", "parse", "run"]
