"""Options of a trace that mean nothing without an NPU; each is answered, none is passed over."""

from __future__ import annotations

from collections.abc import Mapping

NO_NPU = "has no meaning without an NPU"
FLAGS = {
    "PROFILE_L2_CACHE": "--l2-cache",
    "PROFILE_OP_ATTR": "--op-attr",
    "PROFILE_SYS_IO": "--sys-io",
    "PROFILE_SYS_INTERCONNECTION": "--sys-interconnection",
}
HOST_SYSTEMS = ("disk", "network", "osrt")
KNOWN = frozenset({
    *FLAGS, "ACTIVITIES_LOG_FILE", "PROFILE_START_ITERATION", "PROFILE_START_STEP", "ACTIVITIES_ITERATIONS",
    "WARMUP_ITERATIONS", "PROFILE_START_TIME", "ACTIVITIES_DURATION_MSECS", "PROFILE_RECORD_SHAPES",
    "PROFILE_PROFILE_MEMORY", "PROFILE_WITH_STACK", "PROFILE_WITH_FLOPS", "PROFILE_WITH_MODULES",
    "PROFILE_ACTIVITIES", "PROFILE_ANALYSE", "PROFILE_ASYNC_MODE", "PROFILE_PROFILER_LEVEL", "PROFILE_AIC_METRICS",
    "PROFILE_MSPROF_TX", "PROFILE_MSTX", "PROFILE_GC_DETECT_THRESHOLD", "PROFILE_DATA_SIMPLIFICATION",
    "PROFILE_EXPORT_TYPE", "PROFILE_HOST_SYS", "PROFILE_MSTX_DOMAIN_INCLUDE", "PROFILE_MSTX_DOMAIN_EXCLUDE",
    "PROFILE_IS_RANK", "PROFILE_RANK_LIST", "REQUEST_TRACE_ID",
})  # fmt: skip
"""Every key that is followed or answered."""


def unmet(pairs: Mapping[str, str]) -> list[str]:
    """A sentence for each option that asks for what there is not."""
    notes = [f"{flag} {NO_NPU}" for key, flag in FLAGS.items() if pairs.get(key, "").lower() == "true"]
    level = pairs.get("PROFILE_PROFILER_LEVEL", "Level0")
    if level != "Level0":
        notes.append(f"--profiler-level {level} {NO_NPU}: everything is recorded at each level")
    metrics = pairs.get("PROFILE_AIC_METRICS", "AiCoreNone")
    if metrics != "AiCoreNone":
        notes.append(f"--aic-metrics {metrics} {NO_NPU}")
    if pairs.get("PROFILE_DATA_SIMPLIFICATION", "true").lower() == "false":
        notes.append(f"--data-simplification false {NO_NPU}: nothing is dropped in any case")
    systems = {word.strip() for word in pairs.get("PROFILE_HOST_SYS", "None").split(",")}
    notes += [f"--host-sys {name} is recorded on hosts with an NPU only" for name in HOST_SYSTEMS if name in systems]
    return notes + [f"the option {key} is not known here" for key in sorted(pairs.keys() - KNOWN)]
