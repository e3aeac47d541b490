"""A profile's page in a browser."""

from __future__ import annotations

import time
from pathlib import Path

from selenium.webdriver import Chrome

SECONDS = 60


class Opened:
    """A page in the browser, from a file."""

    def __init__(self, chrome: Chrome, file: Path) -> None:
        self.chrome = chrome
        began = time.monotonic()
        chrome.get(file.as_uri())
        self.wait("document.documentElement.dataset.ready")
        self.seconds = time.monotonic() - began

    def run(self, script: str, *arguments: object) -> object:
        """What an expression of JavaScript gives."""
        return self.chrome.execute_script(f"return {script}", *arguments)

    def wait(self, script: str) -> object:
        """What an expression gives once it gives something."""
        deadline = time.monotonic() + SECONDS
        while not (found := self.run(script)):
            assert time.monotonic() < deadline, f"not within {SECONDS} seconds: {script}"
            time.sleep(0.03)
        return found

    def text(self, place: str) -> str:
        """The text that is seen there."""
        return str(self.run("document.querySelector(arguments[0]).innerText", place))

    def count(self, place: str) -> int:
        """How many elements there are."""
        return int(str(self.run("document.querySelectorAll(arguments[0]).length", place)))

    def complaints(self) -> list[object]:
        """Errors and warnings in the console since the last look, but for what reading pixels in a test brings about."""
        entries = [entry for entry in self.chrome.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        return [entry for entry in entries if "getImageData" not in entry["message"]]
