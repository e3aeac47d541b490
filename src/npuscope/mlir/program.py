"""Lowering of a kernel: from the op tree to one Python function per `func.func`, at the user's own file and lines."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from npuscope.errors import Unsupported
from npuscope.mlir.dialects import Lowering, lowerings
from npuscope.mlir.location import Frame, inherit_locations, user_frames
from npuscope.mlir.reader import Op, Value, parse_module
from npuscope.trace.schema import Site, SourceFrame

AddSite = Callable[[Site], int]
IsLibrary = Callable[[str], bool]


@dataclass(slots=True)
class Program:
    """A lowered kernel. `entry` is a generator function ``entry(core, *arguments)``; `parameter_types` the raw MLIR
    types of its arguments; `source` the generated text (for people who look inside)."""

    name: str
    entry: Callable[..., Any]
    parameter_types: list[str]
    module: Op
    source: str
    code: CodeType
    attributes: dict[str, str] = field(default_factory=dict)  # of the module
    entry_attributes: dict[str, str] = field(default_factory=dict)  # of the kernel's func.func


class Writer:
    """Writes the Python text of one function, remembering which user line each written line stands for.

    Dialect files call :meth:`emit`, :meth:`use`, :meth:`define`, :meth:`constant`, :meth:`site` and :meth:`body`.
    """

    def __init__(
        self, is_library: IsLibrary, add_site: AddSite, table: Mapping[str, Lowering] | None = None
    ) -> None:
        self.table = lowerings() if table is None else table
        self.is_library = is_library
        self.add_site = add_site
        self.lines: list[str] = []
        self.frames: list[Frame | None] = []
        self.globals: dict[str, Any] = {}
        self.while_depth = 0
        self.varying: set[int] = set()  # ids of values that change from turn to turn of the while loops around
        self.address_dtypes: dict[int, Any] = {}  # of values that hold tensor addresses: the tensors' element types
        self.may_stall = False  # the program waits for event flags itself, so that a pipe may stall (npu.sync)
        self._names: dict[int, str] = {}
        self._constants: dict[int, str] = {}
        self._kept: list[Any] = []  # constants stay alive so that their ids stay theirs
        self._indent = 0
        self._count = 0
        self._op: Op | None = None
        self._site_of: dict[int, int] = {}
        self.kernel_file: str | None = None

    # -- values ------------------------------------------------------------------------------------------------

    def use(self, value: Value) -> str:
        """The Python expression for an SSA value."""
        return self._names[id(value)]

    def uses(self, values: list[Value]) -> list[str]:
        """The Python expressions for several SSA values."""
        return [self._names[id(value)] for value in values]

    def define(self, value: Value) -> str:
        """A new local variable for an SSA value; it carries the user's variable name when that is known."""
        self._count += 1
        hint = value.hint if value.hint and value.hint.isidentifier() else "v"
        name = self._names[id(value)] = f"{hint}_{self._count}"
        return name

    def alias(self, value: Value, expression: str) -> None:
        """Let an SSA value stand for an existing expression (a literal or another local)."""
        self._names[id(value)] = expression

    def constant(self, item: Any, hint: str = "k") -> str:
        """A global of the generated function that holds `item`."""
        name = self._constants.get(id(item))
        if name is None:
            name = self._constants[id(item)] = f"_{hint}{len(self._constants)}"
            self._kept.append(item)
            self.globals[name] = item
        return name

    # -- text --------------------------------------------------------------------------------------------------

    def emit(self, text: str) -> None:
        """Write one line, attributed to the operation being lowered."""
        self.lines.append("    " * self._indent + text)
        self.frames.append(self._line_frame())

    def indent(self) -> None:
        """Open a block."""
        self._indent += 1

    def dedent(self) -> None:
        """Close a block."""
        self._indent -= 1

    def body(self, operations: list[Op]) -> None:
        """Write the operations of a block, at least a `pass`."""
        before = len(self.lines)
        for op in operations:
            self.operation(op)
        if len(self.lines) == before:
            self.emit("pass")

    def operation(self, op: Op) -> None:
        """Write one operation through its dialect. Raises Unsupported naming the operation and the user's line."""
        outer = self._op
        self._op = op
        lower = self.table.get(op.name) or self.table.get(op.name.split(".")[0] + ".*")
        if lower is None:
            raise self.unsupported("has no lowering")
        lower(self, op)
        self._op = outer

    def unsupported(self, what: str) -> Unsupported:
        """The error for the operation being lowered."""
        op = self._op
        assert op is not None
        frames = user_frames(op.location, self.is_library)
        where = f"{frames[0].file}:{frames[0].line}: " if frames else ""
        return Unsupported(f"{where}operation {op.name} {what}; see docs/coverage-pyasc.md for what is supported")

    def site(self) -> int:
        """The trace site of the operation being lowered."""
        op = self._op
        assert op is not None
        known = self._site_of.get(id(op))
        if known is None:
            frames = tuple(
                SourceFrame(frame.file, frame.line, frame.column, frame.function) for frame in self._stack(op)
            )
            known = self._site_of[id(op)] = self.add_site(Site(op.name, frames))
        return known

    def _stack(self, op: Op) -> tuple[Frame, ...]:
        """The user's frames of an operation, innermost first."""
        return user_frames(op.location, self.is_library)

    def _line_frame(self) -> Frame | None:
        """The frame in the kernel's own file: its innermost line there (callers of helpers in other files)."""
        if self._op is None:
            return None
        for frame in self._stack(self._op):
            if frame.file == self.kernel_file:
                return frame
        return None


def lower(text: str, is_library: IsLibrary, add_site: AddSite) -> Program:
    """Lower generic MLIR `text` holding one kernel (a public `func.func`) and its helper functions.

    Raises MlirSyntaxError for text that is no generic MLIR and Unsupported for an operation without a lowering.
    """
    module = parse_module(text)
    inherit_locations(module, is_library)
    functions = [op for op in module.regions[0].blocks[0].operations if op.name == "func.func" and op.regions[0].blocks]
    kernel = next((op for op in functions if op.has("ascendc.global")), functions[-1])
    writer = Writer(is_library, add_site)
    writer.may_stall = any(op.name == "ascendc.wait_flag" for op in module.walk())
    frames = user_frames(kernel.location, is_library)
    writer.kernel_file = frames[0].file if frames else None
    for function in functions:
        writer.operation(function)
    code = compile_text(writer, frames[0].line if frames else 1)
    namespace: dict[str, Any] = dict(writer.globals)
    exec(code, namespace)  # noqa: S102 - the text was written above
    name = kernel.attr_str("sym_name")
    return Program(
        name,
        namespace[function_name(name)],
        [argument.type for argument in kernel.regions[0].blocks[0].arguments],
        module,
        "\n".join(writer.lines),
        code,
        module.attributes,
        kernel.attributes,
    )


def function_name(symbol: str) -> str:
    """The Python name of a `func.func` symbol."""
    return symbol if symbol.isidentifier() else "f_" + "".join(c if c.isalnum() else "_" for c in symbol)


def compile_text(writer: Writer, default_line: int) -> CodeType:
    """Compile the written text with every node moved to the user's line."""
    tree = ast.parse("\n".join(writer.lines))
    lines = [frame.line if frame is not None and frame.line > 0 else default_line for frame in writer.frames]
    columns = [max(frame.column - 1, 0) if frame is not None else 0 for frame in writer.frames]
    for node in ast.walk(tree):
        row = getattr(node, "lineno", None)
        if row is not None:
            line, column = lines[row - 1], columns[row - 1]
            node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = column  # type: ignore[attr-defined]
    return compile(tree, writer.kernel_file or "<kernel>", "exec")
