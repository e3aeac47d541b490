"""Tensors on device="npu" stay on the CPU, said once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import torch
import torch_npu
a = torch.zeros(4, device="npu:0")
b = torch.ones(4).to("npu").npu() + torch.ones(4).to(torch.device("npu"))
print(a.device, b.device, b.sum().item(), torch.npu.is_available(), torch.ones(2, device="cpu").device)
"""


def test_npu_is_the_cpu(tmp_path: Path) -> None:
    """Factory functions, to(), npu(), torch.device and the torch_npu import; one line on stderr."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    source = Path(__file__).resolve().parents[2] / "src"
    program = f"import sys; sys.path.insert(0, {str(source)!r}); from npuscope.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", program, "run", str(script)], capture_output=True, text=True,
                          check=False)
    assert done.stdout == "cpu cpu 8.0 True cpu\n"
    assert done.stderr.count("simulated") == 1
