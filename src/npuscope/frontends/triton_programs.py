"""Lowered kernels, kept from run to run under the text that they were lowered from."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys

import numpy as np

import npuscope
from npuscope.frontends.cache import Entries, fingerprint
from npuscope.mlir.program import AddSite, IsLibrary
from npuscope.mlir.tiles.program import TileProgram, lower_tiles
from npuscope.mlir.tiles.saved import dump, load


class ProgramCache:
    """Programs by the IR's text. `package` is Triton's folder, whose lines are not the user's."""

    def __init__(self, package: str) -> None:
        self._entries = Entries("tiles")
        self._package = package
        self._base = ""

    def program(self, text: bytes, is_library: IsLibrary, add_site: AddSite, nan: bool = False) -> TileProgram:
        """The program of a text: from the cache, or lowered and put there. With `nan` it looks for the first NaN."""
        key = self._key(text + b"nan" * nan)
        found = self._entries.read(key)
        if found is not None:
            program = load(found, text.decode(), add_site)
            if program is not None:
                return program
        program = lower_tiles(text.decode(), is_library, add_site, nan)
        content = dump(program)
        if content is not None:
            self._entries.write(key, content)
        return program

    def _key(self, text: bytes) -> str:
        if not self._base:
            root = os.path.dirname(os.path.abspath(npuscope.__file__))
            folders = [os.path.join(root, name) for name in ("mlir", "mlir/tiles", "mlir/dialects", "tile")]
            self._base = "-".join(
                (npuscope.__version__, importlib.util.MAGIC_NUMBER.hex(), sys.version, np.__version__, self._package,
                 root, fingerprint(*folders))
            )  # fmt: skip
        return hashlib.sha256(self._base.encode() + text).hexdigest()
