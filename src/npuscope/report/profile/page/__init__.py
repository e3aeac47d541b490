"""One self-contained HTML page for the launches of a run: no network, one file, dark and light."""

from npuscope.report.profile.page.html import page

__all__ = ["page"]
