"""MLIR as the front ends hand it over: one reader for the generic textual form, and queries on what stays raw text.

`parse_module` gives the op tree; `location` says whose line an op is, `attributes` and `types` read raw text on demand.
"""

from npuscope.mlir.location import UNKNOWN, Frame, Location, inherit_locations, user_frames
from npuscope.mlir.reader import parse_module
from npuscope.mlir.tree import Block, Op, Region, Value
from npuscope.mlir.types import MlirSyntaxError

__all__ = [
    "UNKNOWN",
    "Block",
    "Frame",
    "Location",
    "MlirSyntaxError",
    "Op",
    "Region",
    "Value",
    "inherit_locations",
    "parse_module",
    "user_frames",
]
