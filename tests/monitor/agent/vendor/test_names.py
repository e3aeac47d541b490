"""The vendor's import names, as code that was written for its packages uses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NAMES = """
import sys
from npuscope.monitor.agent.vendor import supply

supply()
supply()
heavy = {"torch", "numba", "click", "rich", "pyarrow", "numpy"} & set(sys.modules)
assert not heavy, heavy
import IPCMonitor, msmonitor
from IPCMonitor import ActivityKind, Monitor, PyDynamicMonitorProxy
from IPCMonitor.monitor import Monitor as again
from msmonitor.dynamic_monitor_proxy import PyDynamicMonitorProxy as proxy
import mstx

assert again is Monitor is msmonitor.Monitor and proxy is PyDynamicMonitorProxy
assert Monitor() is Monitor() and PyDynamicMonitorProxy() is PyDynamicMonitorProxy()
assert [kind.name for kind in ActivityKind] == [
    "API", "Kernel", "Communication", "Marker", "AclAPI", "NodeAPI", "RuntimeAPI"
]
assert (ActivityKind.Marker.value, int(ActivityKind.RuntimeAPI)) == (1, 12)
assert mstx.range_start("x") == 1
try:
    import IPCMonitor.no_such_part
except ModuleNotFoundError:
    pass
else:
    raise AssertionError
"""

INSTALLED = """
import sys
sys.path.insert(0, sys.argv[1])
from npuscope.monitor.agent.vendor import supply

supply()
import IPCMonitor

assert IPCMonitor.vendor
try:
    import IPCMonitor.monitor
except ModuleNotFoundError:
    pass
else:
    raise AssertionError("a part of ours in a package of theirs")
"""


def run(code: str, *words: str) -> None:
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_names_where_nothing_is_installed() -> None:
    """Packages, their parts, singletons, the kinds with the library's numbers; nothing heavy comes with them."""
    run(NAMES)


def test_the_vendors_package_is_left_where_it_is(tmp_path: Path) -> None:
    package = tmp_path / "IPCMonitor"
    package.mkdir()
    (package / "__init__.py").write_text("vendor = True")
    run(INSTALLED, str(tmp_path))
