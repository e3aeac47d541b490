"""pyasc: catches the launches of `asc.jit` kernels, takes the IR that pyasc itself produces, binds the arguments.

What is replaced, and why, is in frontends.md 2: the compiler (it would look for the device compiler), the launcher,
the kernel cache on disk (it could return foreign binaries), the runtime library and the host tiling library.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import re
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from npuscope.ascendc.params import Record
from npuscope.errors import UserError
from npuscope.frontends.launch import LaunchRequest, Session, launch
from npuscope.frontends.pyasc_host import host_module
from npuscope.frontends.pyasc_runtime import Runtime
from npuscope.mlir.location import Frame
from npuscope.mlir.program import Program, lower
from npuscope.trace.schema import SourceFrame

SUPPORTED = ((1, 1), (1, 2))
"""pyasc versions at least the first and below the second."""

NAME = "pyasc"


def available() -> bool:
    """Whether pyasc is installed."""
    return importlib.util.find_spec("asc") is not None and _version() is not None


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


class CallSites:
    """Which line calls which `asc.jit` helper, so that an inlined operation gets its call stack back."""

    def __init__(self) -> None:
        self.bodies: dict[tuple[str, str], range] = {}  # (file, function) -> its lines
        self.calls: dict[tuple[str, str], set[Frame]] = {}

    def callers(self, frame: Frame) -> tuple[Frame, ...]:
        """The chain of calls that leads to `frame`, innermost first; it ends where a helper has several callers."""
        chain: list[Frame] = []
        seen = {frame}
        while True:
            key = self._function_of(frame)
            sites = self.calls.get(key, set()) if key else set()
            if len(sites) != 1:
                return tuple(chain)
            frame = next(iter(sites))
            if frame in seen:
                return tuple(chain)
            seen.add(frame)
            chain.append(frame)

    def _function_of(self, frame: Frame) -> tuple[str, str] | None:
        for key, lines in self.bodies.items():
            if key[0] == frame.file and frame.line in lines:
                return key
        return None


def install(session: Session) -> None:
    """Make every later pyasc launch of this process run on the simulated device of `session`.

    Must run before the user's script imports pyasc's runtime. Raises UserError for an unsupported version.
    """
    check_version()
    import asc  # noqa: F401
    from asc.lib.host import loader
    from asc.lib.runtime import state
    from asc.runtime.jit import JITFunction

    hooks = _Hooks(session)
    JITFunction.compiler = hooks.compiler
    JITFunction.launcher = hooks.launcher
    JITFunction._cache_kernel = hooks.cache_kernel
    JITFunction.codegen = hooks.visitor()

    def load_lib() -> None:
        state.lib = Runtime(lambda: session.chip_for(state.soc_verison.value))
        state.npu_utils = SimpleNamespace()

    state.load_lib = load_lib
    loader.Loader.module = host_module(session.chip_for(None))


class _Hooks:
    """The replacements, sharing one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.package = os.path.dirname(os.path.abspath(sys.modules["asc"].__file__ or ""))
        self.sites = CallSites()
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
        """pyasc's code generator, noting call sites and the right first line of a decorated function."""
        from asc.codegen import function_visitor

        sites = self.sites
        base = function_visitor.FunctionVisitor

        class Visitor(base):  # type: ignore[misc, valid-type]
            def call_jit_function(self, function: Any, args: Any, kwargs: Any) -> Any:
                line = getattr(self, "_line", 0)
                caller = Frame(self.location.filename, line, 0, self.src and None)
                file = function.location.filename
                length = function.node.end_lineno or 1
                first = function.location.line_offset + 1
                key = (file, function.node.name)
                sites.bodies[key] = range(first, first + length)
                sites.calls.setdefault(key, set()).add(caller)
                return super().call_jit_function(function, args, kwargs)

            def visit(self, node: Any) -> Any:
                if hasattr(node, "lineno"):
                    self._line = self.location.line_offset + node.lineno
                return super().visit(node)

        function_visitor.FunctionVisitor = Visitor  # nested helpers name the class through the module
        return Visitor

    def compiled(
        self, function: Any, runtime_arguments: dict[str, Any], constexprs: dict[str, Any], codegen: Any, options: Any
    ) -> Compiled:
        """The lowered kernel for these argument types and constants, from memory when it was lowered before."""
        from asc.codegen.specialization import Specialization

        types = {name: function.get_arg_type(value) for name, value in runtime_arguments.items()}
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
        program = lower(str(module), self.is_library, self.session.recorder.add_site, self.sites.callers)
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
        """The user's line that launches: the innermost frame outside pyasc and npuscope."""
        frame = sys._getframe(1)
        own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        while frame is not None:
            file = frame.f_code.co_filename
            if not os.path.abspath(file).startswith((own + os.sep, self.package + os.sep)):
                return SourceFrame(file, frame.f_lineno, 0, frame.f_code.co_name)
            frame = frame.f_back  # type: ignore[assignment]
        return None


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


