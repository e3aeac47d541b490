"""`npuscope monitor`: the daemon that lets running training jobs be traced."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import click

from npuscope.cli.certificates import daemon_certificates
from npuscope.cli.lines import read_lines
from npuscope.cli.monitor_parse import parse
from npuscope.cli.monitor_run import run as run_job
from npuscope.errors import UserError
from npuscope.monitor.certificates.folder import NO_CERTS
from npuscope.monitor.daemon.addresses import KINDS
from npuscope.monitor.daemon.rpc_server import EVERYWHERE, LOOPBACK
from npuscope.monitor.daemon.service import Service, Settings
from npuscope.monitor.metrics.settings import INTERVAL_SECONDS, MetricsSettings
from npuscope.monitor.page.settings import LOOPBACK as PAGE_HOST
from npuscope.monitor.page.settings import PORT as PAGE_PORT
from npuscope.monitor.page.settings import PageSettings, read_nodes
from npuscope.monitor.protocol.rpc import PORT

SWITCH_SECONDS = 0.0005
SHORTEST_INTERVAL, LONGEST_INTERVAL = 0.1, 86400
PORTS = click.IntRange(0, 65535)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.group("monitor")
def command() -> None:
    """Trace and watch training jobs that already run.

    The daemon runs on each node; `dyno` asks it. `run` starts a job with an agent that obeys `dyno npu-monitor` and
    `dyno nputrace`.
    """


command.add_command(parse)
command.add_command(run_job)


@command.command("daemon")
@click.option("--port", type=PORTS, metavar="PORT", default=PORT, show_default=True, help="For dyno; 0: a free one.")
@click.option(
    "--bind", "hosts", multiple=True, metavar="ADDRESS", help="For dyno, repeatable. Default: loopback; with TLS, all."
)
@click.option(
    "--trace-dir",
    "folders",
    multiple=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder below which traces may be written, repeatable. Default: /tmp and the user's home.",
)
@click.option(
    "--ipc",
    "kinds",
    multiple=True,
    type=click.Choice(KINDS),
    help="Sockets for jobs, repeatable: stock PyTorch's, that in the folder KINETO_IPC_SOCKET_DIR, those of the "
    "vendor's plug-in in this user's home. Default: all.",
)
@click.option("--log-file", type=FILE, help="Append the log here. Default: standard error.")
@click.option(
    "--certs-dir", default=NO_CERTS, metavar="DIRECTORY", help="With server.crt, server.key, ca.crt: TLS only."
)
@click.option("--http", type=PORTS, metavar="PORT", help=f"Of the live page; 0: a free one. Default: {PAGE_PORT}.")
@click.option("--http-bind", metavar="ADDRESS", default=PAGE_HOST, show_default=True, help="Where the page listens.")
@click.option("--no-http", is_flag=True, help="No live page.")
@click.option("--node", "nodes", multiple=True, metavar="HOST[:PORT]", help="Daemon that the page shows, repeatable.")
@click.option(
    "--nodes", "node_file", type=click.Path(path_type=Path), metavar="FILE", help="List of such daemons, one a line."
)
@click.option(
    "--interval",
    type=click.FloatRange(0, LONGEST_INTERVAL),
    default=INTERVAL_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How often the host and the registered processes are measured; 0: never.",
)
@click.option("--metrics-log", type=FILE, help="Append measurements here, as JSON lines.")
@click.option(
    "--tensorboard",
    type=click.Path(path_type=Path),
    metavar="DIRECTORY",
    help="Write what the vendor's plug-in reports here, for TensorBoard.",
)
def daemon(
    port: int,
    hosts: tuple[str, ...],
    folders: tuple[Path, ...],
    kinds: tuple[str, ...],
    log_file: Path | None,
    certs_dir: str,
    http: int | None,
    http_bind: str,
    no_http: bool,
    nodes: tuple[str, ...],
    node_file: Path | None,
    interval: float,
    metrics_log: Path | None,
    tensorboard: Path | None,
) -> None:
    """Run the daemon, until SIGTERM or Ctrl-C.

    PyTorch processes started with KINETO_USE_DAEMON=1 register by themselves; `dyno gputrace` has them traced. Exit
    code 2, after one line, when the daemon cannot start.
    """
    roots = tuple(str(require_writable(folder)) for folder in folders)
    certificates = daemon_certificates(certs_dir)
    hosts = hosts or (EVERYWHERE if certificates else LOOPBACK)
    if 0 < interval < SHORTEST_INTERVAL:
        raise UserError(f"--interval is 0 or at least {SHORTEST_INTERVAL:g} seconds")
    metrics = MetricsSettings(interval, metrics_log, tensorboard=tensorboard)
    page = page_settings(http, http_bind, no_http, nodes, node_file)
    settings = Settings(port, hosts, kinds or KINDS, roots, certificates, page=page, metrics=metrics)
    run(settings, log_file)


def page_settings(
    port: int | None, host: str, without: bool, nodes: tuple[str, ...], node_file: Path | None
) -> PageSettings | None:
    """How the live page is to be served; None for no page. Raises UserError for words that contradict each other."""
    if without:
        if port is not None or nodes or node_file:
            raise UserError("--no-http leaves no page for --http, --node or --nodes")
        return None
    lines = list(nodes)
    if node_file:
        lines += read_lines(node_file, "the list of nodes")
    insisted = port is not None or host != PAGE_HOST or bool(lines)
    return PageSettings(PAGE_PORT if port is None else port, host, insisted, read_nodes(lines))


def run(settings: Settings, log_file: Path | None) -> None:
    """Serve until a signal comes. Raises UserError when the daemon cannot start."""
    # Whoever polls must not wait for a slower thread of ours to give the interpreter up.
    sys.setswitchinterval(SWITCH_SECONDS)
    stream: TextIO = sys.stderr
    if log_file:
        try:
            stream = log_file.open("a", buffering=1, encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write the log {log_file}: {error.strerror}") from None
    Service(settings, logger(stream)).run()


def logger(stream: TextIO) -> Callable[[str], None]:
    """Writes lines with the time before them; what cannot be written is dropped, and the daemon goes on."""

    def log(line: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            print(time.strftime("%Y-%m-%dT%H:%M:%S"), line, file=stream, flush=True)

    return log


def require_writable(folder: Path) -> Path:
    """The folder as an absolute path. Raises UserError unless files can be made in it."""
    if not folder.is_dir():
        raise UserError(f"the trace folder {folder} does not exist")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"the trace folder {folder} is not writable")
    return folder.resolve()
