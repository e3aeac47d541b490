"""Makes the deliverables of one folder: all of them appear at once, or none."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from npuscope.monitor.agent.trace import naming
from npuscope.monitor.agent.trace.parsing.communication import communication
from npuscope.monitor.agent.trace.parsing.communication_json import write_communication
from npuscope.monitor.agent.trace.parsing.database import write_database
from npuscope.monitor.agent.trace.parsing.events import read
from npuscope.monitor.agent.trace.parsing.model import Model
from npuscope.monitor.agent.trace.parsing.stacks import Stacks
from npuscope.monitor.agent.trace.parsing.step_times import step_times
from npuscope.monitor.agent.trace.parsing.tables import tables
from npuscope.monitor.agent.trace.parsing.timeline import write_timeline

LOG = "parser.log"


def deliver(folder: Path, export: str = "") -> Path:
    """Parse a folder of raw data; returns the folder of the deliverables. `export` is `text` or `db`, by default what
    the request said. Whatever is raised stands in the folder's log, too. Raises OSError, and ValueError for a folder
    that holds no trace."""
    log = _log(folder)
    began = time.monotonic()
    try:
        output = _deliver(folder, export, log)
    except Exception as error:
        log(f"not parsed: {error!r}")
        raise
    log(f"parsed in {time.monotonic() - began:.2f} s: {', '.join(sorted(path.name for path in output.iterdir()))}")
    return output


def _deliver(folder: Path, export: str, log: Callable[[str], None]) -> Path:
    metadata = _json(folder / naming.METADATA)
    if "pid" not in metadata:
        raise ValueError(f"{folder} holds no trace of npuscope")
    trace = read(folder / naming.EVENTS)
    model = Model(trace, metadata, _json(folder / naming.EXTRAS))
    if trace.unread:
        log(f"partial: {trace.unread} bytes of the raw data are no JSON and were left out")
    if metadata.get("partial"):
        log(f"partial: {metadata['partial']}")
    _remove_stale(folder)
    part = folder / f"{naming.OUTPUT}.{os.getpid()}{naming.PART}"
    part.mkdir(mode=naming.MODE)
    try:
        write = _write_db if (export or metadata.get("export_type")) == "db" else _write_text
        write(folder, part, model)
        for path in part.iterdir():
            path.chmod(naming.FILE_MODE)
        return _appear(part, folder / naming.OUTPUT)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _write_text(folder: Path, part: Path, model: Model) -> None:
    transfers = communication(model)
    for table in tables(model, transfers, step_times(model, transfers), Stacks(model)):
        table.write(part)
    if len(transfers):
        write_communication(part / "communication.json", model, transfers)
    write_timeline(folder / naming.EVENTS, part / "trace_view.json", model)


def _write_db(folder: Path, part: Path, model: Model) -> None:
    name = f"ascend_pytorch_profiler_{model.rank}.db" if model.rank >= 0 else "ascend_pytorch_profiler.db"
    transfers = communication(model)
    write_database(part / name, model, transfers, Stacks(model))


def _appear(part: Path, output: Path) -> Path:
    """Put a whole folder in its place; one that is there from before gives way."""
    for _ in range(3):
        if output.exists():
            old = part.with_name(f"{part.name}.old")
            output.rename(old)
            shutil.rmtree(old, ignore_errors=True)
        try:
            part.rename(output)
            return output
        except OSError:
            if not output.exists():
                raise
    raise FileExistsError(17, "another process parses it", str(output))


def _remove_stale(folder: Path) -> None:
    """What a parser left that was killed."""
    for path in folder.glob(f"{naming.OUTPUT}.*"):
        pid = path.name.removeprefix(f"{naming.OUTPUT}.").partition(".")[0]
        if pid.isdigit() and not naming.lives(int(pid)):
            shutil.rmtree(path, ignore_errors=True)


def _json(path: Path) -> dict[str, Any]:
    try:
        found = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    return found if isinstance(found, dict) else {}


def _log(folder: Path) -> Callable[[str], None]:
    def log(line: str) -> None:
        try:
            (folder / naming.LOGS).mkdir(mode=naming.MODE, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            descriptor = os.open(folder / naming.LOGS / LOG, flags, naming.FILE_MODE)
            with open(descriptor, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} [{os.getpid()}] {line}\n")
        except OSError:
            pass  # the deliverables matter more

    return log
