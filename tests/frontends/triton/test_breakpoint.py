"""`breakpoint()` in a kernel stops Python's debugger at the user's line, program after program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "src"
SCRIPT = """
import torch, triton, triton.language as tl

@triton.jit
def doubled(x, o, n, B: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * B + tl.arange(0, B)
    v = tl.load(x + offs, mask=offs < n)
    w = v * 2
    breakpoint()
    tl.store(o + offs, w, mask=offs < n)

x, o = torch.arange(8.0), torch.zeros(8)
doubled[(2,)](x, o, 8, B=4)
print("sum", o.sum().item())
"""


def test_the_debugger_sees_the_kernels_variables(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "npuscope", "check", str(script)],
        input="p pid, n\np w\nc\np pid\np (w * 2).tolist()\nc\n",
        env=os.environ | {"PYTHONPATH": str(SOURCE), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        text=True,
        capture_output=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{script}(10)" in done.stdout and "-> breakpoint()" in done.stdout
    assert "(Pdb) (0, 8)" in done.stdout
    assert "array([0., 2., 4., 6.], dtype=float32)" in done.stdout
    assert "(Pdb) 1\n(Pdb) [16.0, 20.0, 24.0, 28.0]" in done.stdout
    assert "sum 56.0" in done.stdout
