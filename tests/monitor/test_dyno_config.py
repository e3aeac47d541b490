"""The configuration texts of `nputrace` and `npu-monitor`, as published, and what may not go into them."""

from __future__ import annotations

import pytest
from nputrace_text import DEFAULTS

from npuscope.monitor.protocol import config, npu_monitor, nputrace
from npuscope.monitor.protocol.npu_monitor import NpuMonitor, filter_faults
from npuscope.monitor.protocol.nputrace import NpuTrace, Span, Steps


def test_nputrace_by_steps() -> None:
    text = nputrace.build(NpuTrace("/d", Steps(-1, 3)))
    head = "ACTIVITIES_LOG_FILE=/d\nPROFILE_START_ITERATION=0\nPROFILE_START_STEP=-1\nACTIVITIES_ITERATIONS=3\n"
    assert text == head + DEFAULTS


def test_nputrace_by_time() -> None:
    text = nputrace.build(NpuTrace("/d", Span(700, 1234)))
    head = "ACTIVITIES_LOG_FILE=/d\nPROFILE_START_TIME=1234\nACTIVITIES_DURATION_MSECS=700\n"
    assert text == head + DEFAULTS


def test_nputrace_with_everything_changed() -> None:
    trace = NpuTrace(
        "/d", Steps(5, 1), True, True, True, True, True, "NPU", True, True, "Level2", "MemoryUB", True, True, True, 0.1,
        "false", "Db", "cpu,mem", True, True, "one", "two", "0,3",
    )  # fmt: skip
    pairs = dict(line.split("=") for line in nputrace.build(trace).splitlines())
    switches = "RECORD_SHAPES PROFILE_MEMORY WITH_STACK WITH_FLOPS WITH_MODULES ANALYSE ASYNC_MODE L2_CACHE OP_ATTR MSPROF_TX SYS_IO SYS_INTERCONNECTION IS_RANK"
    assert {pairs.pop(f"PROFILE_{name}") for name in switches.split()} == {"true"}
    assert pairs == {
        "ACTIVITIES_LOG_FILE": "/d", "PROFILE_START_ITERATION": "0", "PROFILE_START_STEP": "5", "ACTIVITIES_ITERATIONS": "1",
        "PROFILE_ACTIVITIES": "NPU", "PROFILE_PROFILER_LEVEL": "Level2", "PROFILE_AIC_METRICS": "MemoryUB",
        "PROFILE_GC_DETECT_THRESHOLD": "0.1", "PROFILE_DATA_SIMPLIFICATION": "false", "PROFILE_EXPORT_TYPE": "Db",
        "PROFILE_HOST_SYS": "cpu,mem", "PROFILE_MSTX_DOMAIN_INCLUDE": "one", "PROFILE_MSTX_DOMAIN_EXCLUDE": "two",
        "PROFILE_RANK_LIST": "0,3",
    }  # fmt: skip


def test_npu_monitor() -> None:
    assert npu_monitor.build(NpuMonitor()) == (
        "NPU_MONITOR_START=false\nNPU_MONITOR_STOP=false\nREPORT_INTERVAL_S=60\nDURATION=0\nMSPTI_ACTIVITY_KIND=Marker\n"
        "NPU_MONITOR_LOG_FILE=\nNPU_MONITOR_EXPORT_TYPE=DB\nJSONL_ROTATE_LOG_LINES=\nJSONL_ROTATE_LOG_FILES=\n"
        "NPU_MONITOR_FILTER="
    )
    text = npu_monitor.build(
        NpuMonitor(True, True, 1, 0.5, "Kernel,API", "/d", "Jsonl", "100", "-1", "Kernel:a,b;API:c")
    )
    assert text == (
        "NPU_MONITOR_START=true\nNPU_MONITOR_STOP=true\nREPORT_INTERVAL_S=1\nDURATION=0.5\nMSPTI_ACTIVITY_KIND=Kernel,API\n"
        "NPU_MONITOR_LOG_FILE=/d\nNPU_MONITOR_EXPORT_TYPE=Jsonl\nJSONL_ROTATE_LOG_LINES=100\nJSONL_ROTATE_LOG_FILES=-1\n"
        "NPU_MONITOR_FILTER=Kernel:a,b;API:c"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(10.0, "10"), (0.5, "0.5"), (0.0, "0"), (0.1, "0.1"), (1e-7, "0.0000001"), (16777216.0, "16777216"), (3e10, "30000000000")],
)  # fmt: skip
def test_numbers_are_short_and_without_exponent(value: float, text: str) -> None:
    assert config.single(value) == text


@pytest.mark.parametrize("bad", ["a=b", "a#b", "a\nb", "a\rb"])
def test_values_that_would_not_arrive_are_refused(bad: str) -> None:
    with pytest.raises(config.BadConfig, match="ACTIVITIES_LOG_FILE"):
        nputrace.build(NpuTrace(bad, Steps(1, 1)))
    with pytest.raises(config.BadConfig, match="PROFILE_MSTX_DOMAIN_INCLUDE"):
        nputrace.build(NpuTrace("/d", Steps(1, 1), mstx_domain_include=bad))
    with pytest.raises(config.BadConfig, match="NPU_MONITOR_FILTER"):
        npu_monitor.build(NpuMonitor(filter=bad))
    with pytest.raises(config.BadConfig, match="ACTIVITIES_LOG_FILE"):
        config.build(config.Trace(bad))


@pytest.mark.parametrize("good", ["", "Kernel:a", " Kernel : a , b ; API:c;", ";;Marker:x"])
def test_filters_that_are_taken_whole(good: str) -> None:
    assert filter_faults(good) == []


@pytest.mark.parametrize(
    ("rules", "parts"),
    [
        ("Kernel:a;Nothing", ["'Nothing' is skipped: it is not Kind:name,name"]),
        ("Kernel:a;API:b:c", ["'API:b:c' is skipped"]),
        ("Kernel:a;Foo:b", ["there is no kind 'Foo'"]),
        ("Kernel:a;kernel:b", ["there is no kind 'kernel'"]),
        ("Kernel:a;API: ,", ["'API: ,' is skipped: it names nothing"]),
        ("Foo:b;Bar", ["there is no kind 'Foo'", "'Bar' is skipped", "no filter entry is left"]),
    ],
)
def test_what_a_filter_loses_is_said(rules: str, parts: list[str]) -> None:
    faults = filter_faults(rules)
    assert len(faults) == len(parts) and all(part in fault for part, fault in zip(parts, faults, strict=True))
