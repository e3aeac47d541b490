"""pyasc: catches the launches of `asc.jit` kernels, takes the IR that pyasc itself produces, binds the arguments.

What is replaced, and why, is in frontends.md 2: the compiler (it would look for the device compiler), the launcher,
the kernel cache on disk (it could return foreign binaries), the runtime library and the host tiling library.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import inspect
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from npuscope.ascendc.params import Record
from npuscope.errors import UserError
from npuscope.frontends.heap import Heap
from npuscope.frontends.imports import after_import
from npuscope.frontends.launch import LaunchRequest, Session, launch
from npuscope.frontends.pyasc_runtime import Allocations, Runtime
from npuscope.frontends.stack import user_stack
from npuscope.mlir.program import Program, lower
from npuscope.trace.schema import AFTER_LAUNCH, Site, SourceFrame

SUPPORTED = ((1, 1), (1, 2))
"""pyasc versions at least the first and below the second."""

NAME = "pyasc"
PACKAGE = "asc"
"""What a script imports to use this DSL."""


def _version() -> str | None:
    try:
        return importlib.metadata.version("pyasc")
    except importlib.metadata.PackageNotFoundError:
        return None


def check_version() -> None:
    """Raise UserError when the installed pyasc is not one that this front end knows."""
    found = _version() or "none"
    parts = tuple(int(number) for number in re.findall(r"\d+", found)[:2])
    if not SUPPORTED[0] <= parts < SUPPORTED[1]:
        low, high = (".".join(map(str, version)) for version in SUPPORTED)
        raise UserError(f"pyasc {found} is not supported (needs >={low},<{high}): pip install 'npuscope[pyasc]'")


@dataclass(slots=True)
class Compiled:
    """What stands in for pyasc's compiled kernel: the program and how it is to be launched."""

    program: Program
    cores: str
    options: dict[str, str]
    explicit: list[bool]  # per kernel parameter: does the user pass it


DTYPES = frozenset(
    ["int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
)
"""Element types that pyasc 1.1 can pass to a kernel."""


def install(session: Session) -> None:
    """Make every later pyasc launch of this process run on the simulated device of `session`.

    Nothing happens until the script imports pyasc; an unsupported version is a UserError at that line.
    """
    after_import(PACKAGE, lambda package: _hook(session))


def _hook(session: Session) -> None:
    check_version()
    from asc.codegen.function import Function
    from asc.lib.host import loader
    from asc.lib.runtime import state
    from asc.runtime.jit import JITFunction

    from npuscope.frontends.pyasc_host import host_module

    hooks = _Hooks(session)
    JITFunction.compiler = hooks.compiler
    JITFunction.launcher = hooks.launcher
    JITFunction._cache_kernel = hooks.cache_kernel
    JITFunction.codegen = hooks.visitor()
    Function.get_location = staticmethod(_location)

    heap = session.heap = Heap(
        session.recorder, lambda operation: Site(operation, user_stack(hooks.package)), session.poison
    )
    state.allocs = Allocations(heap)

    def choose(device: int) -> None:
        session.device = device

    def load_lib() -> None:
        state.lib = Runtime(lambda: session.chip_for(state.soc_verison.value), heap, choose)
        state.npu_utils = SimpleNamespace()

    state.load_lib = load_lib
    state.lib = None  # a session before this one may have made it
    loader.Loader.module = host_module(session.chip_for(None))


def _location(function: Any) -> Any:
    """Where a kernel's source starts, such that its ``def`` is line 1 whatever decorators stand above it."""
    from asc.codegen.function import FunctionLocation

    code = function.__code__
    lines, first = inspect.getsourcelines(function)
    above = next((index for index, text in enumerate(lines) if re.match(r"\s*def\s", text)), 1)
    return FunctionLocation(code.co_filename, first + above - 1)


class _Hooks:
    """The replacements, sharing one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.package = os.path.dirname(os.path.abspath(sys.modules["asc"].__file__ or ""))
        hooks = self

        class Compiler:
            """Runs pyasc's own passes and lowers their result."""

            def __init__(self, options: Any) -> None:
                self.options = options

            def run(self, module: Any, name: str) -> Compiled:
                """Lower an MLIR module of pyasc."""
                return hooks.compile(module, name, self.options)

        class Launcher:
            """Runs a lowered kernel."""

            def __init__(self, options: Any) -> None:
                self.options = options

            def run(self, kernel: Compiled, name: str, arguments: tuple[Any, ...]) -> None:
                """Launch with the user's arguments, constexprs removed."""
                hooks.launch(kernel, name, arguments, self.options)

        self.compiler = Compiler
        self.launcher = Launcher
        self._names: tuple[str, ...] = ()
        self._constants: dict[str, str] = {}
        self._programs: dict[tuple[int, str], Compiled] = {}
        self._functions: list[Any] = []  # keeps the ids in _programs unique

        def cache_kernel(
            function: Any, runtime_arguments: dict[str, Any], constexprs: dict[str, Any], codegen: Any, options: Any
        ) -> Compiled:
            return hooks.compiled(function, runtime_arguments, constexprs, codegen, options)

        self.cache_kernel = cache_kernel

    def is_library(self, file: str) -> bool:
        """Whether a source file belongs to pyasc itself."""
        return os.path.abspath(file).startswith(self.package + os.sep)

    def visitor(self) -> type:
        """pyasc's code generator, giving calls of helpers the line that they stand on."""
        from asc.codegen import function_visitor
        from asc.language.core.utils import global_builder

        base = getattr(function_visitor.FunctionVisitor, "stock", function_visitor.FunctionVisitor)

        class Visitor(base):  # type: ignore[misc, valid-type]
            stock = base  # a later session replaces this class, it does not wrap it

            def visit(self, node: Any) -> Any:
                if hasattr(node, "lineno"):
                    self.position = (self.location.line_offset + node.lineno, node.col_offset)
                return super().visit(node)

            @contextmanager
            def visit_region(self) -> Iterator[Any]:
                """Generating a helper leaves the builder elsewhere; the call that follows belongs to this line."""
                with super().visit_region() as region:
                    yield region
                global_builder.get_ir_builder().set_loc(self.location.filename, *self.position)

        function_visitor.FunctionVisitor = Visitor  # nested helpers name the class through the module
        return Visitor

    def compiled(
        self, function: Any, runtime_arguments: dict[str, Any], constexprs: dict[str, Any], codegen: Any, options: Any
    ) -> Compiled:
        """The lowered kernel for these argument types and constants, from memory when it was lowered before."""
        from asc.codegen.specialization import Specialization

        types = {name: _argument_type(function, name, value) for name, value in runtime_arguments.items()}
        self._names = tuple(runtime_arguments)
        self._constants = {name: str(getattr(value, "value", value)) for name, value in constexprs.items()}
        key = (id(function), function._gen_cache_factors(types, constexprs, codegen, options))
        known = self._programs.get(key)
        if known is None or options.always_compile:
            module = function._run_codegen(Specialization(types, constexprs), codegen)
            known = self._programs[key] = function._run_compiler(module, options)
            self._functions.append(function)
        return known

    def compile(self, module: Any, name: str, options: Any) -> Compiled:
        """Run pyasc's pass schedule, print generic MLIR, lower it."""
        from asc._C import ir
        from asc.lib.runtime import state
        from asc.runtime.compiler import CompilePlatform
        from asc.runtime.compiler import Compiler as Stock

        stock = Stock.__new__(Stock)
        stock.options = options
        stock.dump_dir = None
        stock.enable_debug = False
        is_93 = state.soc_verison.value.startswith("Ascend910_93")
        stock.platform = CompilePlatform.Ascend910_93 if is_93 else CompilePlatform.Ascend910B
        if options.run_passes:
            stock.run_passes(module)
        # An argument makes the module invalid, and an invalid module prints in generic form (frontends.md 1).
        module.get_body().add_argument(ir.Builder(module.get_context()).get_i32_type())
        program = lower(str(module), self.is_library, self.session.recorder.add_site)
        kinds = re.findall(r"kernel_arg<?\s*(\w+)", program.entry_attributes.get("arg_attrs", ""))
        explicit = [kind != "ffts_addr" for kind in kinds] or [True] * len(program.parameter_types)
        shown = {"auto_sync": str(options.auto_sync), "kernel_type": getattr(options.kernel_type, "name", "AIV_ONLY")}
        return Compiled(program, core_kind(shown["kernel_type"]), shown, explicit)

    def launch(self, kernel: Compiled, name: str, arguments: tuple[Any, ...], options: Any) -> None:
        """Bind the arguments and run."""
        from asc.lib.runtime import state

        if options.core_num <= 0:
            raise ValueError(f"{name} was launched on {options.core_num} cores; give a number above 0: {name}[8](...)")
        given = iter(zip(self._names, arguments, strict=True))
        bound = [
            self._argument(*next(given)) if explicit else ("ffts_addr", 0) for explicit in kernel.explicit
        ]
        request = LaunchRequest(
            kernel.program, options.core_num, kernel.cores, bound, kernel.options, state.soc_verison.value,
            self._caller(), dict(self._constants),
        )
        launch(self.session, request)
        self._free_runtime_memory()

    def _free_runtime_memory(self) -> None:
        """As pyasc's launcher does: after a launch nothing that `rt.malloc` gave out is left."""
        from asc.lib.runtime import state

        if self.session.heap is not None:
            self.session.heap.free_all(AFTER_LAUNCH)
            state.allocs.clear()

    def _argument(self, name: str, value: Any) -> tuple[str, Any]:
        from asc.language.core.struct import Struct

        if isinstance(value, Struct):
            return name, struct_record(value)
        if isinstance(value, np.generic):
            return name, value.item()
        if isinstance(value, float):
            return name, float(np.float32(value))
        return name, value

    def _caller(self) -> SourceFrame | None:
        """The user's line that launches."""
        return next(iter(user_stack(self.package)), None)


def _argument_type(function: Any, name: str, value: Any) -> Any:
    """pyasc's type for an argument. Raises UserError for one that pyasc cannot pass."""
    what = f"argument {name} of {function.fn.__name__}"
    try:
        found = function.get_arg_type(value)
    except TypeError as error:
        raise UserError(f"{what}: {error}") from None
    dtype = getattr(found, "dtype", None)
    if dtype is not None and dtype.name not in DTYPES:
        raise UserError(f"{what}: pyasc has no dtype {dtype.name}; it takes {', '.join(sorted(DTYPES))}")
    return found


def core_kind(kernel_type: str) -> str:
    """"vector", "cube" or "mixed" from pyasc's KernelType name."""
    if kernel_type in ("MIX_AIC_1_1", "MIX_AIC_1_2"):
        return "mixed" if kernel_type.endswith("2") else "mixed11"
    return "vector" if "AIV" in kernel_type else "cube"


def struct_record(value: Any) -> Record:
    """A pyasc Struct as a record, fields under the names that the IR uses."""
    record = Record(type(value).__name__)
    for name, spec in value.struct_fields.items():
        item = getattr(value, name)
        if isinstance(item, ctypes.Structure):
            item = _ctypes_record(item)
        record.__dict__[spec.ir_name(name)] = item
    return record


def _ctypes_record(value: ctypes.Structure) -> Record:
    record = Record(type(value).__name__)
    for name, *_ in value._fields_:
        item = getattr(value, name)
        record.__dict__[name] = _ctypes_record(item) if isinstance(item, ctypes.Structure) else item
    return record


