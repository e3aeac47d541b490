"""Block FILE_API: the source lines with their figures. A line has those of every instruction that has it anywhere in
its call stack."""

from __future__ import annotations

from npuscope.profiler.cores import core_names
from npuscope.profiler.insight.columns import ALL_CORES, line_columns
from npuscope.profiler.insight.plain import HIDDEN, INTEGER, Json, address_ranges
from npuscope.profiler.profile import Profile


def file_api(profile: Profile, *, merged: bool) -> Json | None:
    """The document; None where no instruction has a line."""
    lines = sorted(profile.hot_spots.frames, key=lambda line: (line.frame.file, line.frame.line))
    if not lines:
        return None
    columns = line_columns(lines, merged=merged)
    figures = {column.name: column.rows() for column in columns}
    steps = profile.timeline.steps
    everyone = sorted({step.address for step in steps})
    files: dict[str, list[Json]] = {}
    for number, line in enumerate(lines):
        entry: Json = {
            "Line": line.frame.line,
            "Address Range": address_ranges((steps[step].address for step in line.steps), everyone),
        }
        entry.update((name, rows[number]) for name, rows in figures.items())
        files.setdefault(line.frame.file, []).append(entry)
    kinds = {"Line": INTEGER, "Address Range": HIDDEN, **{column.name: column.kind for column in columns}}
    return {
        "Cores": [ALL_CORES] if merged else core_names(profile.timeline.launch),
        "Files Dtype": {"Lines": kinds},
        "Provenance": profile.timeline.source.word,
        "Files": [{"Source": file, "Lines": entries} for file, entries in files.items()],
    }
