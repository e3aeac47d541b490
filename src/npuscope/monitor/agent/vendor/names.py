"""The modules under which the vendor's packages are imported, made of what is in here."""

from __future__ import annotations

import importlib
import types

HERE = "npuscope.monitor.agent.vendor"
_TOP = {"PyDynamicMonitorProxy": "proxy", "Monitor": "monitor", "ActivityKind": "kinds"}
_MONITOR = {
    "Monitor": "monitor", "ActivityKind": "kinds",
    "API": "records", "Kernel": "records", "Communication": "records", "Marker": "records",
}  # fmt: skip
_PLUGIN = {
    "": _TOP,
    ".dynamic_monitor_proxy": {"PyDynamicMonitorProxy": "proxy"},
    ".monitor": _MONITOR,
}
LIBRARY = "mspti"
_LIBRARY = {
    "KernelMonitor": "mspti", "HcclMonitor": "mspti", "CommunicationMonitor": "mspti", "MstxMonitor": "mspti",
    "flush_all": "mspti", "flush_period": "mspti",
    "KernelData": "mspti_data", "HcclData": "mspti_data", "CommunicationData": "mspti_data",
    "MarkerData": "mspti_data", "RangeMarkerData": "mspti_data", "MsptiObjectId": "mspti_data",
    "MsptiResult": "mspti_data", "MsptiActivityKind": "mspti_data", "MsptiActivityFlag": "mspti_data",
    "MsptiActivitySourceKind": "mspti_data", "MsptiCommunicationDataType": "mspti_data",
}  # fmt: skip
MODULES = {
    **{f"{package}{part}": names for package in ("IPCMonitor", "msmonitor") for part, names in _PLUGIN.items()},
    LIBRARY: _LIBRARY,
}
"""By full name: what the module holds, and the file of this folder that has it."""


def make(name: str) -> types.ModuleType:
    """The module of one of MODULES."""
    module = types.ModuleType(name, f"npuscope's {name}: the vendor's names where the vendor's package is not there.")
    if any(other.startswith(f"{name}.") for other in MODULES):
        module.__path__ = []
    for item, file in MODULES[name].items():
        setattr(module, item, getattr(importlib.import_module(f"{HERE}.{file}"), item))
    module.__all__ = list(MODULES[name])  # type: ignore[attr-defined]
    return module
