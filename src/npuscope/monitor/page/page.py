"""The page as a part of the daemon: bound when the daemon starts, served in its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from npuscope.errors import UserError
from npuscope.monitor.daemon.connections import is_loopback
from npuscope.monitor.page.nodes import Watch
from npuscope.monitor.page.server import PageServer, listen, url
from npuscope.monitor.page.settings import PageSettings
from npuscope.monitor.page.site import Site
from npuscope.monitor.page.sources import Sources
from npuscope.monitor.page.tally import STEP_SECONDS


class Page:
    """A page whose socket is bound."""

    def __init__(self, settings: PageSettings, sources: Sources, log: Callable[[str], None]) -> None:
        """Raises UserError when the port cannot be had."""
        self._listener = listen(settings.host, settings.port)
        self._watch = Watch(settings.nodes)
        self._site = Site(sources, self._watch)
        self.url = url(self._listener)
        if not is_loopback(self._listener.getsockname()[0]):
            log(f"warning: the page on {settings.host} is open to other hosts, which see how many processes there are")
        log(f"page at {self.url}")

    def close(self) -> None:
        """Give the port back."""
        self._listener.close()

    async def serve(self, stop: asyncio.Event) -> None:
        """Serve until told to stop."""
        self._watch.start()
        counting = asyncio.create_task(self._count())
        try:
            await PageServer(self._site.answer, self._listener).serve(stop)
        finally:
            counting.cancel()
            self._watch.stop()

    async def _count(self) -> None:
        while True:
            self._site.tally.note()
            await asyncio.sleep(STEP_SECONDS)


def open_page(settings: PageSettings | None, sources: Sources, log: Callable[[str], None]) -> Page | None:
    """The page; None where none is wanted, or where its usual port is in use and nobody insisted on it."""
    if settings is None:
        return None
    try:
        return Page(settings, sources, log)
    except UserError as error:
        if settings.required:
            raise
        log(f"no page: {error}")
        return None
