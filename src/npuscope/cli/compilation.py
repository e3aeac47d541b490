"""A word to the user while parts of this program are compiled, which happens once on a machine and takes a while."""

from __future__ import annotations

import sys
from typing import Any

from npuscope.frontends.imports import after_import

TEXT = "npuscope: compiling the {} for this machine, once; this may take half a minute"


def tell_of_compilation(what: str = "checks") -> None:
    """From now on, tell a person at a terminal when the first function of ours is compiled; logs stay as they are.
    Loading what was compiled before is quick and says nothing. `what` is compiled."""
    if sys.stderr.isatty():
        after_import("numba", lambda package: _listen(what))


def _listen(what: str) -> None:
    from numba.core import event

    class Told(event.Listener):
        told = False

        def on_start(self, occurrence: Any) -> None:
            if not self.told and occurrence.data["dispatcher"].py_func.__module__.startswith("npuscope."):
                self.told = True
                print(TEXT.format(what), file=sys.stderr, flush=True)

        def on_end(self, occurrence: Any) -> None:
            """Nothing to say."""

    event.register("numba:compile", Told())
