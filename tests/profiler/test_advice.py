"""Each rule on a launch made for it: it fires with the right figures, and not where all is well."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from lined import CHIP, on_line, profile
from made_timeline import Maker

from npuscope.errors import UserError
from npuscope.profiler.advice import Advice, Case, advise, load_rules
from npuscope.profiler.profile import Profile
from npuscope.trace.schema import Space
from npuscope.trace.timeline import Lane, Source


def fired(given: Profile, rule: str) -> Advice | None:
    found = [one for one in given.advice if one.rule == rule]
    assert len(found) <= 1
    return found[0] if found else None


def copies(sizes: list[int], address: int = 0) -> Maker:
    """One copy after the other into UB, each of 100 cycles."""
    maker = Maker()
    for at, size in enumerate(sizes):
        number = maker.move("MOV_OUT_TO_UB", Lane.MTE2, 100 * at, 100 * (at + 1), Space.GM, Space.UB, size)
        maker.transfers[-1]["address"] = address + 0x10000 * at
        maker.slices[number]["issue"] = at
        on_line(maker, number, 5)
    maker.core(0, start=0, end=100 * len(sizes))
    return maker


def test_frequency() -> None:
    slow = Profile(copies([32768]).timeline(1000, mhz=0.8 * CHIP.frequency_mhz), CHIP)
    found = fired(slow, "F1")
    assert found is not None and found.gain == pytest.approx(0.2)
    assert fired(Profile(copies([32768]).timeline(1000, mhz=CHIP.frequency_mhz), CHIP), "F1") is None


def test_usage() -> None:
    maker = copies([32768] * 9)
    maker.slice("VADD", Lane.VECTOR, 900, 1000)
    maker.core(0, start=0, end=1000)
    found = fired(profile(maker), "U1")
    assert found is not None and found.text == "aivector compute usage lower than 20%"
    assert found.evidence["VECTOR ratio"] == pytest.approx(0.1) and found.gain is None


def test_bandwidth() -> None:
    """195.27 GB/s is the peak from GM to UB (opprof.md 6.3): at 1650 MHz 118.3 bytes a cycle; here 40.96 are moved."""
    found = fired(profile(copies([4096] * 10)), "P1")
    assert found is not None and found.text == "aiv_mte2 bandwidth utilization lower than 80% when active"
    share = 40.96 / (195.27e9 / 1650e6)
    assert found.evidence["share of the peak while active"] == pytest.approx(share)
    assert found.gain == pytest.approx(1 - share)
    assert fired(profile(copies([11000] * 10)), "P1") is None


def test_unaligned() -> None:
    """512 bytes from address 64 on touch two lines of 512 where one would do: half of the cycles."""
    found = fired(profile(copies([512] * 10, address=64)), "OUR-G1")
    assert found is not None and found.text == "GM address of kernel.py:5 is not 512 B aligned"
    assert found.gain == pytest.approx(0.5) and found.evidence["copies"] == 10
    assert fired(profile(copies([512] * 10, address=1024)), "OUR-G1") is None


def test_small_copies() -> None:
    found = fired(profile(copies([2048] * 10)), "OUR-G2")
    assert found is not None and found.text == "small GM transfers (2048 B median)"
    assert found.gain == pytest.approx(1 - 2048 / (195.27e9 / 1650e6) / 100)
    assert fired(profile(copies([20480] * 10)), "OUR-G2") is None


def test_reloads() -> None:
    maker = copies([20480] * 4)
    for transfer in maker.transfers[1:]:
        transfer["address"] = 0
    found = fired(profile(maker, 400), "OUR-R1")
    assert found is not None and found.evidence["share of all"] == pytest.approx(0.75)
    assert found.gain == pytest.approx(0.75)
    assert fired(profile(copies([20480] * 4)), "OUR-R1") is None


def pipelined(overlap: int) -> Profile:
    """Two copies and two computations of 200 cycles, each computation `overlap` cycles before the copy ends."""
    maker = Maker()
    start = 200 - overlap
    for at in range(2):
        on_line(maker, maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 400 * at, 400 * at + 200), 5)
        maker.slice("VADD", Lane.VECTOR, 400 * at + start, 400 * at + start + 200)
    maker.core(0, start=0, end=800)
    return profile(maker, 800)


def test_overlap() -> None:
    found = fired(pipelined(0), "OUR-D1")
    assert found is not None and found.text == "no overlap of copy and compute: use double buffering"
    assert found.gain == pytest.approx(400 / 800) and found.frames[0].line == 5
    assert fired(pipelined(39), "OUR-D1") is not None  # 19.5 %
    assert fired(pipelined(41), "OUR-D1") is None


def test_waits_for_buffers() -> None:
    maker = Maker()
    maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 0, 300)
    maker.slice("VADD", Lane.VECTOR, 300, 600)
    wait = maker.slice("WAIT_FLAG", Lane.MTE2, 300, 600)
    maker.steps[wait] = replace(
        maker.steps[wait], site=replace(maker.steps[wait].site, name="ascendc.que_bind.alloc_tensor")
    )
    maker.slice("MOV_OUT_TO_UB", Lane.MTE2, 600, 900)
    maker.core(0, start=0, end=1000)
    found = fired(profile(maker), "OUR-Q1")
    assert found is not None and found.evidence["time of the core waited"] == pytest.approx(0.3)
    assert found.gain == pytest.approx(0.3)


def test_barriers() -> None:
    maker = Maker()
    for at in range(4):
        maker.slice("VADD", Lane.VECTOR, 200 * at, 200 * at + 100)
        maker.slice("BAR", Lane.ALL, 200 * at + 100, 200 * at + 200)
    maker.core(0, start=0, end=800)
    found = fired(profile(maker, 800), "OUR-A1")
    assert found is not None and found.evidence["barriers"] == 4
    assert found.gain == pytest.approx(400 / 800)


def test_scalar() -> None:
    maker = Maker()
    maker.slice("GET_VALUE", Lane.SCALAR, 0, 600, issue=0)
    maker.slice("VADD", Lane.VECTOR, 600, 1000, issue=600)
    maker.core(0, start=0, end=1000, scalar_busy=600)
    found = fired(profile(maker), "OUR-S1")
    assert found is not None and found.gain == pytest.approx(0.6)


def test_conflicts() -> None:
    maker = Maker()
    on_line(maker, maker.slice("VADD", Lane.VECTOR, 0, 1000, issue=0, bank_group=200, bank=100), 8)
    found = fired(profile(maker), "OUR-K1")
    assert found is not None and found.text == "UB bank conflicts: see lines kernel.py:8"
    assert found.gain == pytest.approx(0.3) and found.evidence["conflict ratio of the worst core"] == pytest.approx(0.3)


def test_instruction_cache() -> None:
    maker = Maker()
    maker.slice("VADD", Lane.VECTOR, 0, 1000)
    maker.core(0, icache_requests=100, icache_misses=6)
    assert fired(profile(maker), "OUR-I1") is not None
    maker.core(0, icache_misses=5)
    assert fired(profile(maker), "OUR-I1") is None


def test_short_vectors() -> None:
    """64 elements of 4 bytes fill one cycle of the vector unit; here each takes 10."""
    maker = Maker()
    for at in range(100):
        on_line(maker, maker.slice("VADD", Lane.VECTOR, 10 * at, 10 * at + 10, dtype="float32", work=64, issue=at), 3)
    found = fired(profile(maker), "OUR-V1")
    assert found is not None and found.text == "short vector instructions (64 elements median)"
    assert found.gain == pytest.approx(0.9)


def test_cores() -> None:
    cores = CHIP.cores.aiv
    maker = Maker("vector", 8)
    for core in range(8):
        maker.slice("VADD", Lane.VECTOR, 0, 1000, core=core)
    found = fired(profile(maker), "OUR-B1")
    assert found is not None and found.text == f"tail wave uses 8 of {cores} cores"
    assert found.gain == pytest.approx(1 - 8 / cores)
    full = Maker("vector", cores)
    for core in range(cores):
        full.slice("VADD", Lane.VECTOR, 0, 1000, core=core)
    assert fired(profile(full), "OUR-B1") is None


def test_one_slow_core() -> None:
    maker = Maker("vector", 4)
    for core in range(4):
        maker.slice("VADD", Lane.VECTOR, 0, 1000 if core == 2 else 500, core=core)
        maker.core(core, start=0, end=1000 if core == 2 else 500)
    found = fired(profile(maker), "OUR-B2")
    assert found is not None and found.text == "AIV 2 takes 1.60 times as long as the mean vector core"
    assert found.gain == pytest.approx(375 / 1000)


def test_launch_overhead() -> None:
    maker = Maker()
    maker.slice("VADD", Lane.VECTOR, 700, 1000)
    given = Profile(replace(maker.timeline(), overhead=700), CHIP)
    found = fired(given, "OUR-L1")
    assert found is not None and found.gain is None


def test_the_greatest_gain_comes_first() -> None:
    gains = [one.gain for one in profile(copies([2048] * 10, address=64)).advice]
    known = [gain for gain in gains if gain is not None]
    assert len(known) > 2 and known == sorted(known, reverse=True)
    assert gains[len(known) :] == [None] * (len(gains) - len(known))


def test_of_nothing_there_is_nothing_to_say() -> None:
    assert profile(Maker()).advice == []


def test_what_a_source_does_not_know_fires_nothing() -> None:
    """A vendor's dump without addresses, caches and bytes."""
    maker = Maker(source=Source.SIMULATOR)
    number = maker.move("MOV_OUT_TO_UB", Lane.MTE2, 0, 500, Space.GM, Space.UB, 0, hits=-1, misses=-1, victims=-1)
    maker.slices[number] |= {"bytes": -1, "bank": -1, "bank_group": -1, "work": -1}
    assert {one.rule for one in profile(maker).advice} <= {"P1", "OUR-B1", "U1", "ROOFLINE", "OUR-G2"}


RULES = """
from npuscope.profiler.advice import Advice

def rule_copies(case):
    if case.traffic.read > 1000:
        yield Advice("MY-1", "reads much", {"bytes": case.traffic.read}, "1000", gain=0.999)

def rule_quiet(case):
    return None
"""


def test_rules_of_the_user(tmp_path: Path) -> None:
    file = tmp_path / "rules.py"
    file.write_text(RULES)
    rules = load_rules(file)
    assert advise(profile(copies([2048])), rules)[0].rule == "MY-1"
    assert Profile(copies([2048]).timeline(), CHIP, tuple(rules)).advice[0].rule == "MY-1"
    assert list(rules[1](Case(profile(copies([1]))))) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "has no rules"),
        ("def rule_a(case): return 1 / 0", "rule_a: ZeroDivisionError"),
        ("def rule_a(case): return ['no']", "rule_a gives str"),
        ("def rule_a(case): return 5", "rule_a: TypeError"),
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("def (", "SyntaxError"),
    ],
)
def test_rules_that_are_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "rules.py"
    file.write_text(text)
    with pytest.raises(UserError, match=said) as raised:
        advise(profile(copies([2048])), load_rules(file))
    assert str(raised.value).startswith(f"{file}: ") and "\n" not in str(raised.value)


def test_rules_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        load_rules(tmp_path / "none.py")
