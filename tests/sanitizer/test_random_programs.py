"""Random programs: the race check and the brute-force model of the order agree.

The check follows the last accesses of each byte and takes a reported order as given from there on, the model lists every
pair. So what is compared is: every report is a pair of the model, of the same kind and the same dependence on the
compiler; and the first pair of the model, in the order of the program, is reported.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from mutations.definedness import undefined_stores
from mutations.oracle import Hazard, hazards, rows_of
from mutations.random_mixed import random_mixed
from mutations.random_programs import random_program
from scenarios.model import program
from scenarios.running import Ran, run_text
from scenarios.witness import launches

pytest.importorskip("asc")

SEEDS = range(30)
Key = tuple[str, str, int, int]  # pipes and lines, the later access first


def modelled(ran: Ran) -> dict[Key, list[Hazard]]:
    """The model's pairs by pipes and lines."""
    (group,) = launches(ran.batches)
    sites = group[-1].sites
    found: dict[Key, list[Hazard]] = defaultdict(list)
    for one in hazards(group):
        lines = [sites[row.site].frames[0].line for row in (one.later, one.earlier)]
        found[one.later.pipe.name, one.earlier.pipe.name, lines[0], lines[1]].append(one)
    return found


def reported(ran: Ran) -> set[tuple[Key, str]]:
    """The check's findings likewise, with their kind."""
    found = set()
    for one in ran.findings:
        assert one.access is not None and one.other is not None
        lines = (one.access.frames[0].line, one.other.frames[0].line)
        found.add(((one.access.pipe, one.other.pipe, *lines), one.kind))
    return found


def kind_of(hazard: Hazard) -> str:
    """What the check calls a hazard."""
    return "relies-on-auto-sync" if hazard.auto else hazard.kind


def agree(text: str) -> None:
    """Hold the check against the model."""
    ran = run_text(program(text), checks=("race",))
    assert ran.code == 0
    model, check = modelled(ran), reported(ran)
    assert [(key, kind) for key, kind in check if kind not in {kind_of(one) for one in model.get(key, ())}] == []
    pairs = [(one.later.number, key) for key, ones in model.items() for one in ones]
    first = {key for number, key in pairs if number == min(pairs)[0]}
    assert not first or first & {key for key, _ in check}, first


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_vector_cores(seed: int, strided: bool) -> None:
    """Two vector cores, with SyncAll."""
    agree(random_program(seed, strided))


@pytest.mark.parametrize("seed", SEEDS)
def test_cube_and_vector_cores(seed: int) -> None:
    """One or two AI cores, with cross-core flags of modes 0, 1 and 2."""
    agree(random_mixed(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_undefined_bytes(seed: int) -> None:
    """The init check reports the stores that the model of definedness names, and no other."""
    ran = run_text(program(random_program(seed)), checks=("init",))
    (group,) = launches(ran.batches)
    sites = group[-1].sites
    expected = {sites[row.site].frames[0].line for row in undefined_stores(rows_of(group))}
    found = {one.access.frames[0].line for one in ran.findings if one.access is not None}
    assert found == expected
