"""Constants that list their elements: `dense<[[1, 2], [3, 4]]>`."""

from __future__ import annotations

import re

_LISTED = re.compile(r"dense<\s*(\[.*\])\s*>\s*:.*", re.DOTALL)
_SPLAT = re.compile(r"dense<(\d+)>\s*:\s*tensor<(?:(\d+)x)?")
_NUMBER = re.compile(r"true|false|[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\d+)")


def dense_elements(text: str) -> list[float] | None:
    """The elements in row-major order; None for a constant of another form."""
    match = _LISTED.fullmatch(text.strip())
    if match is None:
        return None
    words = _NUMBER.findall(match.group(1))
    return [float(word == "true") if word in ("true", "false") else _value(word) for word in words]


def _value(word: str) -> float:
    return float(word) if "." in word or "e" in word.lower() else int(word)


def parse_listed(text: str) -> tuple[int, ...]:
    """The whole numbers of `dense<[16, 1]> : tensor<2xi32>` or of a splat; of a splat one for each element."""
    listed = dense_elements(text)
    if listed is not None:
        return tuple(int(number) for number in listed)
    match = _SPLAT.match(text.strip())
    if match is None:
        return (int(_NUMBER.findall(text)[0]),)
    return (int(match.group(1)),) * int(match.group(2) or 1)
