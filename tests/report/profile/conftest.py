"""A browser for the page's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from page_browser import browser
from selenium.webdriver import Chrome


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser(tmp_path_factory.mktemp("profile"), 1440, 900) as driver:
        yield driver
