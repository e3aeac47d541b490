"""What `nputrace` and `npu-monitor` share: the lines that the vendor's command prints, and a warning where the daemon
serves no plug-in."""

from __future__ import annotations

import os

from npuscope.cli.dyno.errand import FAILED, Errand, Reply
from npuscope.cli.dyno.paths import usable_folder
from npuscope.cli.dyno.server import Call
from npuscope.cli.dyno.voice import Voice
from npuscope.errors import UserError

ROOT_WARNING = (
    "Security Warning: Do not run this tool as root. Running with elevated privileges may compromise system security. "
    "Use a regular user account."
)


class PluginErrand(Errand):
    """A request to the vendor's plug-in."""

    call: Call

    def prepare(self, voice: Voice) -> None:
        """Say as whom and how the daemon is reached."""
        if os.getuid() == 0:
            voice.warn(ROOT_WARNING)
        if not self.call.server.certificates:
            voice.warn("Running in no-certificate mode")


def require_folder(path: str, voice: Voice) -> None:
    """Raises UserError, after a line with the reason, when a path cannot name an output folder."""
    if not usable_folder(path, voice.warn):
        raise UserError("--log-file must be a valid directory!", exit_code=FAILED)


def warn_of_stock(reply: Reply, voice: Voice) -> None:
    """Say so when the daemon takes the request for one to stock PyTorch."""
    if "commandStatus" not in reply and "status" not in reply:
        voice.note(
            "warning: this is a stock dynolog, which serves no NPU plug-in; msMonitor's daemon and npuscope's do"
        )
