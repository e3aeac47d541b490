"""The `npuscope` command. Each verb lives in a file of its own and is imported when it is asked for."""

from __future__ import annotations

import importlib
import sys

import click

from npuscope import __version__
from npuscope.cli.output import complain
from npuscope.errors import UserError

VERBS = {
    "check": "npuscope.cli.check",
    "run": "npuscope.cli.run",
    "record": "npuscope.cli.record",
    "profile": "npuscope.cli.profile",
    "monitor": "npuscope.cli.monitor",
    "cluster": "npuscope.cli.cluster",
}


class Verbs(click.Group):
    """Commands by name, imported on demand so that one verb does not pay for another's imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which help shows them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, None for an unknown word."""
        module = VERBS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = importlib.import_module(module).command
        return command


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="npuscope")
def cli() -> None:
    """See, check, time and step through work on Ascend NPUs, without a card.

    Exit codes: 0 clean, 1 findings, 2 usage error or unsupported, else the script's own.
    """


def main() -> None:
    """Entry point: errors that a person can mend are one line and an exit code."""
    try:
        code = cli.main(standalone_mode=False, prog_name="npuscope")
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        complain(f"npuscope: {error.format_message()}")
        code = error.exit_code
    except UserError as error:
        complain(f"npuscope: {error}")
        code = error.exit_code
    sys.stdout.flush()
    sys.exit(code or 0)
