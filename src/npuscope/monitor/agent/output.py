"""The folder that a command names for its files."""

from __future__ import annotations

import os

from npuscope.monitor.agent.commands import Refused
from npuscope.monitor.protocol.codes import Code

MODE = 0o750


def prepared(folder: str) -> str:
    """The folder as an absolute path, made where it is missing. Raises Refused unless files can be made in it."""
    try:
        path = os.path.abspath(folder)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.isdir(path):
            os.mkdir(path, MODE)
    except FileExistsError:
        raise Refused(Code.PERMISSION, f"{path} is not a folder") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Refused(Code.PERMISSION, f"the folder {folder} cannot be made: {reason}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise Refused(Code.PERMISSION, f"the folder {path} is not writable")
    return path
