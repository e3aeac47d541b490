"""The root of `dyno`: which daemon, then what of it."""

from __future__ import annotations

import sys

import click

from npuscope import __version__
from npuscope.cli.dyno import values
from npuscope.cli.dyno.gputrace import gputrace
from npuscope.cli.dyno.metrics import metrics
from npuscope.cli.dyno.npu_monitor import npu_monitor
from npuscope.cli.dyno.nputrace import nputrace
from npuscope.cli.dyno.server import Server
from npuscope.cli.dyno.simple import dcgm_pause, dcgm_resume, status, version
from npuscope.cli.dyno.usage import Group, Usage
from npuscope.cli.output import complain, discard
from npuscope.errors import EXIT_USAGE, UserError
from npuscope.monitor.certificates.folder import NO_CERTS
from npuscope.monitor.protocol import rpc

INTERRUPTED, PIPE_CLOSED = 130, 141


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    invoke_without_command=True,  # so that its absence can be worded here
)
@click.option("--hostname", type=values.TEXT, default="localhost", show_default=True, help="Host of the daemon.")
@click.option("--port", type=values.PORT, default=rpc.PORT, show_default=True, help="Port of the daemon.")
@click.option(
    "--certs-dir", type=values.TEXT, default=NO_CERTS, show_default=True,
    help="Folder with client.crt, client.key and ca.crt: speak TLS.",
)  # fmt: skip
@click.version_option(__version__, "--version", "-V", prog_name="dyno", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context, hostname: str, port: int, certs_dir: str) -> None:
    """Ask monitor daemons what runs, and have running processes traced.

    The options below go before the command.

    Exit codes: 0 done; 1 refused, or nothing traced although that was demanded, or one of several hosts failed;
    2 usage error; 101 no daemon.
    """
    if context.invoked_subcommand is None:
        raise Usage("'dyno' requires a subcommand but one was not provided")
    context.obj = Server(hostname, port, certs_dir)


for one in (status, version, gputrace, nputrace, npu_monitor, metrics, dcgm_pause, dcgm_resume):
    cli.add_command(one)


@cli.command("help")
@click.argument("subcommand", required=False)
@click.pass_context
def show_help(context: click.Context, subcommand: str | None) -> None:
    """Show this help, or that of a sub-command."""
    root = context.find_root()
    if subcommand is None:
        print(root.get_help())
        return
    command = cli.get_command(root, subcommand)
    if command is None:
        raise Usage(f"unrecognized subcommand '{subcommand}'")
    print(command.get_help(click.Context(command, root, subcommand)))


def main() -> None:
    """Entry point: errors that a person can mend are a line and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # what cannot be written is spelled
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has seen enough
        discard(1)
        code = PIPE_CLOSED
    sys.exit(code)


def _run() -> int:
    try:
        return cli.main(standalone_mode=False, prog_name="dyno") or 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        complain(error.format_message())
        return EXIT_USAGE
    except click.ClickException as error:
        complain(f"error: {error.format_message()}")
        return EXIT_USAGE
    except UserError as error:
        complain(f"dyno: {error}")
        return error.exit_code
