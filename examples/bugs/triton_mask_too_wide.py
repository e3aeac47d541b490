"""The mask compares offsets inside the block with the length of the whole tensor, so the last program runs past it."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    start = tl.program_id(0) * BLOCK
    mask = lanes < n  # should be start + lanes
    x = tl.load(x_ptr + start + lanes, mask=mask)
    tl.store(out_ptr + start + lanes, x * factor, mask=mask)


def main() -> None:
    n = 1000
    x, out = torch.randn(n), torch.empty(n)
    scale_kernel[(triton.cdiv(n, 256),)](x, out, n, 2.0, BLOCK=256)
    print("triton_mask_too_wide: all right to the eye:", torch.equal(out, x * 2))


main()
