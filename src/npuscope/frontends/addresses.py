"""Tensors whose address a script has asked for: a kernel may reach them through the number, without an argument."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_known: dict[int, weakref.ref[Any]] = {}
MOST = 1 << 14
"""Addresses that are kept in mind; past them, those of tensors that are gone are dropped."""


def note(tensor: Any) -> None:
    """A script asks where `tensor` lies."""
    with suppress(TypeError):
        _known[id(tensor)] = weakref.ref(tensor)
    if len(_known) > MOST:
        for key in [key for key, reference in _known.items() if reference() is None]:
            del _known[key]


def living() -> Iterator[Any]:
    """The tensors that were asked for and are still there."""
    for reference in list(_known.values()):
        tensor = reference()
        if tensor is not None:
            yield tensor
