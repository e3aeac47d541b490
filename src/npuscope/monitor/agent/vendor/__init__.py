"""The vendor's Python interfaces, for code that was written for them: `IPCMonitor` and `msmonitor` (the proxy that
drives the monitor, and `Monitor`), `mspti`, `mstx`."""

from __future__ import annotations

import sys


def supply() -> None:
    """Let the vendor's names be imported in this process where its packages are not installed. Imports nothing."""
    from npuscope.monitor.agent.vendor.names import LIBRARY, MODULES, make
    from npuscope.mstx.module import supply_missing_mstx
    from npuscope.mstx.supply import supplied
    from npuscope.mstx.supply import supply as supply_module

    supply_missing_mstx()
    for name in MODULES:
        if not supplied(name):
            supply_module(name, make, when=_simulates if name == LIBRARY else lambda: True)


def _simulates() -> bool:
    """Whether this process has a simulated device. Programs take it, rightly, that there is a device whose kernels can
    be timed where `mspti` can be imported."""
    module = sys.modules.get("npuscope.monitor.agent.sources.sim")
    return module is not None and module.connected()
