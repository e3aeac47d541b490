"""Putting a page together: a skeleton, styles, scripts and data in one file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

import orjson

SHARED = "npuscope.report.page"


def filled(skeleton: str, parts: Mapping[str, str]) -> bytes:
    """The skeleton with every `<!--NAME-->` replaced once, UTF-8."""
    for name, part in parts.items():
        skeleton = skeleton.replace(f"<!--{name}-->", part, 1)
    return skeleton.encode()


def embedded(data: object) -> str:
    """JSON that may stand inside a script element: no end tag, no comment begins in it."""
    text = orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def static(name: str, package: str = SHARED) -> str:
    """A file of a package's `static` folder."""
    return (resources.files(package) / "static" / name).read_text(encoding="utf-8")
