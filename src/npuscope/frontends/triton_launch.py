"""From a Triton launch to the programs of a grid: the IR becomes a lowered program, and runs on the arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from math import prod
from time import monotonic
from typing import Any

import numpy as np

from npuscope.errors import UserError
from npuscope.frontends.launch import Session, at_user_line
from npuscope.frontends.triton_arguments import Arguments, described, passed_values
from npuscope.frontends.triton_grid import (
    MOST_UNSEEN,
    STRETCH,
    STRETCHES,
    chosen_parts,
    grid_of,
    sample,
    shown_grid,
    shown_parts,
    too_long,
)
from npuscope.frontends.triton_programs import ProgramCache
from npuscope.frontends.triton_values import FakeTensor
from npuscope.mlir.tiles.program import TileProgram
from npuscope.tile.access import Accesses, stretches
from npuscope.tile.machine import Machine
from npuscope.tile.matter import Matter, Reads
from npuscope.tile.nan import NanSearch
from npuscope.tile.overdue import Overdue
from npuscope.tile.ready import Ready
from npuscope.tile.rerun import Search
from npuscope.tile.run import run
from npuscope.tile.stuck import Stuck
from npuscope.trace.schema import Fault, Launch, Programs, Role, SourceFrame


class Launches:
    """The launches of one session."""

    def __init__(self, session: Session, package: str, caller: Callable[[], SourceFrame | None]) -> None:
        self._session = session
        self._package = package
        self._caller = caller
        self._programs: dict[bytes, TileProgram] = {}
        self._saved = ProgramCache(package)

    def _is_library(self, file: str) -> bool:
        return os.path.abspath(file).startswith(self._package + os.sep)

    def program(self, text: bytes) -> TileProgram:
        """The lowered kernel."""
        known = self._programs.get(text)
        if known is None:
            known = self._programs[text] = self._saved.program(
                text, self._is_library, self._session.recorder.add_site, self._session.nan
            )
        return known

    def launch(self, source: Any, text: bytes, extents: tuple[Any, ...], given: tuple[Any, ...]) -> None:
        """Run a kernel; its outputs land in the user's tensors."""
        session, recorder = self._session, self._session.recorder
        program = self.program(text)
        grid = grid_of(program.name, extents)
        if not prod(grid):
            session.notice(f"{program.name} was launched with the empty grid {grid}: nothing runs")
        passed = list(passed_values(source.signature.items(), given))
        if len(passed) != len(program.parameters):
            raise UserError(f"{program.name} takes {len(program.parameters)} arguments, {len(passed)} came")
        parts, shown = self._parts(program.name, prod(grid), passed)
        record = Launch(
            0, program.name, session.chip.name if session.chip else "", Programs(grid), shown_grid(grid),
            {name: described(value) for name, value in zip(source.signature, given, strict=True)}, shown,
            self._caller(),
        )  # fmt: skip
        recorder.begin(record)
        session.launches += 1
        try:
            kinds = [kind for _, kind in program.parameters]
            arguments = Arguments(session, passed, kinds, program.dereferences)
            ready = Ready(grid, arguments.tensors, program.entry, arguments.bound, program.yields)
            self._run(program, ready, arguments, parts)
        except Stuck as stuck:
            recorder.add_fault(waits(stuck, max(recorder.rows - 1, 0)))
            raise RuntimeError(f"{program.name} can never finish: {stuck}") from None
        except Overdue as overdue:
            error = too_long(program.name, session.timeout, overdue, prod(grid))
            self._stopped(error)
            raise error from None
        except BaseException as error:
            self._stopped(error)
            raise
        finally:
            recorder.end()

    def _run(self, program: TileProgram, ready: Ready, arguments: Arguments, parts: Sequence[range]) -> None:
        """Run the programs, then ask what became of loads that look like mistakes."""
        session, recorder = self._session, self._session.recorder
        hollow = frozenset(id(item) for item in ready.arguments if recorder.buffers[item.number].undefined)
        accesses = Accesses(recorder, frozenset(id(storage) for storage in arguments.storages))
        accesses.reads = Reads(hollow) if hollow and recorder.consumers else None
        machine = Machine(ready.grid, ready.arguments, accesses)
        if session.timeout is not None:
            machine.deadline = monotonic() + session.timeout
        machine.print_line = session.print_line
        machine.moves_whole_blocks = session.chip is not None
        machine.nan = NanSearch(not session.nan_seen) if session.nan else None
        try:
            run(machine, ready.entry, ready.bound, program.largest, ready.yields, parts)
        except UserError as fault:
            raise at_user_line(fault, program.code.co_filename) from None
        finally:
            machine.end()
            session.nan_seen = session.nan_seen or (machine.nan is not None and machine.nan.found)
        self._ask(accesses.reads, Matter(ready), arguments)
        explain(recorder.faults, Search(ready))

    def _ask(self, reads: Reads | None, matter: Matter, arguments: Arguments) -> None:
        """Let the trace say of loads from memory without content where nothing depends on it."""
        if reads is None or not reads.found:
            return
        read = {number for _, number in reads.found}
        for tensor in arguments.tensors:
            if tensor.number in read:
                spans = np.array(arguments.undefined(tensor), np.int64).reshape(-1, 2) + tensor.low
                if spans.size:
                    matter.spans[tensor.number] = spans
        for site, number in reads.found:
            programs = reads.programs(site, number, matter.spans[number]) if number in matter.spans else []
            if programs and matter.harmless(site, programs):
                facts = {"buffer": number, "asked": programs}
                self._session.recorder.add_fault(Fault("tile_unused", 0, programs[0], site, facts))

    def _stopped(self, error: BaseException) -> None:
        """Let the trace say that the launch did not come to its end."""
        recorder = self._session.recorder
        facts = {"error": f"{type(error).__name__}: {error}"}
        recorder.add_fault(Fault("stopped", max(recorder.rows - 1, 0), -1, 0, facts))

    def _parts(self, kernel: str, count: int, passed: Sequence[tuple[str, Any]]) -> tuple[list[range], dict[str, str]]:
        """Which programs run, and what the trace says of it; nothing when all do."""
        wanted = self._session.programs
        fake = [name for name, value in passed if isinstance(value, FakeTensor)]
        if not wanted and fake and count > 2 * MOST_UNSEEN:
            wanted = sample(count)
            self._notice(
                f"{kernel}: {fake[0]} has no memory and the grid {count} programs: of these run the first and the last "
                f"{MOST_UNSEEN}, and {STRETCHES} times {STRETCH} between (--programs chooses others)"
            )
        if not wanted:
            return [], {}
        parts = chosen_parts(wanted, count)
        return parts, {"programs": shown_parts(parts)}

    def _notice(self, line: str) -> None:
        if line not in self._session.noticed:
            self._session.noticed.add(line)
            self._session.notice(line)


def waits(stuck: Stuck, row: int) -> Fault:
    """Who waits where, as a fault: lines with the stretches of program numbers that wait there."""
    by_line: dict[tuple[str, int], list[int]] = {}
    for number, place in stuck.places:
        by_line.setdefault(place, []).append(number)
    places = [[*place, stretches(np.array(sorted(numbers)))] for place, numbers in by_line.items()]
    numbers = np.array(sorted(number for number, _ in stuck.places))
    facts = {"places": places, "among": len(stuck.places), "programs": stretches(numbers)}
    return Fault("deadlock", row, int(numbers[0]), 0, facts)


def explain(faults: Sequence[Fault], search: Search) -> None:
    """Add to the first fault of each line that left its tensor which loaded number led there, if one did."""
    known: set[int] = set()
    for fault in faults:
        facts = fault.facts
        if fault.code != "tile_outside" or fault.site in known or "overflow" in facts or not isinstance(facts, dict):
            continue
        known.add(fault.site)
        cause = search.origin(fault.core, fault.site, Role(facts["role"]))
        if cause is not None:
            facts["cause"] = cause
