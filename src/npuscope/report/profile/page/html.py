"""The page put together: the skeleton, the styles and the scripts of `static/`, and the data of the launches."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from importlib import resources

import orjson

from npuscope import __version__
from npuscope.profiler.profile import Profile
from npuscope.report.profile.page.blobs import Blobs
from npuscope.report.profile.page.launch import launch_payload

SCRIPTS = (
    "base", "format", "tip", "table", "glance", "advice", "code", "source", "rows", "axis", "timeline", "detail",
    "search", "roofline", "memory", "load", "cache", "occupancy", "transfer", "tables", "page",
)  # fmt: skip
"""The scripts in their order: they share one scope, later ones use earlier ones."""

SLICES = 2_000_000
"""Slices that a page holds at most, all launches together; the timelines of those beyond it are left out, which the
page says."""


def page(profiles: Iterable[Profile], slices: int = SLICES) -> bytes:
    """The page, UTF-8. Each launch's figures are complete; timelines are drawn for the first `slices` slices, whole
    cores at a time."""
    blobs = Blobs()
    launches = []
    left = slices
    for profile in profiles:
        payload, shown = launch_payload(profile, blobs, left)
        left -= shown
        launches.append(payload)
    title = ", ".join(dict.fromkeys(launch["kernel"] for launch in launches)) or "nothing"
    parts = {
        "TITLE": escape(f"{title[:80]} - npuscope profile"),
        "STYLE": _static("page.css"),
        "SCRIPT": "\n".join(_static(f"{name}.js") for name in SCRIPTS),
        "DATA": _embedded({"npuscope": __version__, "launches": launches}),
        "BLOBS": blobs.html(),
    }
    text = _static("page.html")
    for name, part in parts.items():
        text = text.replace(f"<!--{name}-->", part, 1)
    return text.encode()


def _embedded(data: object) -> str:
    """JSON that may stand inside a script element: no end tag, no comment begins in it."""
    text = orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _static(name: str) -> str:
    return (resources.files("npuscope.report.profile.page") / "static" / name).read_text(encoding="utf-8")
