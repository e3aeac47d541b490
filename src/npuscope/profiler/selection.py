"""What of a launch is written: the groups that ``--aic-metrics`` names (opprof.md 1.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from npuscope.npu.chip import Chip

TABLES = (
    "ArithmeticUtilization",
    "L2Cache",
    "Memory",
    "MemoryL0",
    "MemoryUB",
    "PipeUtilization",
    "ResourceConflictRatio",
)
"""The tables of ``Default``; OpBasicInfo is written in any case."""

BASIC = "OpBasicInfo"

A2, A5, P310 = "A2", "A5", "310P"
ALL, SPLIT = (A2, A5, P310), (A2, A5)

OP: dict[str, tuple[str, ...]] = {
    "Default": ALL,
    **dict.fromkeys(TABLES, ALL),
    "BasicInfo": ALL,
    "Roofline": ALL,
    "Occupancy": SPLIT,
    "KernelScale": SPLIT,
    "MemoryDetail": SPLIT,
    "Source": SPLIT,
    "TimelineDetail": SPLIT,
    "PipeTimeline": (A5,),
    "InstrTimeline": (A5,),
    "PcSampling": (A5,),
}
"""The groups of `op`, with the kinds of chips that have them (A2 stands for A3 as well)."""

SIMULATOR: dict[str, tuple[str, ...]] = {
    "PipeUtilization": ALL,
    "ResourceConflictRatio": ALL,
    "PMSampling": SPLIT,
    "OverHead": (A2,),
}
"""Those of `op simulator`. OverHead is also named on other chips: there a notice says that it is not supported."""

SETS: dict[str, tuple[str, ...]] = {
    "basic": ("BasicInfo",),
    "full": ("Default", "Roofline", "Occupancy", "MemoryDetail", "Source"),
    "timeline": ("BasicInfo", "TimelineDetail"),
}
"""Our own names for several groups."""


class Refused(Exception):
    """Why a list of groups is none; the text is the one for people."""


@dataclass(frozen=True, slots=True)
class Selection:
    """`groups` as the tables above spell them. `simulator` tells which of the two they are for."""

    groups: frozenset[str]
    simulator: bool = False

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables to write, OpBasicInfo first."""
        if self.simulator:
            return ()
        return (BASIC, *(name for name in TABLES if name in self.groups or self._default))

    @property
    def roofline(self) -> bool:
        """Whether the rooflines are drawn."""
        return "Roofline" in self.groups

    @property
    def occupancy(self) -> bool:
        """Whether the loads of the cores are held against each other."""
        return "Occupancy" in self.groups

    @property
    def detail(self) -> bool:
        """Whether the bytes of each way are told apart."""
        return "MemoryDetail" in self.groups

    @property
    def region(self) -> bool:
        """Whether only the marked region of the kernel counts."""
        return "KernelScale" in self.groups

    @property
    def source(self) -> bool:
        """Whether the hot spots by line and the cache map are written."""
        return self.simulator or bool(self.groups & {"Source", "PcSampling", "TimelineDetail"})

    @property
    def simulated_timeline(self) -> bool:
        """Whether every instruction of every core is drawn, as the simulator does."""
        return self.simulator or "TimelineDetail" in self.groups

    @property
    def instructions(self) -> bool:
        """Whether the on-board timeline shows the instructions of each pipe."""
        return "InstrTimeline" in self.groups

    @property
    def pipes(self) -> bool:
        """Whether the on-board timeline shows when each pipe was busy."""
        return "PipeTimeline" in self.groups

    @property
    def stalls(self) -> bool:
        """Whether warps' reasons to wait are sampled."""
        return "PcSampling" in self.groups

    @property
    def counters(self) -> bool:
        """Whether the figures need hardware counters; BasicInfo alone does without, for its duration's sake."""
        return not self.simulator and self.groups != {"BasicInfo"}

    @property
    def waits(self) -> bool:
        """Whether a simulator's timeline shows flags being set and waited for."""
        return not self.simulator or self.groups != {"PipeUtilization"}

    @property
    def throughput(self) -> bool:
        """Whether a simulator's timeline has the counters of transfers."""
        return not self.simulator or not self.groups or "PMSampling" in self.groups

    @property
    def _default(self) -> bool:
        """Roofline and MemoryDetail bring all tables along; so does KernelScale alone."""
        return bool(self.groups & {"Default", "Roofline", "MemoryDetail"}) or self.groups == {"KernelScale"}


def columns_of(chip: Chip) -> str:
    """The kind of a chip: which counters and columns it has."""
    return {"2201": A2, "3510": A5}.get(chip.arch, P310)


def select(names: Iterable[str], kind: str, simulator: bool = False) -> Selection:
    """The selection that a list of names stands for, in any letter case, on a kind of chip. Raises Refused.

    No name at all means ``Default``, and everything for the simulator.
    """
    known = SIMULATOR if simulator else OP
    spelled = {name.lower(): name for name in known}
    others = {name.lower() for name in ((*OP,) if simulator else (*SIMULATOR,))}
    groups: set[str] = set()
    for name in _spread(names):
        if name.lower() == "timelinedetail" and simulator:
            raise Refused("--aic-metrics=TimelineDetail is invalid in simulator")
        found = spelled.get(name.lower())
        if found is None and name.lower() in others:
            raise Refused("Unexpected argument in --aic-metrics, maybe in wrong run mode")
        if found is None:
            raise Refused("Invalid metric options!")
        if kind not in known[found] and found != "OverHead":
            raise Refused("Unexpected argument in --aic-metrics, maybe in wrong soc platform")
        groups.add(found)
    if {"PipeTimeline", "InstrTimeline"} <= groups:
        raise Refused(
            "Unexpected argument --aic-metrics, 'PipeTimeline' and 'InstrTimeline' cannot be specified together."
        )
    return Selection(frozenset(groups or (set() if simulator else {"Default"})), simulator)


def _spread(names: Iterable[str]) -> Iterable[str]:
    for name in names:
        yield from SETS.get(name.lower(), (name,))
