"""A launch that takes too long, and where its programs stand then."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Overdue(Exception):
    """The programs' time is up. `standing` are the numbers of programs and the places where they are."""

    def __init__(self) -> None:
        super().__init__("the programs' time is up")
        self.standing: list[tuple[int, str]] = []

    def stand(self, places: Iterable[tuple[int, str]]) -> None:
        """Keep where the programs are."""
        self.standing = list(places)

    def place(self) -> str:
        """``file:line`` of the kernel's innermost line when time was up."""
        found = ""
        trace: TracebackType | None = self.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if not os.path.abspath(code.co_filename).startswith(_OWN):
                found = f"{code.co_filename}:{trace.tb_lineno}"
            trace = trace.tb_next
        return found
