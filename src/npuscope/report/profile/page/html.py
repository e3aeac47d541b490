"""The page put together: the skeleton, the styles and the scripts of `static/`, and the data of the launches."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from npuscope import __version__
from npuscope.profiler.profile import Profile
from npuscope.report.page.blobs import Blobs
from npuscope.report.page.parts import embedded, filled, static
from npuscope.report.profile.page.launch import launch_payload

HERE = "npuscope.report.profile.page"
SHARED_SCRIPTS = ("base", "format", "tip", "table")
SCRIPTS = (
    "glance", "advice", "code", "source", "rows", "axis", "timeline", "detail",
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
        "STYLE": static("page.css"),
        "SCRIPT": "\n".join(
            [*(static(f"{name}.js") for name in SHARED_SCRIPTS), *(static(f"{name}.js", HERE) for name in SCRIPTS)]
        ),
        "DATA": embedded({"npuscope": __version__, "launches": launches}),
        "BLOBS": blobs.html(),
    }
    return filled(static("page.html", HERE), parts)
