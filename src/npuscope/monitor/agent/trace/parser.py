"""A process that parses a trace, from this side."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import npuscope
from npuscope.monitor.agent.trace import naming

MODULE = "npuscope.monitor.agent.trace.parse"
NAME = "npuscope-parser"
INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER", "LD_LIBRARY_PATH")
"""All that the parser gets of the environment: nothing that turns on agents, preloads libraries or names ranks."""
NO_PARSER = "no interpreter can be started here"


class Parser:
    """Started when a trace is planned, so that nothing is started while the program waits; sleeps until it is told
    which folder to parse, and outlives this process. Where this process dies during the recording, it removes what
    was half-written and ends."""

    def __init__(self) -> None:
        """Raises OSError when no process can be started."""
        if not sys.executable:
            raise OSError(2, NO_PARSER)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, "--await", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=clean_environment(os.environ),
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def tell(self, folder: Path) -> None:
        """Which folder will be written."""
        with contextlib.suppress(OSError, ValueError):  # it was killed: `watch` tells
            assert self._process.stdin is not None
            self._process.stdin.write(os.fsencode(folder) + b"\n")
            self._process.stdin.flush()

    def release(self) -> None:
        """There is nothing more to come: it parses the folder, if there is one, and ends."""
        with contextlib.suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def watch(self, folder: Path, ended: Callable[[str], None]) -> None:
        """Call back, on a thread of its own, when it has ended; with what went wrong, or "" when nothing did."""
        threading.Thread(target=self._wait, args=(folder, ended), name=NAME, daemon=True).start()

    def _wait(self, folder: Path, ended: Callable[[str], None]) -> None:
        code = self._process.wait()
        left = [path for path in folder.glob(f"{naming.OUTPUT}.*") if path.name.endswith(f".{self.pid}{naming.PART}")]
        for path in left:
            shutil.rmtree(path, ignore_errors=True)
        how = f"was killed by signal {-code}" if code < 0 else f"failed with exit code {code}"
        ended(f"the parser of {folder} {how}; the raw data is there: npuscope monitor parse {folder}" if code else "")


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What the parser runs with: it finds this package and the libraries that this process finds."""
    ours = str(Path(npuscope.__file__).resolve().parents[1])
    paths = [ours, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    kept = {name: environment[name] for name in INHERITED if name in environment}
    return kept | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "OMP_NUM_THREADS": "1"}
