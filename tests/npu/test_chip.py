"""Chips against the published figures: hardware.md 1.2 to 1.6, 2.1 and 6.5, where the numbers here were read."""

from __future__ import annotations

import pickle

import pytest

from npuscope.errors import EXIT_USAGE, UserError
from npuscope.npu import chip as chip_module
from npuscope.npu.chip import Chip, chip_names, load_chip
from npuscope.trace.schema import Pipe, Space

KB = 1024
MB = 1024 * 1024

NAMES = [
    "Ascend310P3",
    "Ascend910B1",
    "Ascend910B2",
    "Ascend910B3",
    "Ascend910B4",
    "Ascend910B4-1",
    "Ascend910_9362",
    "Ascend910_9372",
    "Ascend910_9381",
    "Ascend910_9382",
    "Ascend910_9391",
    "Ascend910_9392",
    "Ascend950PR",
    "Ascend950PR_9599",
]


def test_every_chip_is_known() -> None:
    assert chip_names() == NAMES


@pytest.mark.parametrize(
    ("name", "family", "arch", "split", "aic", "aiv", "mhz", "l2"),
    [
        ("Ascend910B1", "A2", "2201", True, 24, 48, 1850, 192 * MB),
        ("Ascend910B2", "A2", "2201", True, 24, 48, 1800, 192 * MB),
        ("Ascend910B3", "A2", "2201", True, 20, 40, 1800, 192 * MB),
        ("Ascend910B4", "A2", "2201", True, 20, 40, 1650, 96 * MB),
        ("Ascend910B4-1", "A2", "2201", True, 20, 40, 1650, 168 * MB),
        ("Ascend910_9362", "A3", "2201", True, 20, 40, 1800, 168 * MB),
        ("Ascend910_9372", "A3", "2201", True, 20, 40, 1800, 192 * MB),
        ("Ascend910_9381", "A3", "2201", True, 24, 48, 1800, 192 * MB),
        ("Ascend910_9382", "A3", "2201", True, 24, 48, 1800, 192 * MB),
        ("Ascend910_9391", "A3", "2201", True, 24, 48, 1850, 192 * MB),
        ("Ascend910_9392", "A3", "2201", True, 24, 48, 1850, 192 * MB),
        ("Ascend310P3", "310P", "2002", False, 8, 7, 1060, 16 * MB),
        ("Ascend950PR", "A5", "3510", True, 32, 64, 1650, 128 * MB),
    ],
)
def test_cores_clock_and_l2(
    name: str, family: str, arch: str, split: bool, aic: int, aiv: int, mhz: int, l2: int
) -> None:
    chip = load_chip(name)
    assert (chip.name, chip.family, chip.arch, chip.split) == (name, family, arch, split)
    assert (chip.cores.aic, chip.cores.aiv, chip.frequency_mhz, chip.l2.bytes) == (aic, aiv, mhz, l2)
    assert chip.max_blocks == 65535


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("Ascend910")])
def test_memories_of_2201(name: str) -> None:
    memories = load_chip(name).memories
    assert (memories.ub.bytes, memories.ub.user_bytes, memories.ub.alignment) == (196608, 196608, 32)
    assert (memories.l1.bytes, memories.l1.alignment) == (512 * KB, 32)
    assert (memories.l0a.bytes, memories.l0b.bytes, memories.l0a.alignment, memories.l0b.alignment) == (
        64 * KB,
        64 * KB,
        512,
        512,
    )
    assert (memories.l0c.bytes, memories.l0c.alignment) == (128 * KB, 64)
    assert (memories.bt.bytes, memories.bt.alignment) == (1 * KB, 64)
    assert (memories.fb.bytes, memories.fb.user_bytes, memories.fb.alignment) == (7 * KB, 2 * KB, 64)
    assert memories.ssb.bytes == 0


def test_memories_of_2002() -> None:
    memories = load_chip("310P3").memories
    assert (memories.ub.bytes, memories.ub.user_bytes) == (262144, 262144)
    assert (memories.l1.bytes, memories.l0a.bytes, memories.l0b.bytes) == (1 * MB, 64 * KB, 64 * KB)
    assert (memories.l0c.bytes, memories.bt.bytes, memories.fb.bytes) == (256 * KB, 0, 0)


def test_memories_of_3510() -> None:
    memories = load_chip("950PR").memories
    assert (memories.ub.bytes, memories.ub.user_bytes) == (262144, 253952)
    assert (memories.l1.bytes, memories.l0a.bytes, memories.l0b.bytes) == (512 * KB, 64 * KB, 64 * KB)
    assert (memories.l0c.bytes, memories.bt.bytes) == (256 * KB, 4 * KB)
    assert (memories.fb.bytes, memories.fb.user_bytes) == (16 * KB, 4 * KB)
    assert memories.ssb.bytes == 3 * KB


def test_mixed_kernels_lose_the_reserve() -> None:
    memories = load_chip("910B1").memories
    assert (memories.ub.limit(mix=False), memories.ub.limit(mix=True)) == (196608, 196352)
    assert (memories.l1.limit(mix=False), memories.l1.limit(mix=True)) == (524288, 524032)
    assert memories.l0a.limit(mix=True) == 65536


def test_memory_of_a_space() -> None:
    chip = load_chip("910B1")
    assert chip.memory(Space.UB) is chip.memories.ub
    assert chip.memory(Space.L0C) is chip.memories.l0c
    with pytest.raises(KeyError, match="GM"):
        chip.memory(Space.GM)


@pytest.mark.parametrize("name", ["910B1", "910B4", "910B4-1", "910_9362"])
def test_l2_geometry_makes_its_size(name: str) -> None:
    l2 = load_chip(name).l2
    assert l2.line_bytes == 512
    assert l2.ways == 24
    assert l2.sets is not None
    assert l2.line_bytes * l2.ways * l2.sets == l2.bytes


def test_unpublished_l2_geometry_is_none() -> None:
    l2 = load_chip("310P3").l2
    assert (l2.line_bytes, l2.ways, l2.sets) == (None, None, None)


def test_scalar_caches() -> None:
    a2, a5 = load_chip("910B1").dcache, load_chip("950PR").dcache
    assert (a2.aic.bytes, a2.aiv.bytes, a2.aic.line_bytes, a2.aiv.line_bytes) == (16 * KB, 32 * KB, 64, 64)
    assert (a5.aic.bytes, a5.aiv.bytes, a5.aic.line_bytes, a5.aiv.line_bytes) == (32 * KB, 32 * KB, 64, 64)


def test_identifiers() -> None:
    a2, a5, inference = (load_chip(name).identifiers for name in ("910B1", "950PR", "310P3"))
    assert (a2.event_ids, a2.cross_core_flags, a2.cross_core_depth, a2.mutex_ids) == (8, 16, 15, 0)
    assert (a5.event_ids, a5.cross_core_flags, a5.mode4_flags_aic, a5.mode4_flags_aiv, a5.mutex_ids) == (
        8,
        16,
        32,
        16,
        32,
    )
    assert (inference.event_ids, inference.cross_core_flags, inference.mutex_ids) == (8, 0, 0)


@pytest.mark.parametrize(
    ("path", "on_2201", "on_3510", "on_2002"),
    [
        ("gm_to_ub", True, True, True),
        ("gm_to_l1", True, True, True),
        ("gm_to_l0a", True, False, True),
        ("gm_to_l0b", True, False, True),
        ("l1_to_bt", True, True, False),
        ("l1_to_fb", True, True, False),
        ("l1_to_gm", True, False, True),
        ("l1_to_ub", False, True, True),
        ("ub_to_l1", False, True, True),
        ("ub_to_gm", True, True, True),
        ("l0c_to_gm", True, True, False),
        ("l0c_to_l1", True, True, False),
        ("l0c_to_ub", False, True, True),
        ("fill_l1", True, True, True),
        ("fill_l0a", True, False, True),
    ],
)
def test_which_paths_exist(path: str, on_2201: bool, on_3510: bool, on_2002: bool) -> None:
    assert [load_chip(name).has(path) for name in ("910B1", "950PR", "310P3")] == [on_2201, on_3510, on_2002]


@pytest.mark.parametrize(
    ("name", "path", "pipe", "port", "ceiling"),
    [
        ("910B1", "gm_to_ub", Pipe.MTE2, 128, 220.06),
        ("910B2", "gm_to_ub", Pipe.MTE2, 128, 214.11),
        ("910B3", "gm_to_l1", Pipe.MTE2, 256, 256.86),
        ("910B4-1", "ub_to_gm", Pipe.MTE3, 128, 176.75),
        ("910_9391", "l1_to_l0b", Pipe.MTE1, 128, 210.5),
        ("910B1", "l1_to_bt", Pipe.MTE1, 32, None),
        ("950PR", "l1_to_l0b", Pipe.MTE1, 256, 377.77),
        ("950PR", "l0c_to_ub", Pipe.FIX, 128, 189.02),
        ("950PR", "l0c_to_l1", Pipe.FIX, 128, None),
        ("310P3", "l0c_to_ub", Pipe.V, 128, None),
    ],
)
def test_pipe_port_and_ceiling_of_a_path(
    name: str, path: str, pipe: Pipe, port: int, ceiling: float | None
) -> None:
    found = load_chip(name).path(path)
    assert found is not None
    assert (found.pipe, found.port, found.ceiling) == (pipe, port, ceiling)


@pytest.mark.parametrize("name", NAMES)
def test_no_ceiling_above_its_port(name: str) -> None:
    """Two public numbers for one path must not contradict each other: GB/s over MHz is bytes per cycle."""
    chip = load_chip(name)
    too_fast = [
        path.name
        for path in chip.paths
        if path.ceiling is not None and path.port is not None and path.ceiling * 1000 / chip.frequency_mhz > path.port
    ]
    assert too_fast == []
    assert any(path.ceiling for path in chip.paths) == (chip.arch != "2002")


def test_bandwidth_of_the_chip() -> None:
    rates = {name: load_chip(name).bandwidth for name in ("910B1", "910B2", "910B4", "910_9382", "950PR")}
    assert {name: rate.gm for name, rate in rates.items()} == {
        "910B1": 1800.0,
        "910B2": 1750.0,
        "910B4": 800.0,
        "910_9382": 1800.0,
        "950PR": 1600.0,
    }
    assert (rates["910B1"].l2, rates["910B2"].l2, rates["910B4"].l2) == (8000.0, 7780.0, 4000.0)


def test_system_counter() -> None:
    assert [load_chip(name).system_counter_mhz for name in ("910B4", "950PR", "310P3")] == [50, 1000, None]


def test_features() -> None:
    assert load_chip("950PR").has("simt")
    assert load_chip("950PR").has("mutex")
    assert not load_chip("910B1").has("simt")
    assert load_chip("910B1").has("cross_core_flags")
    assert not load_chip("310P3").has("cross_core_flags")


@pytest.mark.parametrize("name", ["910B1", "910b1", "Ascend910B1", "ascend910b1", "ASCEND910B1", " 910B1 "])
def test_spellings_of_one_chip(name: str) -> None:
    assert load_chip(name) is load_chip("Ascend910B1")


@pytest.mark.parametrize("name", ["Ascend950PR_9589", "950PR_9589", "ascend950pr_958B", "950pr"])
def test_parts_of_950(name: str) -> None:
    assert load_chip(name).name == "Ascend950PR"


@pytest.mark.parametrize("name", ["Ascend910A", "910", "", "Ascend950PR_9592"])
def test_unknown_chip_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UserError) as raised:
        load_chip(name)
    assert str(raised.value) == f"unknown chip {name!r}; known chips: {', '.join(NAMES)}"
    assert raised.value.exit_code == EXIT_USAGE


@pytest.mark.parametrize("name", NAMES)
def test_a_chip_is_a_value(name: str) -> None:
    chip = load_chip(name)
    copy: Chip = pickle.loads(pickle.dumps(chip))
    assert copy == chip
    assert hash(copy) == hash(chip)


def test_extending_replaces_single_values_and_drops_aliases() -> None:
    tables = {
        "old": {"name": "Old", "aliases": ["O"], "cores": {"aic": 1, "aiv": 2}},
        "new": {"extends": "old", "name": "New", "cores": {"aiv": 4}},
    }
    assert chip_module._resolve("new", tables) == {"name": "New", "cores": {"aic": 1, "aiv": 4}}
    assert tables["old"]["cores"] == {"aic": 1, "aiv": 2}


def test_extending_in_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match="circle: a -> b -> a"):
        chip_module._resolve("a", {"a": {"extends": "b"}, "b": {"extends": "a"}})


def test_extending_a_missing_file_is_refused() -> None:
    with pytest.raises(ValueError, match="a: no chip file named b"):
        chip_module._resolve("a", {"a": {"extends": "b"}})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"aic": 1, "aiv": 2}, "x: missing or unknown keys: aiv_per_aic"),
        ({"aic": 1, "aiv": 2, "aiv_per_aic": 2, "aix": 3}, "x: missing or unknown keys: aix"),
        ({"aic": "1", "aiv": 2, "aiv_per_aic": 2}, "x.aic: int is expected, found '1'"),
    ],
)
def test_a_malformed_file_is_refused(table: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chip_module._record(chip_module.Cores, table, "x")
