"""The vendor's Python interfaces, for code that was written for them: `IPCMonitor` and `msmonitor` (the proxy that
drives the monitor, and `Monitor`), `mspti`, `mstx`."""

from __future__ import annotations


def supply() -> None:
    """Let the vendor's names be imported in this process where its packages are not installed. Imports nothing."""
    from npuscope.monitor.agent.vendor.names import MODULES, make
    from npuscope.mstx.module import supply_missing_mstx
    from npuscope.mstx.supply import supplied
    from npuscope.mstx.supply import supply as supply_module

    supply_missing_mstx()
    for name in MODULES:
        if not supplied(name):
            supply_module(name, make)
