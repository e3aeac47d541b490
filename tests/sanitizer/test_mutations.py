"""Mutants of clean kernels: all that can misbehave are found, and nothing is said to be wrong with the others.

Whether a mutant can misbehave is judged by mutations.witness, which knows nothing of the sanitizer. The sample of each
kind is fixed by a seed; one line per kind is printed at the end of the test run.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from mutations.kernels import BASES
from mutations.rewrite import KINDS, Mutant, mutants
from mutations.witness import symptoms
from scenarios.model import Scenario, program
from scenarios.running import Ran, run_text

pytest.importorskip("asc")

SEED = 20
SAMPLE = 16
"""Mutants of a kind, spread over the kernels; all of them are some 700."""


def sample(kind: str) -> list[Mutant]:
    """The same mutants in every run."""
    found = [mutant for base in BASES for mutant in mutants(kind, base.id, base.text)]
    return random.Random(SEED).sample(found, min(SAMPLE, len(found)))


def told(ran: Ran) -> list[str]:
    """What the sanitizer holds against a program: everything that does not depend on the compiler."""
    return [finding.kind for finding in ran.findings if finding.severity.word != "advisory"]


@pytest.mark.parametrize("kind", KINDS)
def test_detection(kind: str, record_property: Callable[[str, object], None]) -> None:
    """100 % of those that can misbehave; no error where nothing can."""
    missed, alarms, harmful = [], [], 0
    chosen = sample(kind)
    for mutant in chosen:
        ran = run_text(program(mutant.text))
        found = symptoms(mutant, ran)
        harmful += bool(found)
        if found and not told(ran):
            missed.append(f"{mutant.base}, {mutant.what}: {found}")
        errors = [finding.summary for finding in ran.findings if finding.severity.word == "error"]
        if not found and errors:
            alarms.append(f"{mutant.base}, {mutant.what}: {errors}")
    share = 100 * (harmful - len(missed)) / max(harmful, 1)
    line = f"mutants, {kind}: {share:.0f} % of {harmful} that can misbehave, {len(alarms)} alarms on {len(chosen) - harmful} others"
    record_property("scoreboard", line)
    assert harmful, "this kind changes nothing anywhere"
    assert (missed, alarms) == ([], []), line


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.id)
def test_bases_are_clean(base: Scenario) -> None:
    """What is mutated is right and silent before."""
    ran = run_text(program(base.text))
    assert (ran.code, told(ran)) == (0, [])
