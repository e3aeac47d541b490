"""What the vendor's tools call the cores of a launch."""

from __future__ import annotations

import re

from npuscope.trace.schema import CoreType, Launch


def sub_block_names(launch: Launch) -> list[tuple[int, str]]:
    """(block_id, sub_block_id) of each core: ``(3, "cube0")``, ``(3, "vector1")``."""
    vectors = _mixed(launch)
    return [
        _labelled(core.label)
        if core.label
        else (core.block, "cube0")
        if core.type is CoreType.AIC
        else _vector(core.block, core.sub_block, vectors)
        for core in launch.cores
    ]


def core_names(launch: Launch) -> list[str]:
    """The simulator's name of each core: ``core3.cubecore0``, ``core3.veccore1``."""
    return [
        core.label or f"core{block}.{'cubecore' if name.startswith('cube') else 'veccore'}{name[-1]}"
        for core, (block, name) in zip(launch.cores, sub_block_names(launch), strict=True)
    ]


def _labelled(label: str) -> tuple[int, str]:
    """(block_id, sub_block_id) of a core that a log calls ``core3.veccore1``; a core without parts is ``cube0``."""
    block, kind, sub = re.findall(r"^core(\d+)(?:\.(vec|cube|mix)core(\d+))?", label)[0]
    return int(block), f"{'vector' if kind == 'vec' else 'cube'}{sub or 0}"


def _mixed(launch: Launch) -> int:
    """Vector cores to each cube core; 0 in a launch without cube cores."""
    cubes = sum(core.type is CoreType.AIC for core in launch.cores)
    return (len(launch.cores) - cubes) // cubes if cubes else 0


def _vector(block: int, sub_block: int, per_cube: int) -> tuple[int, str]:
    return (block // per_cube, f"vector{sub_block}") if per_cube else (block, "vector0")
