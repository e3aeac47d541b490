"""`npuscope monitor parse`: the deliverables of traces whose data is raw."""

from __future__ import annotations

from pathlib import Path

import click

from npuscope.errors import UserError
from npuscope.monitor.agent.trace import naming

FAILED = 1


@click.command("parse")
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--export-type",
    type=click.Choice(["Text", "Db"], case_sensitive=False),
    help="Form of the output. Default: what the request for the trace said.",
)
def parse(folders: tuple[Path, ...], export_type: str | None) -> None:
    """Parse the raw data of traces: each FOLDER is one of them (it ends in _ascend_pt), or holds some.

    The results appear in ASCEND_PROFILER_OUTPUT inside of each, in place of earlier ones. Exit code 1 when one of them
    cannot be parsed; the others are.
    """
    found = list(dict.fromkeys(trace for folder in folders for trace in traces_in(folder)))
    problems = [problem for trace in found if (problem := parse_one(trace, (export_type or "").lower()))]
    if problems:
        raise UserError("\n".join(problems), exit_code=FAILED)


def traces_in(folder: Path) -> list[Path]:
    """The traces that a folder is or holds. Raises UserError when there is none."""
    if (folder / naming.METADATA).exists():
        return [folder]
    found = sorted(path for path in folder.glob(f"*{naming.SUFFIX}") if (path / naming.METADATA).exists())
    if not found:
        raise UserError(f"{folder} is no trace and holds none (a trace's folder has a file {naming.METADATA})")
    return found


def parse_one(folder: Path, export: str) -> str:
    """Parse one; returns what went wrong, "" when nothing did."""
    # Not above: the daemon's command comes by here as well.
    import orjson

    from npuscope.monitor.agent.trace.parsing.deliver import deliver

    try:
        output = deliver(folder, export)
    except (OSError, ValueError) as error:
        return f"{folder}: {error}"
    click.echo(f"{output}: {', '.join(sorted(path.name for path in output.iterdir()))}")
    if partial := orjson.loads((folder / naming.METADATA).read_bytes()).get("partial"):
        click.echo(f"the trace is partial: {partial}")
    return ""
