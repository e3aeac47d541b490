"""Where the daemon's sockets for the agent and the vendor's plug-in lie."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping

from npuscope.monitor.protocol.fabric import HOME_DATA_NAME, HOME_NAME

FOLDER_VARIABLE = "NPUSCOPE_IPC_DIR"
"""Names another folder than the home, for daemon and agents alike: for containers, and for a second daemon."""


def home(environment: Mapping[str, str] = os.environ) -> str:
    """The folder: the home in the user's passwd entry, whatever HOME says, unless the variable names another one."""
    if folder := environment.get(FOLDER_VARIABLE, ""):
        return os.path.abspath(folder)
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a container's user may have no entry
        return environment.get("HOME", "") or "/"


def control_socket(folder: str) -> str:
    """Where commands come from."""
    return f"{folder}/{HOME_NAME}"


def data_socket(folder: str) -> str:
    """Where measurements go."""
    return f"{folder}/{HOME_DATA_NAME}"
