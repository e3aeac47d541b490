"""Kernels that never end: --timeout says where each program stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

SCRIPT = """
    import sys
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def spin(flag, out):
        if tl.program_id(0) % 2 == 1:
            while tl.load(flag, volatile=True) == 0:
                tl.store(out + tl.program_id(0), 1)
        tl.store(out + tl.program_id(0), 2)


    @triton.jit
    def lock(flag, out):
        while tl.atomic_cas(flag, 0, 1) == 1:
            pass
        tl.store(out, 1)


    flag, out = torch.zeros(1, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    kernel = spin if sys.argv[1] == "spin" else lock
    kernel[(6,)](flag, out)
"""


@pytest.mark.parametrize(
    ("verb", "kernel", "stand"),
    [
        ("check", "spin", "programs 1, 3, 5 at {file}:11"),
        ("run", "spin", "programs 1, 3, 5 at {file}:11"),
    ],
)
def test_a_kernel_that_never_ends(front: Callable[..., Any], verb: str, kernel: str, stand: str) -> None:
    """One line with the places, exit code 124."""
    done = front(verb, SCRIPT, "--timeout", "1", after=[kernel])
    assert done.returncode == 124, done.stderr
    line = next(line for line in done.stderr.splitlines() if line.startswith("npuscope: "))
    file = done.args[-2]
    assert line.startswith(f"npuscope: {kernel} did not end within 1 s (--timeout): "), line
    assert stand.format(file=file) in line
    assert "Traceback" not in done.stderr


def test_programs_that_wait_for_each_other_need_no_time_limit(front: Callable[..., Any]) -> None:
    """The lock is never given back: nothing can change any more, and that is seen at once."""
    done = front("check", SCRIPT, after=["lock"])
    assert done.returncode == 1, done.stderr
    assert "lock can never finish" in done.stderr
    assert "[deadlock]" in done.stderr and f"{done.args[-2]}:18" in done.stderr
