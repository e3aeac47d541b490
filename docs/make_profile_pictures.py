"""Make the pictures in profiler.md: two examples are profiled, and parts of their pages taken by a browser.

    python docs/make_profile_pictures.py [folder]

Needs pyasc, selenium and Chromium with its driver (Debian: apt install chromium chromium-driver).
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "monitor")]

from page_browser import browser, prefer  # noqa: E402

PICTURES = ROOT / "docs" / "images"
WIDTH = 1280
# Which example, which part of its page (from the first element's top to the last one's bottom), dark or light.
PARTS = {
    "profile-overview": ("add_queues", "header", "#advice", "light"),
    "profile-source": ("add_queues", "#source", "#source", "light"),
    "profile-timeline": ("add_queues", "#timeline", "#timeline", "light"),
    "profile-charts": ("matmul_leaky_relu", "#charts", "#charts", "light"),
}  # fmt: skip


def profiled(example: str, folder: Path) -> Path:
    """The page of an example."""
    # From its folder and by its name, as a person would: the page shows paths.
    words = [sys.executable, "-m", "npuscope", "profile", "--format", "html", "-o", str(folder / example)]
    script = f"examples/pyasc/{example}.py"
    subprocess.run([*words, script], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, check=True)
    return next((folder / example).rglob("index.html"))


def take(chrome: Any, page: Path, first: str, last: str, scheme: str, picture: Path) -> None:
    """One picture of a part of the page."""
    prefer(chrome, scheme)
    chrome.get(page.as_uri())
    while not chrome.execute_script("return document.documentElement.dataset.ready"):
        time.sleep(0.05)
    if "timeline" in first:
        zoom(chrome)
    time.sleep(0.5)
    script = "const box = document.querySelector(arguments[0]).getBoundingClientRect(); return [box.top, box.bottom]"
    top, bottom = chrome.execute_script(script, first)[0], chrome.execute_script(script, last)[1]
    clip = {"x": 0, "y": max(top - 6, 0), "width": WIDTH, "height": bottom - top + 16, "scale": 1}
    taken = chrome.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    picture.write_bytes(base64.b64decode(taken["data"]))


def zoom(chrome: Any) -> None:
    """Into the middle of the timeline, at a wait, so that its arrow and the words below are there."""
    box = chrome.find_element("css selector", "#timeline input[type='search']")
    box.send_keys("wait_flag")
    for _ in range(3):
        box.send_keys("\ue007")  # Enter: the next match
    box.send_keys("\ue00c")  # Escape: no search, but the slice stays chosen
    canvas = chrome.find_element("css selector", "#timeline canvas")
    canvas.send_keys(*"ss")
    chrome.execute_script("scrollTo(0, 0)")


def main(folder: Path) -> None:
    """All pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, browser(Path(place) / "browser", WIDTH, 900) as chrome:
        pages = {example: profiled(example, Path(place)) for example in {part[0] for part in PARTS.values()}}
        for name, (example, first, last, scheme) in PARTS.items():
            take(chrome, pages[example], first, last, scheme, folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
