"""The cores of a launch block by block, as the charts show them."""

from __future__ import annotations

from dataclasses import dataclass

from npuscope.npu.chip import Chip
from npuscope.profiler.cores import sub_block_names
from npuscope.trace.schema import Launch

AI_CORE = "AiCore"
"""What the core of a chip is called that does not tell cube and vector cores apart."""


@dataclass(frozen=True, slots=True)
class Block:
    """`cores` maps ``cube0``, ``vector0``, ``vector1`` or ``AiCore`` to an index in ``launch.cores``."""

    number: int
    cores: dict[str, int]

    @property
    def kind(self) -> str:
        """``cube``, ``vector``, ``mix`` or ``AiCore``."""
        if AI_CORE in self.cores:
            return AI_CORE
        cube = "cube0" in self.cores
        return "mix" if cube and len(self.cores) > 1 else "cube" if cube else "vector"


def core_kinds(launch: Launch, chip: Chip) -> list[tuple[int, str]]:
    """(block, name) of each core of a launch: ``(3, "vector1")``, ``(0, "AiCore")``."""
    if not chip.split:
        return [(core.block, AI_CORE) for core in launch.cores]
    return sub_block_names(launch)


def blocks_of(launch: Launch, chip: Chip) -> list[Block]:
    """The blocks of a launch, by number."""
    found: dict[int, Block] = {}
    for index, (number, name) in enumerate(core_kinds(launch, chip)):
        found.setdefault(number, Block(number, {})).cores[name] = index
    return [found[number] for number in sorted(found)]
