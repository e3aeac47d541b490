"""Commands that ask one short question: `status`, `version`, `dcgm-pause`, `dcgm-resume`."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import click

from npuscope.cli.dyno import values
from npuscope.cli.dyno.carry_out import carry_out
from npuscope.cli.dyno.errand import Errand, Reply, Verdict
from npuscope.cli.dyno.options import call_options
from npuscope.cli.dyno.server import Call
from npuscope.cli.dyno.status_table import show_status
from npuscope.cli.dyno.usage import Command
from npuscope.cli.dyno.voice import Voice
from npuscope.monitor.protocol import rpc


class Status(Errand):
    """What the daemon knows."""

    def request(self, host: str | None) -> str:
        """The question."""
        return rpc.simple_request("getStatus")

    def show(self, answer: str, reply: Reply, voice: Voice) -> None:
        """A table on a terminal, where the daemon tells enough; else the lines of the stock command."""
        if sys.stdout.isatty() and isinstance(reply.get("processes"), list) and not voice.as_json:
            show_status(reply)
        else:
            super().show(answer, reply, voice)

    def verdict(self, reply: Reply) -> Verdict:
        """How many processes it knows, where it says so."""
        processes = reply.get("processes")
        if not isinstance(processes, list):
            return Verdict(True, "answers")
        busy = sum(one.get("state") != "idle" for one in processes if isinstance(one, dict))
        return Verdict(True, f"{len(processes)} processes, {busy} of them busy")


class Version(Errand):
    """The daemon's version."""

    def request(self, host: str | None) -> str:
        """The question."""
        return rpc.simple_request("getVersion")

    def verdict(self, reply: Reply) -> Verdict:
        """The version."""
        return Verdict(True, str(reply.get("version", "answers")))


@dataclass(frozen=True)
class GpuMonitor(Errand):
    """Stop the daemon's GPU monitor for a while, or go on with it."""

    function: str
    duration_s: int | None = None

    def request(self, host: str | None) -> str:
        """The question."""
        if self.duration_s is None:
            return rpc.simple_request(self.function)
        return rpc.compact({"fn": self.function, "duration_s": self.duration_s})

    def verdict(self, reply: Reply) -> Verdict:
        """Whether there is one that obeys."""
        if reply.get("status") is True:
            return Verdict(True, "obeyed")
        return Verdict(False, "not done", "this daemon has no GPU monitor")


@click.command(cls=Command)
@call_options
def status(call: Call) -> int:
    """Show who is registered and what each process is doing.

    A table on a terminal; on a pipe the lines of the stock command, whose `response =` is JSON.
    """
    return carry_out(Status(), call)


@click.command(cls=Command)
@call_options
def version(call: Call) -> int:
    """Show the daemon's version."""
    return carry_out(Version(), call)


@click.command("dcgm-pause", cls=Command)
@click.option("--duration-s", type=values.SIGNED_32, default=300, show_default=True, help="For how long.")
@call_options
def dcgm_pause(call: Call, duration_s: int) -> int:
    """Pause the daemon's GPU monitor; exit 1 where it has none."""
    return carry_out(GpuMonitor("dcgmProfPause", duration_s), call)


@click.command("dcgm-resume", cls=Command)
@call_options
def dcgm_resume(call: Call) -> int:
    """Resume the daemon's GPU monitor; exit 1 where it has none."""
    return carry_out(GpuMonitor("dcgmProfResume"), call)
