"""Scripts for "cuda" on a machine without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SCRIPT = """
    import torch
    assert not torch.cuda.is_available()
    import triton
    import triton.language as tl


    @triton.jit
    def double(x, out, B: tl.constexpr):
        o = tl.arange(0, B)
        tl.store(out + o, 2 * tl.load(x + o))


    def call(x):
        assert x.is_cuda
        out = torch.empty_like(x)
        assert out.device == x.device
        with torch.cuda.device(x.device.index):
            double[(1,)](x, out, x.numel())
        return out


    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda")
        def forward(context, x):
            return call(x)

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(context, gradient):
            assert torch.zeros(1, device="cuda").device.type == gradient.device.type == "cuda"
            return call(gradient.contiguous())


    plain = torch.ones(16)
    assert plain.device.type == "cpu" and torch.equal(call(plain), torch.full((16,), 2.0))
    device = triton.runtime.driver.active.get_active_torch_device()
    for x in (torch.ones(16, device="cuda"), plain.cuda(), plain.to("cuda:0"), plain.to(torch.device("cuda")),
              torch.ones(16, device=device), torch.ones(16, device=0), plain.to(device="cuda", dtype=torch.float32)):
        assert x.device == torch.device("cuda", 0) and x.get_device() == 0
        assert torch.equal(call(x).cpu(), torch.full((16,), 2.0))
    x = torch.ones(16, device="cuda", requires_grad=True)
    Double.apply(x).sum().backward()
    assert torch.equal(x.grad, torch.full((16,), 2.0))
    layer = torch.nn.Linear(16, 4, device="cuda").cuda().to("cuda", torch.bfloat16)
    layer(torch.ones(2, 16, device="cuda", dtype=torch.bfloat16)).sum().backward()
    torch.optim.AdamW(layer.parameters()).step()
    with torch.device("cuda"):
        assert torch.zeros(2).is_cuda
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")).dtype == torch.bfloat16
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
    assert torch.cuda.get_device_properties(0).multi_processor_count > 0 and torch.cuda.get_device_name()
    assert torch.cuda.get_device_capability(device) >= (8, 0)
    with torch.cuda.stream(torch.cuda.Stream()) as stream:
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record(), end.record()
    assert start.elapsed_time(end) > 0
    torch.cuda.manual_seed_all(7)
    one = torch.rand(4, device="cuda", generator=torch.Generator(device="cuda").manual_seed(7))
    torch.manual_seed(7)
    assert torch.equal(one, torch.rand(4))
    assert isinstance(torch.default_generator, torch.Generator)
    try:
        torch.zeros(1, device="cuda:1")
    except RuntimeError as error:
        print(error)
    assert torch.ones(2, device="npu:0").npu().sum() == 2 and torch.npu.is_available()
"""


def test_cuda_is_the_cpu(front: Callable[..., Any]) -> None:
    """Tensors, modules, gradients and torch.cuda; a line for each device, and one for the interpreter."""
    done = front("run", SCRIPT, TRITON_INTERPRET="1")
    assert (done.returncode, done.stdout) == (
        0,
        "invalid device ordinal: cuda:1; there is one simulated device, cuda:0\n",
    ), done.stderr
    assert done.stderr.splitlines() == [
        "npuscope: TRITON_INTERPRET=1 is ignored: kernels run here, not in Triton's interpreter",
        'npuscope: torch device "cuda" is simulated: its tensors stay in CPU memory',
        'npuscope: torch device "npu" is simulated: its tensors stay in CPU memory',
    ]


RANDOM = """
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def double(x, out, B: tl.constexpr):
        o = tl.arange(0, B)
        tl.store(out + o, 2 * tl.load(x + o))


    class Buffer:
        \"\"\"A library's own form of a tensor, which repeats what the tensor says of itself.\"\"\"

        def __init__(self, base):
            self.base, self.dtype, self.device, self.shape = base, base.dtype, base.device, tuple(base.shape)

        def data_ptr(self):
            return self.base.data_ptr()

        def untyped_storage(self):
            return self.base.untyped_storage()

        def element_size(self):
            return self.base.element_size()

        def stride(self):
            return self.base.stride()


    x, out = torch.ones(8, device="cuda"), torch.zeros(8, device="cuda")
    assert Buffer(x).device.type == "cuda"
    double[(1,)](Buffer(x), Buffer(out), B=8)
    assert torch.equal(out.cpu(), torch.full((8,), 2.0))

    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    torch.manual_seed(5)
    seed, drawn = generator.get_state().view(torch.int64)
    assert (int(seed), int(drawn)) == (5, 0) == (generator.initial_seed(), 0)
    state = generator.get_state()
    state.view(torch.int64)[1] += 4
    generator.set_state(state)
    assert generator.get_state().view(torch.int64).tolist() == [5, 4]
    print("done")
"""


def test_wrappers_and_random_numbers(front: Callable[..., Any]) -> None:
    done = front("run", RANDOM)
    assert done.returncode == 0, done.stderr
    assert "done" in done.stdout
