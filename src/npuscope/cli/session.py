"""What every verb that runs a script needs: a session whose launches are simulated, and the script's run inside it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import click

from npuscope.cli.parts import PartType
from npuscope.cli.script import run_script
from npuscope.frontends import install_all
from npuscope.frontends.launch import Part, Session
from npuscope.frontends.uninitialised import Poison
from npuscope.npu.chip import load_chip
from npuscope.trace.recorder import Consumer, Recorder


def script_options(command: Callable[..., int]) -> Callable[..., int]:
    """The options and arguments that `check`, `run` and `record` share."""
    for decorate in (
        click.argument("arguments", nargs=-1, type=click.UNPROCESSED),
        click.argument("script"),
        click.option("-m", "as_module", is_flag=True, help="SCRIPT is a module name, as with python -m."),
        click.option(
            "--programs", multiple=True, type=PartType(), metavar="FIRST:LAST",
            help="Run only these programs of each Triton launch, a slice of their numbers (repeatable; -8: the last).",
        ),
        click.option(
            "--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS",
            help="Stop when one Triton launch takes longer, say where its programs stand, and exit with 124.",
        ),
        click.option("--chip", help="Simulate this chip (default: the one that the script names, else Ascend910B1)."),
    ):
        command = decorate(command)
    return command


def run_in_session(
    consumers: Sequence[Consumer], chip: str | None, script: str, arguments: Sequence[str], as_module: bool,
    programs: tuple[Part, ...] = (), timeout: float | None = None, recorder: Recorder | None = None,
) -> tuple[int, Session]:
    """Run the script with every front end hooked; returns its exit code and the session. `recorder` takes the place of
    one that hands everything to the consumers.

    Raises UserError for a missing script, an unknown chip or something unsupported in a kernel.
    """
    session = Session(
        recorder or Recorder(consumers=list(consumers)),
        load_chip(chip) if chip else None,
        print_line=print,
        notice=lambda line: print(f"npuscope: {line}", file=sys.stderr),
        poison=Poison() if consumers else None, programs=programs, timeout=timeout,
    )
    install_all(session)
    try:
        with session.poison or nullcontext():
            code = run_script(script, arguments, as_module)
    finally:
        session.recorder.finish()
    sys.stdout.flush()
    return code, session
