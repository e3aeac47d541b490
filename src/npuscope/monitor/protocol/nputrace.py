"""The text that tells the vendor's plug-in what to trace: `KEY=value` lines in the order of its command line."""

from __future__ import annotations

from dataclasses import dataclass

from npuscope.monitor.protocol.config import single, text


@dataclass(frozen=True)
class Steps:
    """Trace so many steps; -1 starts with the next one."""

    start: int
    count: int


@dataclass(frozen=True)
class Span:
    """Trace for so long; start 0 is at once."""

    milliseconds: int = 500
    start_time_ms: int = 0


@dataclass(frozen=True)
class NpuTrace:
    """What to trace, as the flags of `dyno nputrace` say it."""

    folder: str
    when: Steps | Span
    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    activities: str = "CPU,NPU"
    analyse: bool = False
    async_mode: bool = False
    profiler_level: str = "Level0"
    aic_metrics: str = "AiCoreNone"
    l2_cache: bool = False
    op_attr: bool = False
    msprof_tx: bool = False
    gc_detect_threshold: float | None = None
    data_simplification: str = "true"
    export_type: str = "Text"
    host_sys: str = "None"
    sys_io: bool = False
    sys_interconnection: bool = False
    mstx_domain_include: str | None = None
    mstx_domain_exclude: str | None = None
    rank_list: str | None = None


def build(trace: NpuTrace) -> str:
    """The configuration text. Raises BadConfig for a value that would not arrive as it is."""
    pairs: list[tuple[str, object]] = [("ACTIVITIES_LOG_FILE", trace.folder), *_when(trace.when)]
    pairs += [
        ("PROFILE_RECORD_SHAPES", trace.record_shapes),
        ("PROFILE_PROFILE_MEMORY", trace.profile_memory),
        ("PROFILE_WITH_STACK", trace.with_stack),
        ("PROFILE_WITH_FLOPS", trace.with_flops),
        ("PROFILE_WITH_MODULES", trace.with_modules),
        ("PROFILE_ACTIVITIES", trace.activities),
        ("PROFILE_ANALYSE", trace.analyse),
        ("PROFILE_ASYNC_MODE", trace.async_mode),
        ("PROFILE_PROFILER_LEVEL", trace.profiler_level),
        ("PROFILE_AIC_METRICS", trace.aic_metrics),
        ("PROFILE_L2_CACHE", trace.l2_cache),
        ("PROFILE_OP_ATTR", trace.op_attr),
        ("PROFILE_MSPROF_TX", trace.msprof_tx),
        ("PROFILE_GC_DETECT_THRESHOLD", _optional(trace.gc_detect_threshold)),
        ("PROFILE_DATA_SIMPLIFICATION", trace.data_simplification),
        ("PROFILE_EXPORT_TYPE", trace.export_type),
        ("PROFILE_HOST_SYS", trace.host_sys),
        ("PROFILE_SYS_IO", trace.sys_io),
        ("PROFILE_SYS_INTERCONNECTION", trace.sys_interconnection),
        ("PROFILE_MSTX_DOMAIN_INCLUDE", _optional(trace.mstx_domain_include)),
        ("PROFILE_MSTX_DOMAIN_EXCLUDE", _optional(trace.mstx_domain_exclude)),
        ("PROFILE_IS_RANK", trace.rank_list is not None),
        ("PROFILE_RANK_LIST", _optional(trace.rank_list)),
    ]
    return text(pairs)


def _when(when: Steps | Span) -> list[tuple[str, object]]:
    if isinstance(when, Steps):
        return [
            ("PROFILE_START_ITERATION", 0),
            ("PROFILE_START_STEP", when.start),
            ("ACTIVITIES_ITERATIONS", when.count),
        ]
    return [("PROFILE_START_TIME", when.start_time_ms), ("ACTIVITIES_DURATION_MSECS", when.milliseconds)]


def _optional(value: float | str | None) -> str:
    if isinstance(value, float):
        return single(value)
    return "None" if value is None else value
