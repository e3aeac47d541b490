"""Triton's view of us: a backend that stops at Triton's own IR, and a driver that hands launches on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from types import ModuleType, SimpleNamespace
from typing import Any

from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget
from triton.backends.driver import DriverBase

NAME = "npuscope"
CAPABILITY = 80
"""Compute capability that kernels are told of: the oldest that every library takes for modern."""
LARGE = 1 << 20

Launch = Callable[..., None]
"""Takes (source, text of the IR, grid, arguments by name)."""


@dataclass(frozen=True)
class Options:
    """What a launch may ask of the compiler; what only a GPU would do with it is taken and left alone."""

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    warp_size: int = 32
    maxnreg: int | None = None
    enable_fp_fusion: bool = False
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4b15", "fp8e4nv", "fp8e5")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    extern_libs: tuple[Any, ...] = ()
    debug: bool = True  # device_assert is kept
    sanitize_overflow: bool = False
    arch: str = f"sm{CAPABILITY}"
    backend_name: str = "cuda"
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    enable_iisan: bool = False
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    ir_override: str | None = None

    def hash(self) -> str:
        """A text that differs when the options do."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


OPTION_NAMES = frozenset(field.name for field in fields(Options))


OWN_METADATA = frozenset(["hash", "target", "triton_version", "name", "shared"])
"""What Triton writes beside the options into the facts of a compiled kernel."""


class TolerantOptions(Options):
    """Options that know the names of other backends' options as well.

    Triton hands over every named argument of a launch, those of the kernel too, and writes what it finds here to disk.
    """

    def __init__(self, given: dict[str, Any]) -> None:
        chosen = {name: value for name, value in given.items() if name in OPTION_NAMES and value is not None}
        super().__init__(**{**chosen, "debug": True})  # whoever checks a kernel wants its assertions
        for name, value in given.items():
            if name not in OWN_METADATA:
                plain = value if isinstance(value, (bool, int, float, str)) else None
                self.__dict__.setdefault(name, plain)


class Compiler(BaseBackend):
    """Compiles to the generic text of Triton's IR."""

    binary_ext = "npuscope"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Kernels and libraries test for "cuda" by name, so the target keeps it."""
        return bool(target.backend == "cuda")

    def hash(self) -> str:
        """Part of the key of Triton's own cache."""
        return f"{NAME}-1"

    def parse_options(self, options: dict[str, Any]) -> Options:
        """The options of a launch; unknown ones belong to other backends."""
        return TolerantOptions(options)

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        """No custom types, and a dot of any size."""
        return {"convert_custom_types": _convert_custom_types, "min_dot_size": lambda left, right: (1, 1, 1)}

    def get_module_map(self) -> dict[str, ModuleType]:
        """Where `tl.extra.libdevice` leads."""
        from triton.language.extra.cuda import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context: Any) -> None:
        """None beyond Triton's own."""

    def pack_metadata(self, metadata: Any) -> tuple[()]:
        """The launcher needs none."""
        return ()

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
        """Triton's own simplifications, then the text."""
        stages["ttir"] = _simplify
        stages[self.binary_ext] = _generic_text


def _convert_custom_types(*arguments: Any, **named: Any) -> Any:
    from triton.language.extra.cuda import convert_custom_float8_sm80

    return convert_custom_float8_sm80(*arguments, **named)


def _simplify(module: Any, metadata: dict[str, Any]) -> Any:
    manager = ir.pass_manager(module.context)
    passes.common.add_inliner(manager)
    passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    passes.common.add_canonicalizer(manager)
    passes.ttir.add_combine(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    manager.run(module, "npuscope")
    return module


def _generic_text(module: Any, metadata: dict[str, Any]) -> bytes:
    name = metadata["name"] = module.get_entry_func_name()
    metadata["shared"] = 0
    # An argument makes the module invalid, and an invalid module prints in generic form (frontends.md 1).
    block = module.get_function(name).get_operation().get_block()
    block.add_argument(ir.builder(module.context).get_int32_ty())
    return str(module).encode()


def driver_class(launch: Launch) -> type[DriverBase]:
    """A driver whose launches go to `launch`."""

    class Launcher:
        """Stands for a compiled kernel's launcher."""

        def __init__(self, source: Any, metadata: Any) -> None:
            self.source = source

        def __call__(
            self, x: int, y: int, z: int, stream: Any, text: bytes, packed: Any, metadata: Any, enter: Any, leave: Any,
            *arguments: Any,
        ) -> None:  # fmt: skip
            if enter is not None:
                enter(metadata)
            launch(self.source, text, (x, y, z), arguments)
            if leave is not None:
                leave(metadata)

    class Driver(DriverBase):
        """The only active driver."""

        launcher_cls = Launcher

        def __init__(self) -> None:
            super().__init__()
            self.utils = SimpleNamespace(
                load_binary=lambda name, text, shared, device: (None, text, 0, 0, 1024),
                get_device_properties=lambda device: {
                    "max_shared_mem": LARGE, "multiprocessor_count": 40, "warpSize": 32, "max_num_regs": 65536,
                    "sm_clock_rate": 1000000, "mem_clock_rate": 1000000, "mem_bus_width": 1024,
                },
            )  # fmt: skip

        @classmethod
        def is_active(cls) -> bool:
            """Always."""
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            """Nothing is compiled to C++."""
            return ty

        def get_current_target(self) -> GPUTarget:
            """What kernels are compiled for."""
            return GPUTarget("cuda", CAPABILITY, 32)

        def get_current_device(self) -> int:
            """The only one."""
            return 0

        def set_current_device(self, device: int) -> None:
            """There is only one."""

        def get_current_stream(self, device: int) -> int:
            """Launches run at once, whatever the stream."""
            return 0

        def get_device_capability(self, device: int = 0) -> tuple[int, int]:
            """As the target says."""
            return divmod(CAPABILITY, 10)

        def get_device_interface(self) -> Any:
            """torch's module for the device, simulated."""
            import torch

            return torch.cuda

        def get_active_torch_device(self) -> Any:
            """Where tensors live, as scripts know it."""
            import torch

            return torch.device("cpu" if torch.cuda.is_available() else "cuda:0")

        def get_benchmarker(self) -> Callable[..., Any]:
            """Every configuration is as fast as any other, so that the autotuner takes the first without a run."""
            return lambda call, *, quantiles=None, **named: [1.0] * len(quantiles or (0.5,))

        def get_empty_cache_for_benchmark(self) -> Any:
            """Nothing is timed."""
            return None

        def clear_cache(self, cache: Any) -> None:
            """Nothing is timed."""

    return Driver
