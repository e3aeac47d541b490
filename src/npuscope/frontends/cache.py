"""The user's cache folder: entries by content, so that a second run of a script does not do the same work again.

An entry is written beside its place and moved there, so that nobody sees half of one, and carries a checksum, so that a
damaged one counts as none. ``NPUSCOPE_CACHE=0`` switches the folder off.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

SWITCH = "NPUSCOPE_CACHE"
"""Environment variable: 0 for no cache."""

_DIGEST = 32


def cache_folder() -> Path | None:
    """Where entries lie, None when the user wants none."""
    if os.environ.get(SWITCH, "1").lower() in ("0", "off", "no", "false"):
        return None
    base = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(RuntimeError):  # somebody without a home
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "npuscope"
    return None


def fingerprint(*folders: str) -> str:
    """A text that differs when a Python file in one of the folders (not below) does."""
    facts = []
    for folder in folders:
        with os.scandir(folder) as files:
            for file in files:
                if file.name.endswith(".py"):
                    status = file.stat()
                    facts.append(f"{file.name}:{status.st_size}:{status.st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(facts)).encode()).hexdigest()


class Entries:
    """Entries of one kind, each a file named by its key."""

    def __init__(self, kind: str) -> None:
        folder = cache_folder()
        self._folder = None if folder is None else folder / kind

    def read(self, key: str) -> bytes | None:
        """The content of an entry, None when there is none that can be trusted."""
        if self._folder is None:
            return None
        try:
            data = (self._folder / key).read_bytes()
        except OSError:
            return None
        content = data[_DIGEST:]
        return content if hashlib.sha256(content).digest() == data[:_DIGEST] else None

    def write(self, key: str, content: bytes) -> None:
        """Keep an entry; where that cannot be done (no room, a folder that is read-only), there is none."""
        if self._folder is None:
            return
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix=".")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(content).digest() + content)
                os.replace(name, self._folder / key)
            except OSError:
                with suppress(OSError):
                    os.unlink(name)
                raise
