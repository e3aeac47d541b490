"""Profiles that were saved: ``profile.json`` files, or the folders that hold them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from npuscope.errors import UserError

FORMAT, VERSION = "npuscope profile", 1
NAME = "profile.json"


def read_launches(path: Path) -> list[dict[str, Any]]:
    """The launches of a document, or of all documents in a folder and below it, in order.

    Raises UserError, one line, where there is none or one cannot be read.
    """
    if path.is_dir():
        files = sorted(path.rglob(NAME), key=_place)
        if not files:
            raise UserError(f"{path}: no {NAME} in this folder or below it")
    else:
        files = [path]
    return [launch for file in files for launch in _read(file)]


def _place(file: Path) -> list[tuple[int, int, str]]:
    """Sorts folders named by numbers as numbers: kernel/2 before kernel/10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in file.parts]


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        document = orjson.loads(file.read_bytes())
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{file}: not a profile: it holds no JSON") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UserError(f"{file}: not a profile that npuscope wrote")
    if document.get("version") != VERSION:
        raise UserError(f"{file}: version {document.get('version')} of the format; this npuscope reads {VERSION}")
    launches = document.get("launches")
    if not isinstance(launches, list) or not all(isinstance(one, dict) and "kernel" in one for one in launches):
        raise UserError(f"{file}: a damaged profile: it lacks its launches")
    return launches
