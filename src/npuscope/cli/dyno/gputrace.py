"""`dyno gputrace`: trace PyTorch processes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import click

from npuscope.cli.dyno import values
from npuscope.cli.dyno.carry_out import carry_out
from npuscope.cli.dyno.errand import FAILED, Errand, Reply, Verdict, show
from npuscope.cli.dyno.matched import judge, tell_matched
from npuscope.cli.dyno.options import Asked, call_options, common_start, host_name, start_delay, wait_option
from npuscope.cli.dyno.server import Call
from npuscope.cli.dyno.usage import Command, require
from npuscope.cli.dyno.voice import Voice
from npuscope.cli.dyno.wait import FileWaiter
from npuscope.errors import UserError
from npuscope.monitor.client import EXIT_NO_SERVER
from npuscope.monitor.protocol import config, rpc


@dataclass(frozen=True)
class GpuTrace(Errand):
    """A request to trace."""

    trace: config.Trace
    asked: Asked
    match: bool
    """Whether no match is a failure."""
    traced: bool
    """Whether a match without a trace is one, too."""

    def prepare(self, voice: Voice) -> None:
        """Refuse what the process would refuse without a word, or abort at."""
        if self.trace.profile_memory and self.trace.iterations > 0:
            raise UserError(
                "Please only use -profile-memory with duration mode, i.e. set --duration-ms", exit_code=EXIT_NO_SERVER
            )
        try:
            config.validate(config.read(self._text(None)), time.time())
        except config.BadConfig as error:
            raise UserError(str(error), exit_code=FAILED) from None

    def check(self, voice: Voice) -> None:
        """Show the configuration."""
        voice.tell(f"Kineto config = \n{self._text(None)}")

    def request(self, host: str | None) -> str:
        """The request, laid out as the stock command does it."""
        return rpc.trace_request(self._text(host), self.asked.job_id, self.asked.pids, self.asked.process_limit)

    def show(self, answer: str, reply: Reply, voice: Voice) -> None:
        """The reply, then who is traced."""
        show(answer, voice)
        voice.tell()
        if not reply.get("refused"):
            tell_matched(reply, self.trace.log_file, voice, memory=self.trace.profile_memory)

    def verdict(self, reply: Reply) -> Verdict:
        """Nothing traced is a failure only where it was demanded."""
        return judge(reply, match=self.match, trace=self.traced)

    def _text(self, host: str | None) -> str:
        return config.build(replace(self.trace, log_file=host_name(self.trace.log_file, host)))


@click.command(cls=Command, short_help="Trace PyTorch processes.")
@click.option("--job-id", type=values.UNSIGNED, default=0, show_default=True, help="SLURM_JOB_ID of the processes.")
@click.option("--pids", type=values.PIDS, default="0", help="Processes, by comma; children count. 0: all of the job.")
@click.option("--duration-ms", type=values.UNSIGNED, default=500, show_default=True, help="How long to trace.")
@click.option(
    "--iterations", type=values.SIGNED, default=-1, help="Trace so many optimizer steps, in place of a duration."
)
@click.option("--log-file", type=values.TEXT, help="Trace file (required); each process puts its number before .json.")
@click.option("--profile-start-time", type=values.UNSIGNED, default=0, help="Unix time in ms. 0: at once.")
@click.option(
    "--profile-start-iteration-roundup",
    type=values.UNSIGNED,
    default=1,
    help="Start at a step that is a multiple of it.",
)
@click.option(
    "--process-limit", type=values.UNSIGNED_32, default=3, show_default=True, help="Trace no more than so many."
)
@click.option("--record-shapes", is_flag=True, help="With the shapes of inputs.")
@click.option("--profile-memory", is_flag=True, help="A memory snapshot in place of the trace.")
@click.option("--with-stacks", is_flag=True, help="With Python stacks.")
@click.option("--with-flops", is_flag=True, help="With estimates of operations.")
@click.option("--with-modules", is_flag=True, help="With the modules' names.")
@click.option("--fail-on-no-process", is_flag=True, help="Exit 1 when no process matched.")
@start_delay
@wait_option
@call_options
@click.pass_context
def gputrace(
    context: click.Context,
    call: Call,
    job_id: int,
    pids: list[int],
    process_limit: int,
    fail_on_no_process: bool,
    wait: float | None,
    log_file: str,
    duration_ms: int,
    iterations: int,
    profile_start_time: int,
    profile_start_iteration_roundup: int,
    start_time_delay: float | None,
    **options: bool,
) -> int:
    """Trace PyTorch processes that run with KINETO_USE_DAEMON=1.

    The file is written by the process, on its own host and with its own rights. With --hosts or --hostfile, %h in
    --log-file stands for the host. Exit 0 also when nothing is traced, unless --wait or --fail-on-no-process is given.
    """
    require(context, "log_file")
    start = common_start(start_time_delay, profile_start_time, by_steps=iterations > 0)
    trace = config.Trace(log_file, duration_ms, iterations, start, profile_start_iteration_roundup, **options)
    errand = GpuTrace(trace, Asked(job_id, pids, process_limit), fail_on_no_process, wait is not None)
    waiter = FileWaiter(wait, trace) if wait is not None else None
    return carry_out(errand, call, waiter)
