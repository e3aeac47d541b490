"""What a check finds: plain values with stable ids and a JSON form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum
from typing import Any

from npuscope.trace.schema import Launch, SourceFrame


class Severity(IntEnum):
    """How bad: wrong on a device, a trap for later, or dependent on compiler or target."""

    ADVISORY = 0
    WARNING = 1
    ERROR = 2

    @property
    def word(self) -> str:
        """``error``, ``warning`` or ``advisory``."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Owner:
    """The buffer a finding is about: who owns the bytes, and where in the source it was made."""

    name: str
    kind: str
    space: str
    base: int
    size: int
    dtype: str
    shape: tuple[int, ...]
    frames: tuple[SourceFrame, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """One side of a finding: an instruction and what it touched. `first` and `last` are element indices in its buffer
    (last exclusive; they may lie outside it), which need not be the finding's owner."""

    operation: str
    opcode: str
    pipe: str
    role: str
    address: int
    size: int
    first: int
    last: int
    frames: tuple[SourceFrame, ...]
    core: str = ""  # "AIV 3"
    serial: int = -1  # row of the instruction in its launch
    site: int = 0  # its number in the trace's site table, which the vendor's reports call pc
    buffer: str = ""  # name of the buffer that `first` and `last` count in
    space: str = ""  # the memory that it lies in
    shown: str = ""  # the elements as a person reads them, where `first` and `last` are not the way


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, merged over repetitions. `kind` is the stable class id such as ``illegal-write``.

    Of a pair, `access` is the later one in the order in which the instructions took effect and `other` the earlier;
    `edge` names the order that is missing between them (``MTE2_V``).
    """

    kind: str
    severity: Severity
    summary: str
    advice: str
    kernel: str
    launch: int
    cores: tuple[str, ...]
    access: Access | None = None
    owner: Owner | None = None
    size: int = 0  # bytes in error
    element: int = -1  # first element in error, index in the owner
    count: int = 1
    launched: str = ""  # the launch as its user wrote it
    launch_frame: SourceFrame | None = None
    notes: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    frames: tuple[SourceFrame, ...] = ()  # the line, where no single access is to blame
    check: str = ""  # which check found it
    other: Access | None = None
    edge: str = ""

    def to_json(self) -> dict[str, Any]:
        """A dictionary of plain values."""
        plain: dict[str, Any] = _plain(asdict(self))
        plain["severity"] = self.severity.word
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return int(value) if hasattr(value, "__index__") else str(value)


class Collector:
    """Merges findings that say the same of the same line: counts them and unites their cores."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], Finding] = {}

    def add(self, key: tuple[Any, ...], finding: Finding) -> None:
        """Add a finding; equal keys are one finding, and the first one's particulars are kept."""
        known = self._found.get(key)
        if known is None:
            self._found[key] = finding
            return
        cores = known.cores + tuple(core for core in finding.cores if core not in known.cores)
        self._found[key] = replace(known, count=known.count + finding.count, cores=cores)

    def copy(self) -> Collector:
        """A collector that goes on from here by itself."""
        other = Collector()
        other._found = dict(self._found)
        return other

    @property
    def findings(self) -> list[Finding]:
        """All findings in the order in which they were first seen."""
        return list(self._found.values())


def launched(launch: Launch) -> str:
    """``add_kernel[8](x=float32[16384], n=2048)``."""
    arguments = ", ".join(f"{name}={value}" for name, value in launch.arguments.items() if name != "ffts_addr")
    return f"{launch.kernel}[{', '.join(map(str, launch.grid))}]({arguments})"


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The highest severity among findings."""
    return max((finding.severity for finding in findings), default=None)
