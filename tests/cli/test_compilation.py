"""The word about compiling: once, to a terminal, for our own functions."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest
from numba.core import event

from npuscope.cli.compilation import TEXT, tell_of_compilation


class Terminal(io.StringIO):
    """A standard error that is a terminal, or not."""

    def __init__(self, real: bool) -> None:
        super().__init__()
        self.real = real

    def isatty(self) -> bool:
        return self.real


def compile_in(module: str) -> None:
    """What numba does around a compilation."""
    dispatcher = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
    with event.trigger_event("numba:compile", data={"dispatcher": dispatcher}):
        pass


@pytest.mark.parametrize("real", [True, False])
def test_it_is_said_once(monkeypatch: pytest.MonkeyPatch, real: bool) -> None:
    """Not for the functions of others, and not in a log."""
    screen = Terminal(real)
    monkeypatch.setattr(sys, "stderr", screen)
    tell_of_compilation()
    compile_in("somebody.else")
    assert screen.getvalue() == ""
    compile_in("npuscope.sanitizer.order.sweep")
    compile_in("npuscope.sanitizer.order.sweep")
    assert screen.getvalue() == (f"{TEXT.format('checks')}\n" if real else "")
