"""What the stock command checks of an output folder before it sends its name. The folder may lie on another host, so
most of what is found is a warning only."""

from __future__ import annotations

import os
from collections.abc import Callable

from npuscope.monitor.certificates.folder import LONGEST_PATH, UNUSUAL

ESCAPES = {"\n": r"\n", "\f": r"\u{c}", "\r": r"\r", "\b": r"\u{8}", "\t": r"\t", "\v": r"\u{b}", "\x7f": r"\u{7f}"}


def usable_folder(path: str, say: Callable[[str], None]) -> bool:
    """Whether a path can name an output folder: one that is there, or one that is yet to be made."""
    if not path:
        say("ERROR: The path is empty.")
        return False
    if len(os.fsencode(path)) > LONGEST_PATH:
        say(f"ERROR: The length of path is too long, max allowed: {LONGEST_PATH}")
        return False
    for character in UNUSUAL:
        if character in path:
            say(f"WARNING: The path contains invalid character: {quoted(character)}")
    return "\0" not in path and _free(path, say)


def _free(path: str, say: Callable[[str], None]) -> bool:
    place = os.path.abspath(path)
    if not os.path.exists(place):
        return True
    if os.path.isfile(place):
        say(f"ERROR: The path is a file: {quoted(place)}")
        return False
    if os.path.islink(place):
        say(f"WARNING: The path is a soft link: {quoted(place)}")
    if os.getuid() != 0 and not os.access(path, os.W_OK | os.X_OK):
        say(f"WARNING: The path is not writable: {path}")
    return True


def quoted(text: str) -> str:
    """A text in quotes, with what cannot be seen spelled out."""
    escapes = ESCAPES | {'"': r"\"", "\\": r"\\"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'
