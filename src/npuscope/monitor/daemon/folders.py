"""Where traces may be written. Without this, whoever reaches the port could have any file of a user overwritten."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_BYTES = 1024 * 1024
"""A trace of a second or two is larger than this."""


class Refused(ValueError):
    """A place that a trace may not or cannot be written to; the message is one line."""


@dataclass(frozen=True)
class Folders:
    """The folders below which traces may lie; none named: the temporary folder and the requester's home."""

    allowed: tuple[str, ...] = ()

    def check(self, log_file: str, uid: int, *, is_folder: bool = False) -> None:
        """Raises Refused, with the reason, unless a trace of the user may be written to `log_file`."""
        if not log_file:
            raise Refused("no trace file is named")
        if not os.path.isabs(log_file) or ".." in log_file.split("/"):
            raise Refused(f"the trace file must be an absolute path without '..': {log_file}")
        folder = log_file if is_folder else os.path.dirname(log_file)
        allowed = self.allowed or _defaults(uid)
        if not any(_below(os.path.realpath(folder), os.path.realpath(root)) for root in allowed):
            raise Refused(f"traces may be written below {', '.join(allowed)} only, not to {log_file}")
        if is_folder:
            return  # the plug-in makes it
        if not os.path.isdir(folder):
            raise Refused(f"the folder of the trace file does not exist: {folder}")
        _require_room(folder)
        if uid == os.getuid() and not os.access(folder, os.W_OK | os.X_OK):
            raise Refused(f"the folder of the trace file is not writable: {folder}")


def _require_room(folder: str) -> None:
    disk = os.statvfs(folder)
    if disk.f_flag & os.ST_RDONLY:
        raise Refused(f"the folder of the trace file is on a read-only file system: {folder}")
    if disk.f_blocks and disk.f_bavail * disk.f_frsize < LEAST_BYTES:
        raise Refused(f"the disk of the trace file is full, less than {LEAST_BYTES // 1024} KiB are left: {folder}")


def _defaults(uid: int) -> Sequence[str]:
    found = ["/tmp"] if tempfile.gettempdir() == "/tmp" else ["/tmp", tempfile.gettempdir()]
    try:
        home = pwd.getpwuid(uid).pw_dir
    except KeyError:
        return found
    return [*found, home] if home not in ("", "/") else found


def _below(path: str, root: str) -> bool:
    return os.path.commonpath([path, root]) == root
