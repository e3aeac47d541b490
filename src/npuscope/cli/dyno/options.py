"""Flags that several commands have."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from npuscope.cli.certificates import client_certificates
from npuscope.cli.dyno import values
from npuscope.cli.dyno.hosts import read_hosts
from npuscope.cli.dyno.server import Call, Server
from npuscope.cli.dyno.usage import Usage
from npuscope.monitor.fanout import PARALLEL, SECONDS, Limits

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Asked:
    """Which processes are meant."""

    job_id: int
    pids: Sequence[int]
    process_limit: int


def call_options(command: F) -> F:
    """Who is asked, and how the answer is shown; the command gets a Call."""

    @functools.wraps(command)
    def called(
        *args: Any,
        as_json: bool,
        hosts: str | None,
        hostfile: str | None,
        parallel: int,
        timeout: float,
        **rest: Any,
    ) -> Any:
        server: Server = click.get_current_context().find_root().obj
        found = read_hosts(hosts, hostfile, server.port)
        if timeout == 0 or parallel < 1:
            raise Usage("--timeout and --parallel are more than 0")
        certificates = client_certificates(server.certs_dir, quiet=as_json)
        reached = replace(server, seconds=timeout, certificates=certificates)
        call = Call(reached, found, Limits(parallel, timeout), as_json)
        return command(*args, call=call, **rest)

    for option in reversed(_CALL_OPTIONS):
        called = option(called)
    return called  # type: ignore[return-value]


_CALL_OPTIONS = (
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."),
    click.option("--hosts", type=values.TEXT, metavar="HOST[:PORT],...", help="Ask the daemons of all these hosts."),
    click.option("--hostfile", type=values.TEXT, metavar="FILE", help="The same, one a line; '-' is standard input."),
    click.option("--parallel", type=values.UNSIGNED_32, default=PARALLEL, show_default=True, help="Hosts at a time."),
    click.option(
        "--timeout", type=values.SECONDS, default=SECONDS, show_default=True, help="Seconds that one daemon may take."
    ),
)

wait_option = click.option(
    "--wait",
    type=values.SECONDS,
    metavar="SECONDS",
    help="Wait so long until the traces are written; exit 1 if one is not.",
)
start_delay = click.option(
    "--start-time-delay",
    type=values.SECONDS,
    metavar="SECONDS",
    help="Start so much later, on all hosts at the same time.",
)


def common_start(delay: float | None, start_ms: int, *, by_steps: bool) -> int:
    """The Unix time in ms at which all hosts start; 0 leaves it to each."""
    if delay is None:
        return start_ms
    if start_ms:
        raise Usage("the argument '--start-time-delay' cannot be used with '--profile-start-time'")
    if by_steps:
        raise Usage("the argument '--start-time-delay' cannot be used with '--iterations'")
    return int((time.time() + delay) * 1000)


def host_name(log_file: str, host: str | None) -> str:
    """The file for one host of a list."""
    return log_file if host is None else log_file.replace("%h", host)
