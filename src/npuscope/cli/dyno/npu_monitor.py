"""`dyno npu-monitor`: start, change or stop the monitor inside the vendor's plug-in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import click

from npuscope.cli.dyno import values
from npuscope.cli.dyno.carry_out import carry_out
from npuscope.cli.dyno.errand import FAILED, Reply, Verdict
from npuscope.cli.dyno.matched import judge
from npuscope.cli.dyno.options import call_options, host_name
from npuscope.cli.dyno.plugin import PluginErrand, require_folder, warn_of_stock
from npuscope.cli.dyno.server import Call
from npuscope.cli.dyno.usage import Command
from npuscope.cli.dyno.voice import Voice
from npuscope.errors import UserError
from npuscope.monitor.protocol import rpc
from npuscope.monitor.protocol.config import BadConfig
from npuscope.monitor.protocol.npu_monitor import KINDS, NpuMonitor, build, filter_faults

JOB, PIDS, LIMIT = 0, (0,), 3
"""Always these; no flag changes them."""


@dataclass(frozen=True)
class NpuMonitorErrand(PluginErrand):
    """A request to the monitor."""

    call: Call
    monitor: NpuMonitor

    def check(self, voice: Voice) -> None:
        """What the vendor's command judges with the connection there; then show the configuration."""
        if self.monitor.folder:
            require_folder(self.monitor.folder, voice)
        for fault in filter_faults(self.monitor.filter):
            voice.note(f"warning: {fault}")
        if not (self.monitor.start or self.monitor.stop):
            voice.note("warning: without --npu-monitor-start a monitor that runs is changed, and none is started")
        elif self.monitor.start and self.monitor.stop:
            voice.note("warning: --npu-monitor-stop wins over --npu-monitor-start")
        voice.tell(f"Npu monitor config = \n{self._text(None)}")

    def request(self, host: str | None) -> str:
        """The request, laid out as the vendor's command does it."""
        return rpc.trace_request(self._text(host), JOB, PIDS, LIMIT)

    def show(self, answer: str, reply: Reply, voice: Voice) -> None:
        """The reply."""
        voice.tell(f"response = {answer}")
        warn_of_stock(reply, voice)

    def verdict(self, reply: Reply) -> Verdict:
        """A request that reaches no process has failed."""
        return judge(reply, match=True, trace=True, verb="told")

    def _text(self, host: str | None) -> str:
        try:
            return build(replace(self.monitor, folder=host_name(self.monitor.folder, host)))
        except BadConfig as error:
            raise UserError(str(error), exit_code=FAILED) from None


@click.command("npu-monitor", cls=Command, short_help="Start, change or stop the plug-in's monitor.")
@click.option("--npu-monitor-start", "start", is_flag=True, help="Start the monitor.")
@click.option("--npu-monitor-stop", "stop", is_flag=True, help="Stop it.")
@click.option(
    "--report-interval-s",
    type=values.UNSIGNED_32,
    default=60,
    show_default=True,
    help="Seconds between reports; 0 leaves it as it is.",
)
@click.option(
    "--duration",
    "duration_s",
    type=values.Value(values.duration, "seconds"),
    default=0.0,
    help="Stop after so long; 0: only when told.",
)
@click.option(
    "--mspti-activity-kind",
    "kinds",
    type=values.Value(values.activity_kinds),
    default="Marker",
    help=f"Of {','.join(KINDS)}.  [default: Marker]",
)
@click.option("--log-file", "folder", type=values.TEXT, default="", help="Output folder; without it, metrics are sent.")
@click.option(
    "--export-type", type=values.one_of("DB", "Jsonl"), default="DB", show_default=True, help="Form of the output."
)
@click.option(
    "--json-rotate-log-lines",
    "rotate_lines",
    type=values.Value(values.rotate_lines),
    default="",
    help="Lines of a Jsonl file, 100 to 500000.",
)
@click.option(
    "--json-rotate-log-files",
    "rotate_files",
    type=values.Value(values.rotate_files),
    default="",
    help="Jsonl files to keep, -1 for all.",
)
@click.option(
    "--filter",
    type=values.Value(values.short),
    default="",
    help="Keep only what has such a name: Kind:name,name;Kind:name",
)
@call_options
def npu_monitor(
    call: Call,
    start: bool,
    stop: bool,
    report_interval_s: int,
    duration_s: float,
    kinds: str,
    folder: str,
    export_type: str,
    rotate_lines: str,
    rotate_files: str,
    filter: str,
) -> int:
    """Start, change or stop the monitor inside the vendor's plug-in.

    Exit 1 when no process is told.
    """
    monitor = NpuMonitor(
        start, stop, report_interval_s, duration_s, kinds, folder, export_type, rotate_lines, rotate_files, filter
    )
    return carry_out(NpuMonitorErrand(call, monitor), call)
