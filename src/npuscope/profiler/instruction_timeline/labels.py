"""``--custom-input``: what the ranges of a kernel's time stamps are called (opprof.md 1.9)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from npuscope.errors import UserError

LARGEST_FILE = 10 << 20
MOST_ENTRIES = 1024
LONGEST_NAME = 64
_NAME = re.compile(r"[A-Za-z0-9\-_ ]+")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class Labels:
    """`names` of description ids; `block_time` says whether to show when each block ran."""

    names: Mapping[int, str] = field(default_factory=dict)
    block_time: bool = True


NO_LABELS = Labels()


def read_labels(path: Path) -> Labels:
    """The labels in a file. Raises UserError, one line that names the file, for a file that cannot be read, is too
    large, is no JSON or does not have the form of opprof.md 1.9."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UserError(f"--custom-input {path}: larger than 10 MB")
        content = orjson.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"--custom-input {path}: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise UserError(f"--custom-input {path}: not JSON, line {error.lineno}: {error.msg}") from None
    try:
        return _labels(content)
    except ValueError as error:
        raise UserError(f"--custom-input {path}: {error}") from None


def _labels(content: Any) -> Labels:
    if not isinstance(content, dict) or not isinstance(config := content.get("mc2_trace_config"), dict):
        raise ValueError("'mc2_trace_config' must be an object")
    block_time = config.get("enable_block_time", True)
    if not isinstance(block_time, bool):
        raise ValueError("'enable_block_time' must be true or false")
    names = config.get("descid_display", {})
    if not isinstance(names, dict):
        raise ValueError("'descid_display' must be an object")
    if len(names) > MOST_ENTRIES:
        raise ValueError(f"'descid_display' supports at most {MOST_ENTRIES} entries, found {len(names)}")
    return Labels({_number(key): _name(key, name) for key, name in names.items()}, block_time)


def _number(key: str) -> int:
    if not _NUMBER.fullmatch(key):
        raise ValueError(f"'descid_display' key {key!r} is not a decimal or 0x number")
    return int(key, 16 if key[:2] in ("0x", "0X") else 10)


def _name(key: str, name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(f"'descid_display' value of {key} must be a string")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"'descid_display' value of {key} is longer than {LONGEST_NAME} characters")
    if not _NAME.fullmatch(name):
        raise ValueError(f"'descid_display' value of {key} may hold letters, digits, '-', '_' and spaces only")
    return name
