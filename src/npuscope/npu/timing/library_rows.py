"""What the rows of the library's own tiles tell of operands that the trace does not show (`trace.schema.TYPED`)."""

from __future__ import annotations

import numpy as np

from npuscope.npu.timing.operands import NOWHERE, Operands
from npuscope.trace.rows import LaunchRows
from npuscope.trace.schema import ELEMENT_TYPES, OPCODES, TYPED, Space

MMAD, LOAD = OPCODES.number("mmad"), OPCODES.number("load_data")


def elements_told(rows: LaunchRows, shown: np.ndarray) -> np.ndarray:
    """(rows,) place in ELEMENT_TYPES of what each product multiplies, 0 for other rows and for those (`shown`) that
    have accesses to their operands."""
    told = rows.column("d") // TYPED
    known = (rows.column("opcode") == MMAD) & ~shown & (told > 0) & (told < len(ELEMENT_TYPES))
    return np.where(known, told, 0)


def tell(rows: LaunchRows, operands: Operands) -> None:
    """Add to the operands which memory a load fills and the type of elements that a product multiplies."""
    memory = rows.column("d")
    loads = (rows.column("opcode") == LOAD) & (operands.target == NOWHERE) & np.isin(memory, (Space.L0A, Space.L0B))
    operands.target[loads] = memory[loads]
    elements = elements_told(rows, operands.source != NOWHERE)
    for place in np.unique(elements[elements > 0]).tolist():
        name = ELEMENT_TYPES[place]
        if name not in operands.dtypes:
            operands.dtypes.append(name)
        operands.dtype[elements == place] = operands.dtypes.index(name)
