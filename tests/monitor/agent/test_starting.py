"""Who gets an agent: what the environment asks for, and which programs are launchers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from daemon_process import SOURCE, environment

from npuscope.monitor.agent import autostart, rank, settings
from npuscope.monitor.agent.launchers import is_launcher


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False), ({"NPUSCOPE_AGENT": "1"}, True), ({"NPUSCOPE_AGENT": "0", "MSMONITOR_USE_DAEMON": "1"}, False),
        ({"MSMONITOR_USE_DAEMON": "1"}, True), ({"MSMONITOR_USE_DAEMON": "0"}, False), ({"NPUSCOPE_AGENT": ""}, False),
    ],
)  # fmt: skip
def test_what_the_environment_asks_for(
    variables: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autostart, "_has_torch_npu", lambda: False)  # a simulated one may be there by another test
    assert autostart.wanted(variables) is wanted


def test_torch_npu_obeys_its_own_variable_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autostart, "_has_torch_npu", lambda: True)
    assert not autostart.wanted({"MSMONITOR_USE_DAEMON": "1"}) and autostart.wanted({"NPUSCOPE_AGENT": "1"})


@pytest.mark.parametrize(
    ("line", "launcher"),
    [
        ("python /venv/bin/torchrun --nproc-per-node 2 train.py", True),
        ("python -m torch.distributed.run train.py", True),
        ("python -mtorch.distributed.launch train.py", True),
        ("python -u -X dev -W ignore -m torch.distributed.run x", True),
        ("python /x/site-packages/torch/distributed/run.py train.py", True),
        ("python /venv/bin/vllm serve model", True),
        ("python train.py --launcher torchrun", False),
        ("python -u train.py", False),
        ("python -m train torch.distributed.run", False),
        ("python -c 'import torchrun'", False),
        ("python", False),
    ],
)
def test_launchers_are_told_by_their_program(line: str, launcher: bool) -> None:
    assert is_launcher(line.split()) is launcher


@pytest.mark.parametrize(
    ("variables", "number"),
    [
        ({"RANK": "3", "RANK_ID": "5"}, 3), ({"RANK_ID": "5"}, 5), ({}, -1), ({"RANK": "x", "RANK_ID": "2"}, 2),
        ({"RANK": "-1"}, -1), ({"RANK": " 7 "}, 7),
    ],
)  # fmt: skip
def test_the_rank(variables: dict[str, str], number: int) -> None:
    assert rank.rank(variables) == number


@pytest.mark.parametrize(
    ("word", "seconds"), [("", 1), ("0.2", 0.2), ("soon", 1), ("nan", 1), ("0", 0.05), ("1e9", 50), ("-3", 0.05)]
)
def test_the_period(word: str, seconds: float) -> None:
    assert settings.period({"NPUSCOPE_POLL_SECONDS": word}) == seconds


def test_a_process_without_an_agent_pays_next_to_nothing() -> None:
    words = "import sys; from npuscope.monitor.agent.autostart import on_torch_import as go; go(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", words], env=environment(Path("/tmp")), capture_output=True, text=True, check=True
    )
    assert "numpy" not in done.stdout and "npuscope.monitor.agent.agent" not in done.stdout


def test_an_agent_brings_nothing_heavy(tmp_path: Path) -> None:
    words = "import sys; from npuscope.monitor.agent import start; start(); start(); print(*sys.modules)"
    env = environment(tmp_path, NPUSCOPE_IPC_DIR=str(tmp_path), PYTHONPATH=str(SOURCE))
    done = subprocess.run(
        [sys.executable, "-c", words], env=env, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    found = {name.partition(".")[0] for name in done.stdout.split()}
    assert found & {"torch", "numba", "click", "rich", "pyarrow", "psutil"} == set()
    assert list(tmp_path.iterdir()) == []  # an agent that has nothing to say leaves no log
