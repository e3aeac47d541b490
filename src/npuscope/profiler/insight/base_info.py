"""Block OP_BASIC_INFO: the operator, its time, and how long each of its cores took."""

from __future__ import annotations

from npuscope.npu.chip import Chip
from npuscope.profiler.charts.blocks import Block, blocks_of
from npuscope.profiler.insight.plain import Json, whole, written
from npuscope.profiler.metrics import kernel_type
from npuscope.profiler.profile import Profile
from npuscope.trace.schema import CoreType

MIX_HEADS = ["Block ID", "Cube0 Duration(us)", "Vector0 Duration(us)", "Vector1 Duration(us)"]
HEADS = ["Block ID", "Core Type", "Duration(us)"]


def base_info(profile: Profile, advice: list[str], device: int = 0, pid: int = 0) -> Json:
    """The document."""
    timeline, chip = profile.timeline, profile.chip
    launch = timeline.launch
    kind = kernel_type(timeline, chip)
    cubes = sum(core.type is CoreType.AIC for core in launch.cores)
    document: Json = {
        "name": launch.kernel,
        "soc": chip.name,
        "op_type": kind,
        "block_dim": cubes if kind == "mix" else len(launch.cores),
        "mix_block_dim": len(launch.cores) - cubes if kind == "mix" else 0,
        "device_id": device,
        "pid": whole(pid),
        "duration": round(timeline.microseconds, 6),
        "cur_freq": whole(timeline.mhz),
        "rated_freq": chip.frequency_mhz,
        "provenance": timeline.source.word,
        "advice": advice,
    }
    blocks = blocks_of(launch, chip)
    if kind == "mix":
        rows = [[str(block.number), *_mix(profile, block)] for block in blocks]
        document["mix_block_detail"] = _table(MIX_HEADS, rows)
    else:
        rows = [
            [str(block.number), name, written(_time(profile, core, chip))]
            for block in blocks
            for name, core in block.cores.items()
        ]
        document["block_detail"] = _table(HEADS, rows)
    return document


def _mix(profile: Profile, block: Block) -> list[str]:
    cores = (block.cores.get(name) for name in ("cube0", "vector0", "vector1"))
    return [written(None if core is None else _time(profile, core, profile.chip)) for core in cores]


def _time(profile: Profile, core: int, chip: Chip) -> float:
    return float(profile.counters.total_cycles[core]) / chip.frequency_mhz


def _table(heads: list[str], rows: list[list[str]]) -> Json:
    return {"head_name": heads, "size": [len(rows), len(heads)], "row": [{"value": row} for row in rows]}
