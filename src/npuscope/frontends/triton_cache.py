"""Triton's own disk cache, made fit for us: in our folder, keyed by the path of the source as well as by its text (the
IR that it keeps names the source's path), and without reading half a gigabyte to find its key."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from npuscope.frontends.cache import cache_folder, fingerprint


def install(package: str, notice: Callable[[str], None]) -> None:
    """Let Triton, whose folder is `package`, keep its cache our way. TRITON_CACHE_DIR is respected."""
    from triton import knobs
    from triton.runtime import autotuner, cache, jit

    key = lru_cache(maxsize=1)(lambda: _key_of(package))
    cache.triton_key = autotuner.triton_key = key
    jit.JITCallable.cache_key = _with_path(jit.JITCallable.cache_key)
    folder = lru_cache(maxsize=1)(lambda: _folder(notice))
    type(knobs.cache).__dict__["dir"].default_factory = folder
    if cache_folder() is None:
        knobs.compilation.__dict__["always_compile"] = True


def _key_of(package: str) -> str:
    """What stands for this installation of Triton: its files by size and time, not by content."""
    library = os.path.join(package, "_C", "libtriton.so")
    status = os.stat(library) if os.path.exists(library) else os.stat(package)
    parts = (package, os.path.join(package, "language"), os.path.join(package, "compiler"))
    return f"{fingerprint(*parts)}-{status.st_size}-{status.st_mtime_ns}"


def _with_path(original: Any) -> property:
    """The key of a kernel's or a helper's text, which says where the text lies too."""

    def cache_key(self: Any) -> str:
        key = original.fget(self)
        code = getattr(self.fn, "__code__", None)
        path = "" if code is None else code.co_filename
        return hashlib.sha256(f"{key}{path}".encode()).hexdigest()

    return property(cache_key)


def _folder(notice: Callable[[str], None]) -> str:
    """The folder for Triton's files; one that goes with the process where no other can be had."""
    wanted = cache_folder()
    if wanted is not None:
        folder = wanted / "triton"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return str(folder)
        except OSError:
            pass
        notice(f"{folder} cannot be written: nothing is cached")
    owner = os.getpid()
    made = tempfile.mkdtemp(prefix="npuscope-triton-")
    atexit.register(lambda: shutil.rmtree(made, ignore_errors=True) if os.getpid() == owner else None)
    return made
