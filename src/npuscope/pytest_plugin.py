"""``pytest --npuscope``: every kernel that a test launches is checked, and a finding fails the test.

Without the option this file is all that is imported.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's options."""
    group = parser.getgroup("npuscope", "check the Ascend NPU kernels that tests launch")
    group.addoption("--npuscope", action="store_true", help="check every kernel that a test launches")
    group.addoption(
        "--npuscope-checks", metavar="NAMES", help="run these checks only, with commas between (default: all)"
    )
    group.addoption("--npuscope-strict", action="store_true", help="advisories fail a test too")
    group.addoption("--npuscope-chip", metavar="NAME", help="simulate this chip")
    group.addoption(
        "--npuscope-suppressions", metavar="FILE", action="append", default=[], help="rules for findings to leave out"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the checks when they were asked for."""
    config.addinivalue_line(
        "markers",
        'npuscope(allow): classes of npuscope findings that do not fail the test, such as allow="race-waw" or a list',
    )
    if config.getoption("--npuscope"):
        from npuscope.cli.pytest_checks import Checks

        config.pluginmanager.register(Checks(config), "npuscope-checks")
