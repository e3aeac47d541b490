"""Runs at the start of every Python process below `mssanitizer` and `npuscope check`.

Makes way for the sitecustomize that the process would have had, then waits for the import of a package that launches
kernels. A process that imports none pays for two small files and nothing else.
"""

import os
import sys


def _next_one(folder: str) -> None:
    """Run the sitecustomize that this one hides."""
    kept = list(sys.path)
    sys.path[:] = [entry for entry in kept if os.path.abspath(entry or ".") != folder]
    hidden = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if hidden is not None:
            sys.modules["sitecustomize"] = hidden


class _Waiting:
    """A finder that acts on the first import of one of `packages` and then steps aside."""

    def __init__(self, folder: str, packages: list[str]) -> None:
        self.folder = folder
        self.packages = packages

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        """Join the run when the name is one of the packages; the real finders then give the spec."""
        if name not in self.packages:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        from npuscope.cli.hooked import join

        join(self.folder)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


def _start() -> None:
    _next_one(os.path.dirname(os.path.abspath(__file__)))
    folder = os.environ.get("NPUSCOPE_SPOOL", "")
    try:
        with open(os.path.join(folder, "packages")) as file:
            packages = file.read().split()
    except OSError:
        return  # the run that this environment came from is over
    if os.path.exists(os.path.join(folder, "stop")):
        os._exit(0)
    sys.meta_path.insert(0, _Waiting(folder, packages))  # type: ignore[arg-type]


_start()
