"""What a configuration asks for, and the answer to each option that means nothing here."""

from __future__ import annotations

import pytest

from npuscope.monitor.agent.trace.request import NEXT_STEP, Refused, read_request
from npuscope.monitor.protocol.config import loosely_read
from npuscope.monitor.protocol.nputrace import NpuTrace, Span, Steps, build


def notes(**more: str) -> list[str]:
    return read_request({"PROFILE_START_STEP": "-1"} | more)[1]


def test_the_defaults_of_the_command_line_leave_nothing_to_say() -> None:
    request, said = read_request(loosely_read(build(NpuTrace("/d", Steps(7, 3)))))
    assert said == []
    assert (request.folder, request.start_step, request.steps, request.warmup) == ("/d", 7, 3, 0)
    assert request.cpu and request.device and not request.analyse and request.export == "text"


def test_every_option_of_the_command_line_arrives() -> None:
    asked = NpuTrace(
        "/d", Span(250, 1_700_000_000_000), record_shapes=True, profile_memory=True, with_stack=True, with_flops=True,
        with_modules=True, activities="CPU", analyse=True, async_mode=True, msprof_tx=True, gc_detect_threshold=1.5,
        export_type="Db", host_sys="cpu,mem", mstx_domain_include="a,b",
    )  # fmt: skip
    request, said = read_request(loosely_read(build(asked)))
    assert said == []
    assert (request.start_step, request.duration_ms, request.start_ms) == (None, 250, 1_700_000_000_000)
    assert request.shapes and request.memory and request.stack and request.flops and request.modules
    assert request.cpu and not request.device and request.analyse and request.asynchronous and request.marks
    assert (request.collections_ms, request.export, request.host) == (1.5, "db", {"cpu", "mem"})
    assert (request.include, request.exclude) == (("a", "b"), ())


@pytest.mark.parametrize(
    ("key", "value", "flag"),
    [
        ("PROFILE_L2_CACHE", "true", "--l2-cache"),
        ("PROFILE_OP_ATTR", "true", "--op-attr"),
        ("PROFILE_SYS_IO", "true", "--sys-io"),
        ("PROFILE_SYS_INTERCONNECTION", "true", "--sys-interconnection"),
        ("PROFILE_PROFILER_LEVEL", "Level1", "--profiler-level Level1"),
        ("PROFILE_PROFILER_LEVEL", "Level_none", "--profiler-level Level_none"),
        ("PROFILE_AIC_METRICS", "PipeUtilization", "--aic-metrics PipeUtilization"),
        ("PROFILE_DATA_SIMPLIFICATION", "false", "--data-simplification"),
        ("PROFILE_HOST_SYS", "disk", "--host-sys disk"),
        ("PROFILE_HOST_SYS", "osrt,cpu", "--host-sys osrt"),
        ("PROFILE_MSTX_DOMAIN_INCLUDE", "x", "--mstx-domain-include"),
        ("PROFILE_WITH_STACK", "maybe", "PROFILE_WITH_STACK"),
        ("PROFILE_GC_DETECT_THRESHOLD", "often", "--gc-detect-threshold"),
        ("PROFILE_EXPORT_TYPE", "Excel", "--export-type"),
        ("PROFILE_ACTIVITIES", "CPU,TPU", "--activities"),
        ("ACTIVITIES_ITERATIONS", "some", "ACTIVITIES_ITERATIONS"),
        ("PROFILE_NEW_IDEA", "1", "PROFILE_NEW_IDEA"),
        ("PROFILE_ASYNC_MODE", "true", "--async-mode"),
    ],
)
def test_an_option_without_effect_is_answered_in_one_line(key: str, value: str, flag: str) -> None:
    said = notes(**{key: value})
    assert len(said) == 1 and flag in said[0] and "\n" not in said[0]


def test_the_next_step_and_steps_that_are_none() -> None:
    assert read_request({"PROFILE_START_STEP": "-1", "ACTIVITIES_ITERATIONS": "0"})[0].steps == 1
    assert read_request({"PROFILE_START_STEP": "-1"})[0].start_step == NEXT_STEP
    for pairs in ({"PROFILE_START_STEP": "0"}, {}):
        with pytest.raises(Refused, match="step 0 has passed"):
            read_request(pairs)


@pytest.mark.parametrize("milliseconds", ["0", "-5", "99999999999"])
def test_a_length_that_is_none(milliseconds: str) -> None:
    with pytest.raises(Refused, match="between 1 and"):
        read_request({"ACTIVITIES_DURATION_MSECS": milliseconds})


def test_a_list_of_ranks_keeps_the_data_raw_unless_it_is_parsed_beside() -> None:
    listed = {"PROFILE_START_STEP": "-1", "PROFILE_IS_RANK": "true", "PROFILE_RANK_LIST": "1,-4,3"}
    request, said = read_request(listed | {"PROFILE_ANALYSE": "true"})
    assert request.ranks == {1, 3} and not request.analyse and "--rank-list" in said[0]
    request, said = read_request(listed | {"PROFILE_ANALYSE": "true", "PROFILE_ASYNC_MODE": "true"})
    assert request.analyse and request.asynchronous and said == []
