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
        sys.meta_path.remove(self)
        _join(self.folder)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


def _join(folder: str) -> None:
    """Take part in the run. A Python that has no npuscope cannot, which the run is told."""
    try:
        _find_npuscope(folder)
        from npuscope.cli.hooked import join
    except ImportError as error:
        with open(os.path.join(folder, "outside"), "a") as file:
            file.write(f"{sys.executable} ({error})\n")
        return
    join(folder)


def _find_npuscope(folder: str) -> None:
    """Let npuscope be found where the command found it, unless this Python has it or is of another version."""
    try:
        import npuscope  # noqa: F401
    except ModuleNotFoundError:
        with open(os.path.join(folder, "root")) as file:
            version, root = file.read().split("\n", 1)
        if version != f"{sys.version_info[0]}.{sys.version_info[1]}":
            raise
        sys.path.append(root)


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
    sys.meta_path.insert(0, _Waiting(folder, packages))


_start()
