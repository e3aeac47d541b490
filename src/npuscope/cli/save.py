"""Keeping the trace of a run: `npuscope record`, and `--save` of the commands that check."""

from __future__ import annotations

from pathlib import Path

from npuscope.cli.collect import Collected, from_batches
from npuscope.cli.output import is_special, write_atomically
from npuscope.cli.plan import Plan
from npuscope.cli.spooled_trace import write_trace
from npuscope.errors import UserError
from npuscope.trace.file import TraceWriter, read_batches


def save_trace(folder: Path, path: Path) -> None:
    """Write the trace of a run. Raises UserError when that cannot be done; then there is no file."""
    target = folder / "whole" if is_special(path) else path
    try:
        with TraceWriter(target) as writer:
            write_trace(folder, writer)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    if target != path:
        write_atomically(path, target.read_bytes())


def saved(folder: Path, path: Path, plan: Plan, live: Collected) -> Collected:
    """Write the trace of a checked run, and give what is to be reported of the run.

    Where several processes launched kernels, the file is checked as a later replay will check it, so that both say the
    same.
    """
    save_trace(folder, path)
    if len(list(folder.glob("*.trace"))) < 2:
        return live
    replayed = from_batches(read_batches(path), plan)
    return Collected(
        replayed.outcomes, replayed.records, tuple(dict.fromkeys((*replayed.partial, *live.partial))), live.trouble
    )
