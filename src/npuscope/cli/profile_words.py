"""What a profile says on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from npuscope.profiler.profile import Profile
from npuscope.profiler.selection import Selection


def tables_of(profile: Profile, selection: Selection) -> Iterator[str]:
    """The summary tables of one launch."""
    timeline = profile.timeline
    yield f"{timeline.launch.kernel}: {timeline.microseconds:.2f} us ({timeline.source.word})"
