"""`dyno nputrace`: trace NPU processes through the vendor's plug-in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import click

from npuscope.cli.dyno import values
from npuscope.cli.dyno.carry_out import carry_out
from npuscope.cli.dyno.errand import FAILED, Reply, Verdict
from npuscope.cli.dyno.matched import judge, tell_matched
from npuscope.cli.dyno.options import Asked, call_options, common_start, host_name, start_delay, wait_option
from npuscope.cli.dyno.plugin import PluginErrand, require_folder, warn_of_stock
from npuscope.cli.dyno.server import Call
from npuscope.cli.dyno.step_wait import StepWaiter
from npuscope.cli.dyno.usage import Command, require
from npuscope.cli.dyno.voice import Voice
from npuscope.errors import UserError
from npuscope.monitor.protocol import rpc
from npuscope.monitor.protocol.config import BadConfig
from npuscope.monitor.protocol.nputrace import NpuTrace, Span, Steps, build

AIC_METRICS = (
    "AiCoreNone", "PipeUtilization", "ArithmeticUtilization", "Memory", "MemoryL0", "ResourceConflictRatio", "MemoryUB",
    "L2Cache", "MemoryAccess",
)  # fmt: skip


@dataclass(frozen=True)
class NpuTraceErrand(PluginErrand):
    """A request to trace."""

    call: Call
    trace: NpuTrace
    asked: Asked

    def check(self, voice: Voice) -> None:
        """What the vendor's command judges with the connection there; then show the configuration."""
        require_folder(self.trace.folder, voice)
        _judge("--mstx-domain-include", self.trace.mstx_domain_include, values.short)
        _judge("--mstx-domain-exclude", self.trace.mstx_domain_exclude, values.short)
        _judge("--rank-list", self.trace.rank_list, values.ranks)
        if self.trace.async_mode and not self.trace.analyse:
            voice.note("warning: --async-mode has no effect without --analyse")
        voice.tell(f"NpuTrace config = \n{self._text(None)}")

    def request(self, host: str | None) -> str:
        """The request, laid out as the vendor's command does it."""
        return rpc.trace_request(self._text(host), self.asked.job_id, self.asked.pids, self.asked.process_limit)

    def show(self, answer: str, reply: Reply, voice: Voice) -> None:
        """The reply, then who is traced."""
        voice.tell(f"response = {answer}")
        warn_of_stock(reply, voice)
        if "processesMatched" not in reply or reply.get("refused"):
            return
        if not isinstance(reply["processesMatched"], list):
            voice.tell("'processesMatched' is not an array")
            return
        tell_matched(reply, self.trace.folder, voice)

    def verdict(self, reply: Reply) -> Verdict:
        """A request that reaches no process has failed."""
        return judge(reply, match=True, trace=True)

    def _text(self, host: str | None) -> str:
        ranks = None if self.trace.rank_list is None else values.ranks(self.trace.rank_list)
        try:
            return build(replace(self.trace, folder=host_name(self.trace.folder, host), rank_list=ranks))
        except BadConfig as error:
            raise UserError(str(error), exit_code=FAILED) from None


def _judge(flag: str, value: str | None, read: Callable[[str], Any]) -> None:
    try:
        if value is not None:
            read(value)
    except ValueError as error:
        raise UserError(f"{flag} error: {error}", exit_code=FAILED) from None


@click.command(cls=Command, short_help="Trace NPU processes through the vendor's plug-in.")
@click.option("--job-id", type=values.UNSIGNED, default=0, show_default=True, help="Job of the processes.")
@click.option("--pids", type=values.PIDS, default="0", help="Processes, by comma; children count. 0: all of the job.")
@click.option("--duration-ms", type=values.UNSIGNED, help="Trace for so long, in place of steps.  [default: 500]")
@click.option("--iterations", type=values.Value(values.iterations, "integer"), help="Steps to trace (required).")
@click.option("--log-file", type=values.TEXT, help="Output folder (required).")
@click.option("--profile-start-time", type=values.UNSIGNED, default=0, help="Unix time in ms, for --duration-ms.")
@click.option(
    "--start-step", type=values.Value(values.start_step, "integer"), help="First step, -1 for the next one (required)."
)
@click.option(
    "--process-limit", type=values.UNSIGNED_32, default=3, show_default=True, help="Trace no more than so many."
)
@click.option("--record-shapes", is_flag=True, help="With the shapes of inputs.")
@click.option("--profile-memory", is_flag=True, help="With memory use.")
@click.option("--with-stack", is_flag=True, help="With Python stacks.")
@click.option("--with-flops", is_flag=True, help="With estimates of operations.")
@click.option("--with-modules", is_flag=True, help="With the modules' names.")
@click.option(
    "--activities",
    type=values.one_of("CPU,NPU", "NPU,CPU", "CPU", "NPU"),
    default="CPU,NPU",
    show_default=True,
    help="What to trace.",
)
@click.option(
    "--profiler-level",
    type=values.one_of("Level0", "Level1", "Level2", "Level_none"),
    default="Level0",
    show_default=True,
    help="How much.",
)
@click.option(
    "--aic-metrics",
    type=values.one_of(*AIC_METRICS),
    default="AiCoreNone",
    show_default=True,
    help="Counters of the cores.",
)
@click.option("--analyse", is_flag=True, help="Parse the data after it is collected.")
@click.option("--async-mode", is_flag=True, help="Parse it in another process.")
@click.option("--l2-cache", is_flag=True, help="With the L2 cache.")
@click.option("--op-attr", is_flag=True, help="With the operators' attributes.")
@click.option("--msprof-tx", is_flag=True, help="With the marks that the program sets.")
@click.option(
    "--gc-detect-threshold", type=values.Value(values.threshold, "ms"), help="Garbage collections longer than this."
)
@click.option(
    "--data-simplification",
    type=values.one_of("true", "false"),
    default="true",
    show_default=True,
    help="Drop what is not needed afterwards.",
)
@click.option(
    "--export-type", type=values.one_of("Text", "Db"), default="Text", show_default=True, help="Form of the output."
)
@click.option(
    "--host-sys",
    type=values.Value(values.host_systems),
    default="None",
    show_default=True,
    help="Of cpu,mem,disk,network,osrt.",
)
@click.option("--sys-io", is_flag=True, help="With network and RoCE traffic.")
@click.option("--sys-interconnection", is_flag=True, help="With HCCS and PCIe traffic.")
@click.option("--mstx-domain-include", type=values.TEXT, help="Only marks of these domains, by comma.")
@click.option("--mstx-domain-exclude", type=values.TEXT, help="No marks of these domains, by comma.")
@click.option("--rank-list", type=values.TEXT, help="Ranks to trace, by comma.")
@start_delay
@wait_option
@call_options
@click.pass_context
def nputrace(
    context: click.Context,
    call: Call,
    job_id: int,
    pids: list[int],
    process_limit: int,
    log_file: str,
    duration_ms: int | None,
    iterations: int | None,
    profile_start_time: int,
    start_step: int | None,
    start_time_delay: float | None,
    wait: float | None,
    **options: Any,
) -> int:
    """Trace processes that run with the vendor's plug-in and MSMONITOR_USE_DAEMON=1.

    Either --iterations and --start-step are given, or --duration-ms. With --hosts or --hostfile, %h in --log-file
    stands for the host. Exit 1 when no process is traced.
    """
    by_steps = duration_ms is None or iterations is not None or start_step is not None
    require(context, *(["iterations", "log_file", "start_step"] if by_steps else ["log_file"]))
    start = common_start(start_time_delay, profile_start_time, by_steps=by_steps)
    when = Steps(start_step or 0, iterations or 0) if by_steps else Span(duration_ms or 0, start)
    errand = NpuTraceErrand(call, NpuTrace(log_file, when, **options), Asked(job_id, pids, process_limit))
    return carry_out(errand, call, StepWaiter(wait, log_file) if wait is not None else None)
