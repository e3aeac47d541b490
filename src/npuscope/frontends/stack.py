"""The user's own frames: where in a script something was asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import FrameType

from npuscope.trace.schema import SourceFrame

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def user_stack(package: str) -> tuple[SourceFrame, ...]:
    """The frames of the script that runs, innermost first, without those of npuscope and of the DSL in `package`."""
    return tuple(_user_frames(sys._getframe(1), (_OWN + os.sep, package + os.sep)))


def _user_frames(frame: FrameType | None, hidden: tuple[str, ...]) -> Iterator[SourceFrame]:
    found = False
    while frame is not None:
        file = frame.f_code.co_filename
        own = file.startswith("<frozen") or os.path.abspath(file).startswith(hidden)
        if found and (file.startswith("<frozen runpy") or os.path.abspath(file).startswith(_OWN + os.sep)):
            return  # below is what runs the script
        if not own:
            found = True
            yield SourceFrame(file, frame.f_lineno, 0, frame.f_code.co_name)
        frame = frame.f_back
