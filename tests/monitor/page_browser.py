"""A browser without a window, which asks nobody but the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip
LOAD_SECONDS = 60


def executable(name: str) -> str:
    """The program. Fails, in one line, where it is missing."""
    found = shutil.which(name)
    assert found, f"the page is tested in a real browser: install {name} (Debian: apt install chromium chromium-driver)"
    return found


@contextmanager
def browser(profile: Path, width: int = 1280, height: int = 800, dark: bool = False) -> Iterator[webdriver.Chrome]:
    """A browser with a window of that size and a profile of its own."""
    options = Options()
    options.binary_location = executable("chromium")
    for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    if dark:
        options.add_argument("--force-dark-mode")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(executable_path=executable("chromedriver")))
    try:
        driver.set_page_load_timeout(LOAD_SECONDS)
        resize(driver, width, height)
        yield driver
    finally:
        driver.quit()


def resize(driver: webdriver.Chrome, width: int, height: int) -> None:
    """Give the page, not the window around it, that size."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def prefer(driver: webdriver.Chrome, scheme: str) -> None:
    """Have the page shown "dark" or "light"."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
