"""profile.json holds what the launch is, with its provenance; what is not known is null."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from lined import CHIP, on_line, profile
from made_timeline import Maker

from npuscope.profiler.profile import Profile
from npuscope.report.profile import document
from npuscope.report.profile.document import profile_json
from npuscope.trace.schema import Space
from npuscope.trace.timeline import Lane, Loss, Source


def read(*profiles: Profile) -> dict[str, Any]:
    return json.loads(profile_json(profiles))


def test_a_launch() -> None:
    maker = Maker("vector", 2)
    for core in range(2):
        copy = maker.move("MOV_OUT_TO_UB", Lane.MTE2, 100, 500, Space.GM, Space.UB, 8192, core=core, hits=4, misses=12)
        maker.slices[copy] |= {"bytes": 8192, "issue": 100}
        on_line(maker, copy, 7)
        on_line(maker, maker.slice("VADD", Lane.VECTOR, 500, 800, core=core), 9)
    found = read(profile(maker, 800))
    assert (found["format"], found["version"], found["partial"]) == ("npuscope profile", 1, False)
    launch = found["launches"][0]
    assert (launch["kernel"], launch["cycles"], launch["time_us"], launch["provenance"]) == (
        "made",
        800,
        800 / 1650,
        "modelled",
    )
    assert launch["cores"] == ["AIV 0", "AIV 1"]
    assert launch["pipes"]["MTE2"] == {"busy": 800, "wait": 0, "instructions": 2, "overlap": 0}
    assert launch["traffic"] == {"gm_read": 16384, "gm_written": 0, "l2_hits": 8, "l2_misses": 24}
    assert launch["critical_path"] == {"MTE2": 400, "VECTOR": 300, "start": 100}
    assert launch["bound"] == {
        "resource": "MTE2",
        "text": "Bound by copies into the core (MTE2): 50 % of the critical path.",
    }
    line = launch["lines"][0]
    assert (line["file"], line["line"], line["critical"], line["cycles"], line["bytes"]) == (
        "kernel.py",
        7,
        400,
        800,
        16384,
    )
    light = {bar["name"]: bar["share"] for bar in launch["speed_of_light"]}
    assert light["MTE2"] == 0.5 and light["VECTOR"] == 300 / 800
    seconds = 800 / 1650e6
    assert abs(light["GM"] - 24 * 512 / seconds / (CHIP.bandwidth.gm * 1e9)) < 1e-9
    assert set(launch["tables"]) >= {"OpBasicInfo", "PipeUtilization", "Memory", "L2Cache"}


def test_what_is_not_known_is_null() -> None:
    maker = Maker(source=Source.SIMULATOR)
    maker.move("MOV_OUT_TO_UB", Lane.MTE2, 0, 500, Space.GM, Space.UB, 64, hits=-1, misses=-1, victims=-1)
    launch = read(profile(maker))["launches"][0]
    assert launch["provenance"] == "vendor simulator"
    assert launch["traffic"]["l2_hits"] is None
    assert next(bar for bar in launch["speed_of_light"] if bar["name"] == "GM")["share"] is None


def test_a_loss_makes_it_partial() -> None:
    maker = Maker()
    maker.slice("VADD", Lane.VECTOR, 0, 10)
    timeline = replace(maker.timeline(), losses=(Loss("popped", "Core 1: popped log is missing", 1, Lane.CUBE, 3, 9),))
    found = read(Profile(timeline, CHIP))
    assert found["partial"] and found["launches"][0]["partial"]
    loss = found["launches"][0]["losses"][0]
    assert (loss["text"], loss["lane"], loss["count"], loss["total"]) == ("Core 1: popped log is missing", "CUBE", 3, 9)


def test_a_launch_in_which_nothing_ran() -> None:
    launch = read(profile(Maker()))["launches"][0]
    assert launch["lines"] == [] and launch["advice"] == [] and launch["critical_path"] == {}
    assert launch["bound"]["resource"] == "nothing"


def test_every_field_is_described() -> None:
    maker = Maker()
    on_line(maker, maker.slice("VADD", Lane.VECTOR, 0, 1000), 3)
    on_line(maker, maker.move("MOV_OUT_TO_UB", Lane.MTE2, 900, 1000, Space.GM, Space.UB, 64), 4)
    found = read(profile(maker))
    launch = found["launches"][0]
    names = {
        *found,
        *launch,
        *launch["lines"][0],
        *launch["advice"][0],
        *launch["speed_of_light"][0],
        *launch["pipes"]["MTE2"],
    }
    described = set(re.findall(r"``(\w+)``", document.__doc__ or ""))
    assert names <= described
