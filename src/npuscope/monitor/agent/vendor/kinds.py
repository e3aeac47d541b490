"""The kinds that the vendor's Monitor API collects, under its names."""

from __future__ import annotations

import enum

from npuscope.monitor.activity.kinds import Kind


class ActivityKind(enum.Enum):
    """A kind of activity; the values are those of the activity library."""

    API = int(Kind.API)
    Kernel = int(Kind.KERNEL)
    Communication = int(Kind.COMMUNICATION)
    Marker = int(Kind.MARKER)
    AclAPI = int(Kind.ACL_API)
    NodeAPI = int(Kind.NODE_API)
    RuntimeAPI = int(Kind.RUNTIME_API)

    def __int__(self) -> int:
        return int(self.value)

    @property
    def kind(self) -> Kind:
        """The same in our words."""
        return Kind(self.value)
