"""Texts that a file can hold."""

from __future__ import annotations


def sound(text: str) -> str:
    """The text, with a question mark for every half of a character, which UTF-8 cannot write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
