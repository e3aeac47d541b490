"""A kernel in twenty lines, to see what a check costs from the start to the end of the process."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


n = 10_000  # not a multiple of the block
x, y = torch.rand(n), torch.rand(n)
z = torch.empty(n)
add[(triton.cdiv(n, 1024),)](x, y, z, n, 1024)
assert torch.equal(z, x + y)
