"""Where the monitor inside a process stands, in the fields of the vendor's status message.

The vendor's plug-in fills `status` only, and leaves the three steps at -1. npuscope's agent says more in them, which a
daemon of the vendor's passes over: `current_step` holds how many records were lost, `start_step` the code of the last
command, `stop_step` how the last collection ended.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from npuscope.monitor.protocol.codes import Code
from npuscope.monitor.protocol.fabric import Channel, Status

IDLE, RUNNING = 0, 1
MOST = 2**31 - 1
UNSAID = -1


class Ending(enum.IntEnum):
    """How the last collection ended."""

    NONE = 0
    STOPPED = 1
    EXPIRED = 2


@dataclass(frozen=True)
class Standing:
    """What the agent says of its monitor."""

    running: bool = False
    lost: int = 0
    """Records and buffers lost since the last start."""
    code: Code = Code.SUC
    """What came of the last command."""
    ending: Ending = Ending.NONE

    def status(self, pid: int) -> Status:
        """As it goes over the wire."""
        words = (min(self.lost, MOST), int(self.code), int(self.ending))
        return Status(Channel.MONITOR, RUNNING if self.running else IDLE, *words, pid)


def standing(status: Status) -> Standing | None:
    """What an agent has said; None when the plug-in of the vendor speaks, which fills no step."""
    try:
        code, ending = Code(status.start_step), Ending(status.stop_step)
    except ValueError:
        return None
    if status.current_step < 0:
        return None
    return Standing(status.status == RUNNING, status.current_step, code, ending)
