"""What a scenario is, and the short notation its program text may use.

A text is a pyasc script without its imports. Besides plain pyasc a line may use

* ``x_gm = gm(x + 64)``  a GlobalTensor bound to an address,
* ``ub(0, 64)``          a LocalTensor of 64 floats at byte 0 of UB (``ub(0, 64, asc.int32)`` for another type),
* ``sync(MTE2_V, 0)``    set_flag and wait_flag of one event; ``set(...)`` and ``wait(...)`` are its halves,
* ``barrier(V)``         pipe_barrier.

``#+ line`` is a line that only the repaired program has, a line that ends in ``#-`` is one that only the broken
program has. ``# later`` and ``# earlier`` at the end of a line mark the two accesses that a finding must name.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, replace

NOTATION = (
    (re.compile(r"(\w+) = gm\((.*?)\)(?=\s*(#|$))", re.M), r"\1 = asc.GlobalTensor(); \1.set_global_buffer(\2)"),
    (re.compile(r"\bub\((.+?), (.+?), (asc\.\w+)\)"), r"asc.LocalTensor(\3, asc.TPosition.VECCALC, \1, \2)"),
    (re.compile(r"\bub\((.+?), (.+?)\)"), r"asc.LocalTensor(asc.float32, asc.TPosition.VECCALC, \1, \2)"),
    (re.compile(r"\bsync\((\w+), (.+?)\)"), r"set(\1, \2); wait(\1, \2)"),
    (re.compile(r"\b(set|wait)\((\w+), (.+?)\)"), r"asc.\1_flag(asc.HardEvent.\2, \3)"),
    (re.compile(r"\bbarrier\((\w+)\)"), r"asc.pipe_barrier(asc.PipeID.PIPE_\1)"),
)


@dataclass(frozen=True)
class Expect:
    """One finding that must be reported. `later` and `earlier` are the marks of its lines; other empty fields are not
    compared."""

    kind: str
    owner: str = ""
    space: str = ""
    edge: str = ""
    pipes: tuple[str, str] = ("", "")  # of the later and of the earlier access
    severity: str = "error"
    later: str = "later"
    earlier: str = "earlier"
    cores: tuple[str, ...] = ()
    either: bool = False  # the finding's access is in either of the two marked lines
    size: int = 0  # bytes in error
    optional: bool = False  # follows from another finding of the row: may be said, need not


@dataclass(frozen=True)
class Scenario:
    """One row. `expect` is everything that check `check` must find, empty for a clean program; a clean program must be
    silent under every check. `also` names findings of other checks that the same fault makes."""

    id: str
    text: str
    expect: tuple[Expect, ...] = ()
    check: str = "race"
    also: tuple[str, ...] = ()
    chip: str | None = None

    @property
    def clean(self) -> bool:
        """Whether nothing may be found."""
        return not self.required

    @property
    def required(self) -> tuple[Expect, ...]:
        """What has to be found."""
        return tuple(one for one in self.expect if not one.optional)


def program(text: str) -> str:
    """A scenario's text as plain pyasc."""
    text = textwrap.dedent(text)
    for pattern, plain in NOTATION:
        text = pattern.sub(plain, text)
    return text


def broken(text: str) -> str:
    """The text without the lines of the repaired program."""
    return re.sub(r"^\s*#\+.*\n", "", text, flags=re.M)


def repaired(text: str) -> str:
    """The text with them, and without those of the broken one."""
    text = re.sub(r"^.*#-[ \t]*\n", "", text, flags=re.M)
    return re.sub(r"#\+ ", "", text)


def pair(row: Scenario) -> tuple[Scenario, Scenario]:
    """A scenario and its clean twin, from a text that holds both."""
    twin = replace(row, id=f"{row.id}-clean", text=repaired(row.text), expect=(), also=())
    return replace(row, text=broken(row.text)), twin


def pairs(*rows: Scenario) -> tuple[Scenario, ...]:
    """Each row followed by its clean twin."""
    return tuple(one for row in rows for one in pair(row))
