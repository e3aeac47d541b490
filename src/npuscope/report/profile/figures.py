"""Figures as people read them."""

from __future__ import annotations

from pathlib import PurePath

from npuscope.trace.schema import SourceFrame

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: float | None) -> str:
    """Bytes with a unit: ``1.5 KiB``; ``NA`` where not known."""
    if count is None or count < 0:
        return "NA"
    for unit in UNITS:
        if count < 1024 or unit == UNITS[-1]:
            break
        count /= 1024
    return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.3g} {unit}"


def share(value: float | None) -> str:
    """0..1 as a percentage; ``NA`` where not known."""
    if value is None:
        return "NA"
    return f"{100 * value:.0f} %" if value >= 0.1 or value == 0 else f"{100 * value:.1f} %"


def time(microseconds: float) -> str:
    """Microseconds with a unit that suits."""
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f} s"
    return f"{microseconds / 1000:.3f} ms" if microseconds >= 1000 else f"{microseconds:.2f} us"


def place(frame: SourceFrame) -> str:
    """A line of source: ``add.py:33``."""
    return f"{PurePath(frame.file).name}:{frame.line}"


def figure(value: float | str) -> str:
    """A figure of evidence: whole numbers with separators, others to three digits."""
    if isinstance(value, str):
        return value
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.1f}"


def bar(value: float | None, width: int = 24) -> str:
    """A bar of text for a share 0..1, in eighths of a cell."""
    if value is None:
        return " " * width
    eighths = round(min(max(value, 0.0), 1.0) * width * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + ("" if not rest else "▏▎▍▌▋▊▉"[rest - 1])).ljust(width)


def signed(value: float | None) -> str:
    """A change with its sign; ``NA`` where not known."""
    if value is None:
        return "NA"
    return "0" if value == 0 else f"{value:+,.0f}" if float(value).is_integer() else f"{value:+,.4g}"


def signed_share(value: float | None) -> str:
    """A relative change in percent, with its sign."""
    if value is None:
        return "NA"
    if value in (float("inf"), float("-inf")):
        return "new" if value > 0 else "gone"
    return "0 %" if value == 0 else f"{100 * value:+.1f} %"
