"""Memory that is not what a kernel takes it for: read-only, freed, reached by a number, or not there at all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

BAD = """
    import numpy as np
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def fill(out, B: tl.constexpr):
        tl.store(out + tl.arange(0, B), 1.0)


    fixed = np.zeros(8, np.float32)
    fixed.flags.writeable = False
    fill[(1,)](fixed, B=8)
    assert not fixed.any()


    @triton.jit
    def grouped(addresses, out, B: tl.constexpr):
        source = tl.load(addresses + tl.program_id(0)).to(tl.pointer_type(tl.float32))
        o = tl.arange(0, B)
        tl.store(out + tl.program_id(0) * B + o, tl.load(source + o))


    parts = [torch.full((8,), float(place)) for place in range(4)]
    out = torch.zeros(32)
    addresses = torch.tensor([part.data_ptr() for part in parts])
    grouped[(4,)](addresses, out, B=8)
    assert out.view(4, 8)[:, 0].tolist() == [0, 1, 2, 3]
    print("reached")
    parts[2] = None
    grouped[(4,)](addresses, out, B=8)
"""

LARGE = """
    import resource
    import sys
    import torch
    import triton
    import triton.language as tl
    from torch._subclasses.fake_tensor import FakeTensorMode


    @triton.jit
    def dequantise(x, scale, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
        m = tl.program_id(0) * BM + tl.arange(0, BM)
        n = tl.program_id(1) * BN + tl.arange(0, BN)
        offsets = m[:, None] * N + n[None, :]
        mask = (m[:, None] < M) & (n[None, :] < N)
        tl.store(out + offsets, tl.load(x + offsets, mask=mask).to(tl.float32) * tl.load(scale), mask=mask)


    M, N = 1048576, 6144
    with FakeTensorMode():
        x = torch.empty(M, N, dtype=torch.float8_e4m3fn)
    out = torch.empty(M, N, dtype=torch.bfloat16, device="meta")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    dequantise[(triton.cdiv(M, 128), triton.cdiv(N, 128))](x, torch.ones(1), out, M, N, 128, 128)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_read_only_and_freed(front: Callable[..., Any], tmp_path: Path) -> None:
    """What cannot be written or is not there any more is a finding at the user's line; the rest runs."""
    report = tmp_path / "report.json"
    done = front("check", BAD, "--format", "json", "-o", str(report))
    assert (done.returncode, done.stdout) == (1, "reached\n"), done.stderr
    found = json.loads(report.read_text())["findings"]
    assert sorted(finding["kind"] for finding in found) == ["illegal-read", "write-to-read-only"]
    lines = {finding["kind"]: json.dumps(finding) for finding in found}
    assert "program 2" in lines["illegal-read"] and "tl.load(source + o)" in BAD


def test_a_fake_tensor_is_enough(front: Callable[..., Any]) -> None:
    """6 GB that nobody has: the int32 product in the address is named (program 2730 has the rows from 349,440 on; 349,526
    is the first whose product with 6144 is above 2^31 - 1), and what ran is said."""
    done = front("check", LARGE, "--programs", "2730:2732", "--programs=-1:")
    assert done.returncode == 1, done.stderr
    assert int(done.stdout) < 600
    assert "integer overflow in dequantise" in done.stderr
    named = re.search(r"(\d+) \* 6144 = (\d+) does not fit int32 and becomes (-\d+)\.", done.stderr)
    assert named is not None, done.stderr
    row, product, wrapped = map(int, named.groups())
    assert 349526 <= row < 349440 + 128 * 2 and product == row * 6144 and wrapped == product - 2**32
    assert re.search(r"Partial: dequantise ran only programs 2730:2732, 393215:393216 of 393216\.", done.stderr)
