"""FlagGems: PyTorch's operations in Triton, called by name on tensors of the simulated device."""

from __future__ import annotations

from libraries.gems_arrays import ARRAYS
from libraries.gems_elements import ELEMENTS
from libraries.gems_layers import LAYERS

TABLE = [*ELEMENTS, *ARRAYS, *LAYERS]
