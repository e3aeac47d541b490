"""Has something done on the main thread of a job that does not call us: the interpreter does it between two of its
instructions, as it does for the handlers of signals."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

_FUNCTION = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Visit:
    """One visit at a time: another is asked for only when the last one has been made."""

    def __init__(self, action: Callable[[], None]) -> None:
        """`action` never raises and never waits."""
        self._action = action
        self._expected = False
        # Kept for ever, as the interpreter may come back to it at its very end.
        self._function = _FUNCTION(self._called)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._function))

    def ask(self) -> None:
        """Have the action done soon. Any thread."""
        if not self._expected:
            self._expected = True
            if ctypes.pythonapi.Py_AddPendingCall(self._function, None) != 0:  # full: another time
                self._expected = False

    def forget(self) -> None:
        """In a fork: what was asked for in the parent may not come."""
        self._expected = False

    def _called(self, _: int | None) -> int:
        self._expected = False
        self._action()
        return 0


def on_main_thread() -> bool:
    """Whether this is the main thread."""
    return threading.get_ident() == threading.main_thread().ident
