"""What Triton kernels say: prints, assertions, and operations that cannot be run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
PRELUDE = """
import torch, triton, triton.language as tl
from triton.language.extra import libdevice
"""
RUNNER = """
import json, os, sys, traceback
from npuscope.frontends import triton as front_end
from npuscope.frontends.launch import Session
lines, faults = [], []
session = Session(print_line=lines.append)
session.recorder.consumers.append(lambda batch: faults.extend(batch.faults))
front_end.install(session)
path = sys.argv[1]
space = {"__name__": "__main__"}
exec(compile(open(path).read(), path, "exec"), space)
errors = []
for call in space["CALLS"]:
    try:
        call()
        errors.append("")
    except Exception as error:
        last = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path][-1]
        errors.append([type(error).__name__, str(error), getattr(error, "exit_code", None), last.lineno])
told = [[fault.code, fault.core, dict(fault.facts)] for fault in faults]
print(json.dumps([lines, told, errors]))
"""


def run(folder: Path, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script in a process of its own."""
    script = folder / "script.py"
    script.write_text(text)
    source = str(Path(__file__).parents[2] / "src")
    settings = {
        **os.environ,
        "PYTHONPATH": source,
        "TRITON_CACHE_DIR": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
        **environment,
    }
    runner = folder / "runner.py"
    runner.write_text(RUNNER)
    command = [sys.executable, str(script)] if environment else [sys.executable, str(runner), str(script)]
    return subprocess.run(command, env=settings, capture_output=True, text=True, timeout=200)


LOUD = (
    PRELUDE
    + """
@triton.jit
def loud(x, y, N: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if pid > 0:
        tl.device_print("pid", pid + 1)
    tl.device_print("v", v, i)
    tl.device_print("bits", tl.load(y + i), hex=True)
    tl.device_print("wide", tl.load(y + i).to(tl.uint8, bitcast=True), v > 1.5)
    if pid == 1:
        tl.device_print("last")
    tl.device_print("scalar", tl.sum(v))

def call():
    loud[(2, 1)](torch.arange(4.0) / 2, torch.tensor([1, -1, 16, -128], dtype=torch.int8), 4)
CALLS = [call]
"""
)


def test_prints_are_those_of_the_interpreter_program_by_program(tmp_path: Path) -> None:
    ours = run(tmp_path, LOUD)
    assert ours.returncode == 0, ours.stderr
    lines, _, errors = json.loads(ours.stdout)
    theirs = run(tmp_path, LOUD + "call()\n", TRITON_INTERPRET="1")
    assert theirs.returncode == 0, theirs.stderr
    assert errors == [""] and lines == theirs.stdout.splitlines()
    assert lines[0].endswith("[0.  0.5 1.  1.5]") and any(line.startswith("(1, 0, 0)") for line in lines)


BAD = (
    PRELUDE
    + """
@triton.jit
def says_no(x, N: tl.constexpr):
    pid = tl.program_id(0)
    v = tl.load(x + pid * N + tl.arange(0, N))
    tl.device_assert(v < 6, "too large")
    if pid == 1:
        assert pid < 1, "not me"

@triton.jit
def unknown_instruction(x):
    v = tl.load(x)
    tl.store(x, tl.inline_asm_elementwise("frob.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1))

@triton.jit
def unwritten_register(x):
    v = tl.load(x)
    tl.store(x, tl.inline_asm_elementwise("mov.b32 $0, nobody;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1))

@tl.core.extern
def mystery(value, _semantic=None):
    table = {(tl.core.dtype("fp32"),): ("__nv_mystery", tl.core.dtype("fp32"))}
    return tl.core.extern_elementwise("", "", [value], table, is_pure=True, _semantic=_semantic)

@triton.jit
def unknown_function(x):
    tl.store(x, mystery(tl.load(x)))

X = torch.arange(8.0)
CALLS = [
    lambda: says_no[(2,)](X, 4), lambda: unknown_instruction[(1,)](X), lambda: unwritten_register[(1,)](X), lambda: unknown_function[(1,)](X),
]
"""
)


def test_assertions_and_what_cannot_be_run_are_named_with_the_line(tmp_path: Path) -> None:
    ours = run(tmp_path, BAD)
    assert ours.returncode == 0, ours.stderr
    _, faults, errors = json.loads(ours.stdout)
    failed = [(core, facts) for code, core, facts in faults if code == "tile_assert"]
    assert [(core, facts["message"], facts.get("from"), facts["lanes"]) for core, facts in failed] == [
        (1, "too large", [2], 2),
        (1, "not me", None, 1),
    ]
    where = {name: BAD.splitlines().index(line) + 1 for name, line in (
        ("instruction", next(line for line in BAD.splitlines() if "frob.f32" in line)),
        ("register", next(line for line in BAD.splitlines() if "nobody" in line)),
        ("function", next(line for line in BAD.splitlines() if "mystery(tl.load" in line)),
    )}  # fmt: skip
    script = str(tmp_path / "script.py")
    assert errors[0] == ""
    for error, place, word in (
        (errors[1], "instruction", "frob.f32"),
        (errors[2], "register", "nobody"),
        (errors[3], "function", "__nv_mystery"),
    ):
        assert error[0] == "Unsupported" and error[2] == 2
        assert error[1].startswith(f"{script}:{where[place]}: ") and word in error[1]


def test_the_command_ends_with_one_line_and_2(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD + "\nCALLS[1]()\n")
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-m", "npuscope", "check", str(tmp_path / "bad.py")], env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 2
    assert "operation tt.elementwise_inline_asm has the PTX instruction frob.f32, which is not supported" in done.stderr
    assert "Traceback" not in done.stderr
