"""``status.json``: how a profiled run went, for programs."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from npuscope import __version__
from npuscope.cli.profile_launches import Profiled
from npuscope.profiler.profile import Profile
from npuscope.trace.timeline import Loss

if TYPE_CHECKING:
    from npuscope.cli.profile_run import Gathered

SCHEMA = 1
"""Grows when a key changes its meaning or goes away."""


class Status:
    """What is known of the run so far.

    The document has ``schema``, ``npuscope`` (version), ``mode`` (op, simulator, export or profile), ``command``,
    ``started``; ``partial`` (something is missing that should be there), ``application`` (exit, signal, interrupted,
    timed_out, stopped: it was ended because there was enough; null where none ran), ``launches`` (seen, kept, left_out:
    how many of each kernel), ``kernels`` (one for each that was written: kernel, launch, device, folder, chip, source
    of the times, cycles, microseconds, slices, partial, losses, notes), ``failed`` (kernel, launch, reason),
    ``warnings`` and ``files``.
    """

    def __init__(self, mode: str, command: str) -> None:
        self._document: dict[str, Any] = {
            "schema": SCHEMA, "npuscope": __version__, "mode": mode, "command": command,
            "started": datetime.now(UTC).isoformat(timespec="seconds"), "partial": False, "application": None,
            "launches": None, "kernels": [], "failed": [], "warnings": [], "files": [],
        }  # fmt: skip

    def application(self, got: Gathered) -> None:
        """How the application ended and what it launched."""
        ended = got.ended
        self._document["application"] = {
            "exit": ended.code, "signal": ended.signal, "interrupted": ended.interrupted, "timed_out": ended.timed_out,
            "stopped": ended.stopped,
        }  # fmt: skip
        left = Counter(item.kernel for item in got.launched if item.kept < 0)
        self._document["launches"] = {"seen": len(got.launched), "kept": len(got.kept), "left_out": dict(left)}
        if ended.interrupted or ended.timed_out or (ended.signal and not ended.stopped) or got.outside:
            self._document["partial"] = True

    def done(self, item: Profiled, folder: Path) -> None:
        """A launch is written."""
        assert item.profile is not None
        entry = _kernel(item.profile)
        self._document["kernels"].append({
            "kernel": item.launched.kernel, "launch": item.launched.number, "device": item.launched.device,
            "folder": str(folder), **entry,
        })  # fmt: skip
        self._document["partial"] |= entry["partial"]

    def failed(self, item: Profiled) -> None:
        """A launch could not be profiled."""
        self._document["failed"].append(
            {"kernel": item.launched.kernel, "launch": item.launched.number, "reason": item.problem}
        )
        self._document["partial"] = True

    def incomplete(self) -> None:
        """Something of the run could not be written."""
        self._document["partial"] = True

    def warned(self, text: str) -> None:
        """People were told of something."""
        self._document["warnings"].append(text)

    def text(self, files: list[str]) -> bytes:
        """The document, with the files that there are."""
        return orjson.dumps({**self._document, "files": files}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _kernel(profile: Profile) -> dict[str, Any]:
    timeline = profile.timeline
    return {
        "chip": timeline.chip, "source": timeline.source.word, "cycles": timeline.cycles,
        "microseconds": timeline.microseconds, "slices": int(timeline.slices.shape[1]), "partial": timeline.partial,
        "losses": [_loss(loss) for loss in timeline.losses], "notes": dict(timeline.notes),
    }  # fmt: skip


def _loss(loss: Loss) -> dict[str, Any]:
    return {
        "kind": loss.kind, "text": loss.text, "core": loss.core, "lane": "" if loss.lane is None else loss.lane.name,
        "count": loss.count, "total": loss.total, "addresses": [f"{address:#x}" for address in loss.addresses],
    }  # fmt: skip
