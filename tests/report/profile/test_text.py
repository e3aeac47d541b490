"""The terminal's pages say what the figures are, and that they are modelled."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from lined import CHIP, on_line, profile
from made_timeline import Maker

from npuscope.errors import UserError
from npuscope.profiler.profile import Profile
from npuscope.report.profile.text import PAGES, on_board_text, profile_text, simulator_text
from npuscope.trace.schema import Space
from npuscope.trace.timeline import Lane, Loss, Source


def made() -> Maker:
    maker = Maker("vector", 2)
    for core in range(2):
        copy = maker.move("MOV_OUT_TO_UB", Lane.MTE2, 100, 500, Space.GM, Space.UB, 8192, core=core)
        maker.slices[copy] |= {"issue": 100, "bytes": 8192}
        on_line(maker, copy, 7)
        on_line(maker, maker.slice("VADD", Lane.VECTOR, 500, 800, core=core), 9)
    return maker


def test_summary() -> None:
    text = profile_text([profile(made(), 800)])
    assert text.startswith("made: 0.48 us (modelled), 800 cycles at 1650 MHz, 2 blocks on 2 of 40 cores, Ascend910B4\n")
    assert (
        "Bound by copies into the core (MTE2): 50 % of the critical path. (MTE2 50 %, VECTOR 38 %, start 12 %)" in text
    )
    assert re.search(r"MTE2 +█{12} +50 %  400 cycles busy, mean of 2 cores", text)
    assert re.search(r"kernel.py:7 +400 +50 %", text)
    assert "Performance Summary Report:" in text and "[estimated gain" in text


@pytest.mark.parametrize("page", list(PAGES))
def test_every_page_says_that_it_is_modelled(page: str) -> None:
    text = profile_text([profile(made(), 800)], page)
    assert "(modelled)" in text and text.endswith("\n")


def test_pages() -> None:
    given = [profile(made(), 800)]
    assert re.search(r"0x0 MTE2 +MOV_OUT_TO_UB +400 cycles in 1 runs", profile_text(given, "source"))
    assert re.search(r"core0.veccore0 .* 50 % \+0 %", profile_text(given, "pipe"))
    assert "[U1]" in profile_text(given, "details") or "[OUR-D1]" in profile_text(given, "details")


def test_a_page_that_there_is_not() -> None:
    with pytest.raises(UserError, match="no page 'x'; there are summary, details, source, memory, pipe"):
        profile_text([], "x")


def test_losses_come_first() -> None:
    timeline = replace(made().timeline(), losses=(Loss("popped", "Core 1: popped log is missing"),))
    assert profile_text([Profile(timeline, CHIP)]).splitlines()[1] == "  PARTIAL: Core 1: popped log is missing"


def test_instructions_where_no_lines_are_known() -> None:
    maker = Maker()
    maker.slice("VADD", Lane.VECTOR, 100, 1000, issue=100)
    text = profile_text([profile(maker)])
    assert "Instructions to fix first" in text and re.search(r"0x0 VADD +900 +90 %  VECTOR", text)


def test_after_a_simulator_s_run() -> None:
    """Columns of 20 (opprof.md 1.8); a core's whole time, and that in which some pipe worked."""
    maker = made()
    maker.slice("VADD", Lane.VECTOR, 1625, 1750, core=1)
    assert simulator_text(profile(maker, 1750)).splitlines() == [
        "Core operator results run in simulator as follow:",
        "core_name           duration_time(us)   running_time(us)",
        "core0.veccore0      0.42                0.42",
        "core1.veccore0      1.00                0.50",
        "All figures are modelled.",
    ]


def test_after_a_run_on_board() -> None:
    text = on_board_text(profile(made(), 800))
    assert "Operator Basic Information:" in text and "Performance Summary Report:\n  1. " in text
    assert text.endswith("All figures are modelled.\n")


def test_figures_of_a_simulator() -> None:
    """What its dumps say is not modelled here."""
    timeline = replace(made().timeline(800), source=Source.SIMULATOR)
    assert simulator_text(Profile(timeline, CHIP)).endswith("All figures come from a vendor simulator.\n")
