"""The `dyno` command: ask a daemon what runs, and have running processes traced."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from npuscope import __version__
from npuscope.cli.certificates import client_certificates
from npuscope.cli.dyno_wait import Awaited, wait_for
from npuscope.cli.output import complain
from npuscope.errors import UserError
from npuscope.monitor.certificates.folder import NO_CERTS
from npuscope.monitor.client import EXIT_NO_SERVER, ask
from npuscope.monitor.protocol import config, rpc

LARGEST_U32, LARGEST_I63 = 2**32 - 1, 2**63 - 1
FAILED = 1
NOBODY = "No processes were matched, please check --job-id or --pids flags"


@dataclass(frozen=True)
class Server:
    """The daemon that is asked."""

    host: str
    port: int
    certs_dir: str = NO_CERTS

    def ask(self, request: str, *, quiet: bool = False) -> str:
        """Its reply."""
        certificates = client_certificates(self.certs_dir, quiet=quiet)
        return ask(self.host, self.port, request, certificates=certificates)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--hostname", default="localhost", show_default=True, help="Host of the daemon.")
@click.option("--port", type=click.IntRange(1, 65535), default=rpc.PORT, show_default=True, help="Port of the daemon.")
@click.option("--certs-dir", default=NO_CERTS, help="Folder with client.crt, client.key, ca.crt: ask over TLS.")
@click.version_option(__version__, "--version", prog_name="dyno")
@click.pass_context
def cli(context: click.Context, hostname: str, port: int, certs_dir: str) -> None:
    """Ask a monitor daemon what runs, and have running processes traced.

    Exit codes: 0 done, 1 nothing traced although that was demanded or the request was refused, 2 usage error, 101 no
    daemon, or either side does not accept the other's certificate.
    """
    context.obj = Server(hostname, port, certs_dir)


@cli.command()
@click.pass_obj
def status(server: Server) -> None:
    """Show what the daemon knows."""
    show(server.ask(rpc.simple_request("getStatus")))


@cli.command()
@click.pass_obj
def version(server: Server) -> None:
    """Show the daemon's version."""
    show(server.ask(rpc.simple_request("getVersion")))


def read_pids(context: click.Context, parameter: click.Parameter, text: str) -> list[int]:
    """The numbers in a comma list."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 11 for word in words):
        raise click.BadParameter("a comma-separated list of process numbers is expected")
    return [int(word) for word in words]


@cli.command()
@click.option("--job-id", type=click.IntRange(0, LARGEST_I63), default=0, help="SLURM_JOB_ID of the processes.")
@click.option("--pids", callback=read_pids, default="0", help="Processes, by comma; children count. 0: all of the job.")
@click.option("--duration-ms", type=click.IntRange(0, config.LARGEST_INT), default=500, show_default=True)
@click.option("--iterations", type=click.IntRange(-1, config.LARGEST_INT), default=-1, help="Steps, not a duration.")
@click.option("--log-file", required=True, help="Trace file; each process puts its number before .json.")
@click.option("--profile-start-time", type=click.IntRange(0, LARGEST_I63), default=0, help="Unix time in ms.")
@click.option("--profile-start-iteration-roundup", type=click.IntRange(0, config.LARGEST_INT), default=1)
@click.option("--process-limit", type=click.IntRange(0, LARGEST_U32), default=3, show_default=True)
@click.option("--record-shapes", is_flag=True)
@click.option("--profile-memory", is_flag=True, help="A memory snapshot in place of the trace.")
@click.option("--with-stacks", is_flag=True)
@click.option("--with-flops", is_flag=True)
@click.option("--with-modules", is_flag=True)
@click.option("--fail-on-no-process", is_flag=True, help="Exit 1 when no process matched.")
@click.option("--wait", type=click.FloatRange(min=0), metavar="SECONDS", help="Wait for the trace files (same host).")
@click.option("--json", "as_json", is_flag=True, help="Print the reply only.")
@click.pass_obj
def gputrace(
    server: Server,
    job_id: int,
    pids: list[int],
    log_file: str,
    profile_start_time: int,
    profile_start_iteration_roundup: int,
    process_limit: int,
    fail_on_no_process: bool,
    wait: float | None,
    as_json: bool,
    duration_ms: int,
    iterations: int,
    **options: bool,
) -> int:
    """Trace PyTorch processes that run with KINETO_USE_DAEMON=1."""
    trace = config.Trace(
        log_file, duration_ms, iterations, profile_start_time, profile_start_iteration_roundup, **options
    )
    if trace.profile_memory and trace.iterations > 0:
        raise UserError(
            "Please only use -profile-memory with duration mode, i.e. set --duration-ms", exit_code=EXIT_NO_SERVER
        )
    text = config.build(trace)
    began = time.time()
    answer = server.ask(rpc.trace_request(text, job_id, pids, process_limit), quiet=as_json)
    reply = understood(answer)
    if as_json:
        print(answer)
    else:
        print(f"Kineto config = \n{text}")
        show(answer)
        print()
        tell(reply, log_file, memory=trace.profile_memory)
    return outcome(reply, fail_on_no_process, wait, began)


def understood(answer: str) -> dict[str, Any]:
    """The reply to a trace request. Raises UserError when the daemon could not make sense of the request."""
    reply: dict[str, Any] = json.loads(answer)
    if not isinstance(reply.get("processesMatched"), list):
        raise UserError(f"the daemon refused: {reply.get('status', answer)}", exit_code=FAILED)
    return reply


def show(answer: str) -> None:
    """A reply, as the stock command shows it."""
    print(f"response length = {len(answer.encode())}")
    print(f"response = {answer}")


def tell(reply: Mapping[str, Any], log_file: str, *, memory: bool) -> None:
    """Which processes matched and where their traces will be."""
    matched = reply["processesMatched"]
    if not matched:
        print(NOBODY)
        return
    print(f"Matched {len(matched)} processes")
    print("Trace output files will be written to:")
    for pid in matched:
        print(f"    {log_file.replace('.json', f'_{pid}.json')}")
        if memory:
            print(f"      Or /tmp/memory_snapshot_{pid}.pickle")
    for line in notes(reply.get("processes", [])):
        print(line)


def notes(processes: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the stock command does not say: who is traced and who is left out."""
    words = {"triggered": "is traced", "busy": "is busy, not traced", "skipped": "is over --process-limit, not traced"}
    lines = []
    for process in processes:
        rank = f" rank {process['rank']}" if "rank" in process else ""
        what = words.get(process["outcome"], process["outcome"])
        lines.append(f"  process {process['pid']}{rank} {what}: {process['command']}")
    return lines


def outcome(reply: Mapping[str, Any], fail_on_no_process: bool, wait: float | None, began: float) -> int:
    """The exit code, after the reason why nothing is traced, or after waiting for what is."""
    if reason := reply.get("reason"):
        complain(f"dyno: {reason}")
    if reply.get("refused"):
        return FAILED
    if not reply["processesMatched"]:
        return FAILED if fail_on_no_process or wait is not None else 0
    if wait is None:
        return 0
    awaited = [
        Awaited(process["traceFile"], process["pid"])
        for process in reply.get("processes", [])
        if process["outcome"] == "triggered"
    ]
    missing = wait_for(awaited, wait, began, lambda line: print(line, file=sys.stderr, flush=True))
    for one in missing:
        complain(f"dyno: no trace of process {one.pid} after {wait:g} s: {one.path}")
    return FAILED if missing or not awaited else 0


def main() -> None:
    """Entry point: errors that a person can mend are one line and an exit code."""
    try:
        code = cli.main(standalone_mode=False, prog_name="dyno")
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        complain(f"error: {error.format_message()}")
        code = error.exit_code
    except UserError as error:
        complain(f"dyno: {error}")
        code = error.exit_code
    sys.stdout.flush()
    sys.exit(code or 0)


if __name__ == "__main__":
    main()
