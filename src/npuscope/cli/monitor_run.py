"""`npuscope monitor run`: a training job with an agent in each of its processes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points

import click

from npuscope.cli.script import ARGUMENTS, require_script, run_script
from npuscope.errors import UserError
from npuscope.monitor.agent.autostart import ON, OURS
from npuscope.monitor.agent.launchers import is_launcher
from npuscope.monitor.agent.starting import start

NO_ENTRY = (
    "npuscope: this Python does not offer npuscope's agent to PyTorch (install npuscope in it), so processes that the "
    "program starts have none"
)
SWITCHED_OFF = "npuscope: TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps processes that the program starts from having an agent"


@click.command("run", context_settings=ARGUMENTS)
@click.option("-m", "as_module", is_flag=True, help="TARGET is a module name, as with python -m.")
@click.option(
    "--simulate", is_flag=True, help="Run the script's kernels on the simulated device and collect them as its kernels."
)
@click.option("--chip", help="Simulate this chip (default: the one that the script names, else Ascend910B1).")
@click.argument("target")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(as_module: bool, simulate: bool, chip: str | None, target: str, arguments: tuple[str, ...]) -> int:
    """Run TARGET, a Python script, a module (-m) or a launcher such as torchrun, with npuscope's agent.

    Processes that it starts have an agent too, launchers excepted. Exits with the program's own code; 2 when there is
    no such program. With --simulate or --chip, this one process has a simulated device; times on it are modelled.
    """
    simulate = simulate or chip is not None
    os.environ[OURS] = ON
    if trouble := _children_trouble():
        print(trouble, file=sys.stderr)
    if not (as_module or simulate or os.path.isfile(target)) and (program := shutil.which(target)):
        _become(program, [target, *arguments])
    require_script(target, as_module)
    if simulate:
        from npuscope.cli import device_activity

        device_activity.simulate(chip)
    return _run_here(target, arguments, as_module)


def _run_here(target: str, arguments: Sequence[str], as_module: bool) -> int:
    words = [sys.executable, *(["-m"] if as_module else []), target]
    if is_launcher(words) and "RANK" not in os.environ:
        _become(sys.executable, [*words, *arguments])
    start()
    return run_script(target, arguments, as_module)


def _become(program: str, words: list[str]) -> None:
    """Go on as another program. Raises UserError when it cannot be run."""
    sys.stdout.flush()
    try:
        os.execv(program, words)
    except OSError as error:
        raise UserError(f"cannot run {program}: {error.strerror}") from None


def _children_trouble() -> str:
    """Why processes that the program starts will have no agent; "" when they will."""
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "0":
        return SWITCHED_OFF
    return "" if any(one.name == "npuscope" for one in entry_points(group="torch.backends")) else NO_ENTRY
