"""What the flags take, with the texts by which the stock commands refuse the rest."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import click

from npuscope.cli.dyno.usage import invalid
from npuscope.monitor.protocol.npu_monitor import KINDS

LONGEST_TEXT = 1024
TOO_LONG = f"The input string is too long, max allowed: {LONGEST_TEXT}"
HOST_SYSTEMS = ("cpu", "mem", "disk", "network", "osrt")


class Value(click.ParamType):
    """A value that a function reads; it raises ValueError with the text for the user."""

    def __init__(self, read: Callable[[str], Any], name: str = "text") -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value read; a default that is no text stays what it is."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            raise invalid(param, value, str(error)) from None

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """How help shows the value."""
        return self.name if "|" in self.name else self.name.upper()  # words to choose from stand as they are


def integer(text: str, bits: int = 64, *, signed: bool = True) -> int:
    """A number that fits."""
    if not text:
        raise ValueError("cannot parse integer from empty string")
    if not re.fullmatch(r"[+-]?[0-9]+" if signed else r"\+?[0-9]+", text, re.ASCII):
        raise ValueError("invalid digit found in string")
    number = int(text[:100])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise ValueError(f"number too {'small' if number < low else 'large'} to fit in target type")
    return number


def within(low: int, high: int) -> Value:
    """A number between two bounds, for the narrower types."""

    def read(text: str) -> int:
        number = integer(text)
        if not low <= number <= high:
            raise ValueError(f"{number} is not in {low}..={high}")
        return number

    return Value(read, "integer")


def number(text: str) -> float:
    """A 32-bit floating point number."""
    try:
        if not text or "_" in text or text != text.strip():
            raise ValueError
        value = float(text)
    except ValueError:
        raise ValueError("invalid float literal" if text else "cannot parse float from empty string") from None
    try:
        single: float = struct.unpack("=f", struct.pack("=f", value))[0]
    except OverflowError:
        single = math.inf
    return single


def one_of(*words: str) -> Value:
    """One of a few words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"[possible values: {', '.join(words)}]")
        return text

    return Value(read, "|".join(words))


def short(text: str) -> str:
    """A text of bounded length."""
    if len(text.encode(errors="surrogateescape")) > LONGEST_TEXT:
        raise ValueError(TOO_LONG)
    return text


def pids(text: str) -> list[int]:
    """Process numbers, by comma."""
    words = [word.strip() for word in short(text).split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 11 for word in words):
        raise ValueError("a comma-separated list of process numbers is expected")
    return [int(word) for word in words]


def iterations(text: str) -> int:
    """How many steps to trace."""
    count = integer(text.strip())
    if count < 1:
        raise ValueError("Must be a positive integer")
    return count


def start_step(text: str) -> int:
    """The step to start with, -1 for the next."""
    step = integer(text.strip())
    if step < -1:
        raise ValueError("Must be non-negative integer or -1")
    return step


def duration(text: str) -> float:
    """Seconds. The plug-in takes neither infinity nor what is no number."""
    seconds = number(text.strip())
    if not 0 <= seconds < math.inf:
        raise ValueError("Must be a positive number")
    return seconds


def threshold(text: str) -> float:
    """Milliseconds."""
    value = number(text)
    if not math.isfinite(value):
        raise ValueError("invalid float literal")
    return value


def rotate_lines(text: str) -> str:
    """Lines per file, empty for the default."""
    word = short(text).strip()
    if word and not 100 <= integer(word, 32) <= 500000:
        raise ValueError("Must be an integer in [100, 500000]")
    return word


def rotate_files(text: str) -> str:
    """Files to keep, -1 for all, empty for the default."""
    word = short(text).strip()
    if word and (count := integer(word, 32)) != -1 and count < 2:
        raise ValueError("Must be -1 or an integer greater than or equal to 2")
    return word


def activity_kinds(text: str) -> str:
    """Kinds of activity, by comma."""
    _listed(short(text), KINDS, "Invalid MSPTI activity kind")
    return text


def host_systems(text: str) -> str:
    """What to record of the host, by comma, or `None`."""
    return "None" if text == "None" else ",".join(_listed(short(text), HOST_SYSTEMS, "Invalid NPU Trace host system"))


def _listed(text: str, known: Sequence[str], complaint: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if word not in known:
            possible = ", ".join(f'"{name}"' for name in known)
            raise ValueError(f"{complaint}: {word}, Possible values: {{{possible}}}.]")
    return words


def ranks(text: str) -> str:
    """Ranks, by comma."""
    words = [word.strip() for word in short(text).split(",")]
    if not all(words):
        raise ValueError("Must be a comma-separated list of integers")
    for word in words:
        try:
            integer(word)
        except ValueError:
            raise ValueError(f"Invalid integer value: {word}") from None
    return ",".join(words)


UNSIGNED = Value(lambda text: integer(text, signed=False), "integer")
SIGNED = Value(integer, "integer")
PORT = within(0, 2**16 - 1)
UNSIGNED_32 = within(0, 2**32 - 1)
SIGNED_32 = within(-(2**31), 2**31 - 1)
TEXT = Value(str)
PIDS = Value(pids, "pid,pid")
SECONDS = Value(duration, "seconds")
