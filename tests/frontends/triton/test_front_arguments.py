"""What scripts pass to kernels, and how they launch them, as Triton's own documentation has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SCRIPT = """
    import numpy as np
    import torch
    import triton
    import triton.language as tl
    from triton.tools.tensor_descriptor import TensorDescriptor

    SCALE = tl.constexpr(3)


    @triton.jit
    def scaled(x, y, out, n, B: tl.constexpr, alpha=1.0):
        o = tl.program_id(0) * B + tl.arange(0, B)
        m = o < n
        tl.store(out + o, tl.load(x + o, mask=m) + alpha * SCALE * tl.load(y + o, mask=m), mask=m)


    a, b, c = np.arange(100, dtype=np.float32), np.ones(100, np.float32), np.zeros(100, np.float32)
    scaled[(np.int64(2),)](a, b, c, np.int32(100), B=64, alpha=np.float32(2), num_warps=8, num_stages=2, num_ctas=1,
                           multibuffer=True)  # the last is an option of NPUs
    assert np.array_equal(c, a + 6)
    strided = np.zeros(200, np.float32)
    scaled[(2,)](a, b, torch.zeros(100), 100, 64)
    scaled[lambda meta: (triton.cdiv(100, meta["B"]),)](x=a[:50], y=b, out=strided, n=50, B=32)
    assert np.array_equal(strided[:50], a[:50] + 3) and not strided[50:].any()
    print("arrays")


    @triton.jit
    def described(source, target, M: tl.constexpr, N: tl.constexpr):
        row = tl.program_id(0) * M
        target.store([row, 0], source.load([row, 0]) * 2)


    x, out = torch.randn(32, 16), torch.empty(32, 16)
    described[(4,)](TensorDescriptor.from_tensor(x, [8, 16]), TensorDescriptor.from_tensor(out, [8, 16]), 8, 16)
    assert torch.equal(out, 2 * x)
    print("descriptors")


    @triton.jit
    def tuples(pair, out, extra, B: tl.constexpr):
        o = tl.arange(0, B)
        value = tl.load(pair[0] + o) + tl.load(pair[1] + o)
        if extra is not None:
            value += tl.load(extra + o)
        tl.store(out + o, value)


    out = torch.zeros(32)
    tuples[(1,)]((torch.ones(32), torch.arange(32.0)), out, None, B=32)
    assert torch.equal(out, torch.arange(32.0) + 1)
    tuples[(1,)]((np.ones(32, np.float32), torch.arange(32.0)), out, torch.ones(32), B=32)
    assert torch.equal(out, torch.arange(32.0) + 2)
    print("tuples")

    hooked = []


    @triton.autotune(
        configs=[
            triton.Config({"B": 32}, num_warps=2),
            triton.Config({"B": 64}, pre_hook=lambda names: hooked.append(names["B"])),
            triton.Config({"B": 128}, pre_hook=lambda names: hooked.append(names["B"])),
        ],
        key=["n"], reset_to_zero=["out"], restore_value=["count"],
        prune_configs_by={"early_config_prune": lambda configs, names, **more: configs},
    )
    @triton.heuristics({"EVEN": lambda names: names["n"] % names["B"] == 0})
    @triton.jit
    def tuned(x, count, out, n, B: tl.constexpr, EVEN: tl.constexpr):
        tl.static_assert(B >= 64)
        o = tl.program_id(0) * B + tl.arange(0, B)
        m = o < n
        tl.atomic_add(out + o, tl.load(x + o, mask=m), mask=m)
        tl.store(count + o, tl.load(count + o, mask=m) + 1, mask=m)


    out, count = torch.ones(100), torch.zeros(100)
    grid = lambda names: (triton.cdiv(100, names["B"]),)
    tuned[grid](torch.ones(100), count, out, 100)
    assert tuned.best_config.kwargs == {"B": 64} and set(hooked) == {64}
    assert out.eq(1).all() and count.eq(1).all()  # reset once, run once
    tuned[grid](torch.ones(100), count, out, 100)
    assert out.eq(2).all() and count.eq(2).all()  # tuned already
    print("tuning")

    kernel = scaled.warmup(torch.float32, torch.float32, torch.float32, 100, B=64, grid=(1,))
    assert "tt.load" in kernel.asm["ttir"]
    runs = []
    assert triton.testing.do_bench(lambda: runs.append(1)) == triton.testing.do_bench(lambda: runs.append(1))
    assert len(triton.testing.do_bench(lambda: runs.append(1), quantiles=[0.5, 0.2, 0.8])) == 3 and len(runs) == 3
    driver = triton.runtime.driver.active
    assert driver.utils.get_device_properties(driver.get_current_device())["multiprocessor_count"] > 0
    assert driver.get_current_target().backend == "cuda"
    scaled[(0,)](a, b, c, 100, B=64)
    for grid in ((1.5,), (-1,)):
        try:
            scaled[grid](a, b, c, 100, B=64)
        except Exception as error:
            print(error)
    try:
        exec("@triton.jit\\ndef nowhere(x):\\n    pass")
    except ValueError as error:
        print(error)
"""


def test_arguments_and_launches(front: Callable[..., Any]) -> None:
    """Arrays, scalars, descriptors, tuples, tuning, measuring; grids that are none."""
    done = front("run", SCRIPT)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            "arrays", "descriptors", "tuples", "tuning",
            "scaled: the grid's extents must be whole numbers, got (1.5, 1, 1)",
            "scaled: a grid has no negative extents, got (-1, 1, 1)",
            "@jit functions should be defined in a Python file",
        ],
    ), done.stderr  # fmt: skip
    assert done.stderr == "npuscope: scaled was launched with the empty grid (0, 1, 1): nothing runs\n"
