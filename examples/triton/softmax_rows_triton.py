"""Softmax of each row, written in Triton for a GPU, unchanged: one program a row, checked against torch."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + offsets, powers / tl.sum(powers, axis=0), mask=mask)


def main() -> None:
    rows, columns = 64, 200
    x = torch.randn(rows, columns, device="cuda")
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, columns, columns, BLOCK=triton.next_power_of_2(columns))
    torch.testing.assert_close(out, torch.softmax(x, dim=1))
    print(f"softmax_rows_triton: {rows} rows equal torch's")


main()
