"""Columns of numbers as the page carries them: typed, packed, in base64."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

TYPES = {np.dtype("u1"): "Uint8Array", np.dtype("<u2"): "Uint16Array", np.dtype("<u4"): "Uint32Array",
         np.dtype("<f8"): "Float64Array"}  # fmt: skip
LEVEL = 1
"""Of compression: the fastest; a higher one saves a tenth of the size for five times the work."""


class Blobs:
    """Collects columns; each gets a number, and a script element of its own in the page."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, values: np.ndarray) -> dict[str, Any]:
        """Take a column of numbers that are not negative; what is returned tells the page how to read it."""
        packed = narrowed(values)
        text = base64.b64encode(zlib.compress(packed.tobytes(), LEVEL)).decode()
        self._texts.append(text)
        return {"blob": len(self._texts) - 1, "type": TYPES[packed.dtype], "length": int(packed.size)}

    def html(self) -> str:
        """The script elements, which no browser runs."""
        return "".join(
            f'<script type="text/plain" id="blob{number}">{text}</script>\n' for number, text in enumerate(self._texts)
        )


def narrowed(values: np.ndarray) -> np.ndarray:
    """The values in the smallest type that JavaScript has an array for."""
    if values.dtype.kind == "f":
        return values.astype("<f8")
    top = int(values.max(initial=0))
    for kind, limit in (("u1", 2**8), ("<u2", 2**16), ("<u4", 2**32)):
        if top < limit:
            return values.astype(kind)
    return values.astype("<f8")
