"""Lowering of a tile kernel: from the op tree to one Python function per `tt.func`, at the user's file and lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, cast

from npuscope.errors import Unsupported
from npuscope.mlir.dialects import Lowering
from npuscope.mlir.location import inherit_locations, user_frames
from npuscope.mlir.program import AddSite, IsLibrary, Writer, compile_text
from npuscope.mlir.reader import Op, Value, parse_module
from npuscope.mlir.tiles import tile_lowerings
from npuscope.mlir.tiles.kinds import dtype_of, element_of, is_pointer, pointee_of, shape_of
from npuscope.mlir.tiles.literals import parse_listed
from npuscope.mlir.types import is_float
from npuscope.tile.hints import HINTS
from npuscope.tile.run import BATCH_ELEMENTS
from npuscope.trace.schema import Site

SILENT = frozenset(
    ("arith.constant", "scf.for", "scf.if", "scf.while", "tt.call", "tt.splat", "tt.broadcast", "tt.expand_dims",
     "tt.reshape", "tt.trans", "tt.join", "tt.cat", "ub.poison", "tt.unsplat", "arith.bitcast", "tt.bitcast")
)  # fmt: skip
"""Operations that make no NaN themselves, or whose parts are looked at."""
ATOMICS = ("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store")


class TileWriter(Writer):
    """Writes a tile function. `yields`: the function is a generator that lets other programs run in its while loops."""

    def __init__(self, is_library: IsLibrary, add_site: AddSite, module: Op, nan: bool = False) -> None:
        super().__init__(is_library, add_site, cast("dict[str, Lowering]", tile_lowerings()))
        self.nan = nan
        self.alone = False  # programs are to run one after the other
        self.labels = 0
        names = {op.name for op in module.walk()}
        waits = not names.isdisjoint(ATOMICS) or any(_is_volatile(op) for op in module.walk())
        self.yields = ("scf.while" in names and waits) or "tt.atomic_poll" in names
        self._used = {id(value) for op in module.walk() for value in op.operands}

    def operation(self, op: Op) -> None:
        """Write one operation, and a test of what the user promised about its result."""
        super().operation(op)
        for name in HINTS:
            if name in op.attributes and len(op.results) == 1:
                outer, self._op = self._op, op
                values = parse_listed(op.attributes[name])
                step = dtype_of(pointee_of(op.results[0].type)).itemsize if is_pointer(op.results[0].type) else 1
                self.emit(f"m.hint({self.site()}, {name!r}, {values}, {self.use(op.results[0])}, {step})")
                self._op = outer
        if self.nan and len(op.results) == 1 and op.name not in SILENT and is_float(element_of(op.results[0].type)):
            self._look_for_nan(op)

    def _look_for_nan(self, op: Op) -> None:
        outer, self._op = self._op, op
        inputs = "".join(f"{name}, " for name in self.uses(op.operands))
        result = op.results[0]
        self.emit(f"m.look_for_nan({self.site()}, ({inputs}), {shape_of(result.type)}, {self.use(result)})")
        self._op = outer

    def is_used(self, value: Value) -> bool:
        """Whether an operation takes the value."""
        return id(value) in self._used

    def unsupported(self, what: str) -> Unsupported:
        """The error for the operation being lowered."""
        op = self._op
        assert op is not None
        frames = user_frames(op.location, self.is_library)
        where = f"{frames[0].file}:{frames[0].line}: " if frames else ""
        return Unsupported(f"{where}operation {op.name} {what}")

    def unsupported_operation(self, op: Op, what: str) -> Unsupported:
        """The error for an operation that is not the one being lowered."""
        outer, self._op = self._op, op
        error = self.unsupported(what)
        self._op = outer
        return error


class SiteName(int):
    """A site's number in the program's own list, which writes itself as the global that holds the trace's number."""

    def __str__(self) -> str:
        return f"_at{int(self)}"

    def __format__(self, form: str) -> str:
        return str(self)


def _is_volatile(op: Op) -> bool:
    return op.name == "tt.load" and op.attributes.get("isVolatile", "false").startswith("true")


@dataclass(slots=True)
class TileProgram:
    """A lowered kernel: ``entry(machine, *arguments)``, a generator function when `yields`. `parameters` are the names
    and raw types of its arguments, `largest` the number of elements of its largest tile, `dereferences` says whether
    it makes pointers of numbers. `constants` and `sites` are what the globals of `code` hold."""

    name: str
    entry: Callable[..., Any]
    parameters: list[tuple[str, str]]
    text: str
    source: str
    code: CodeType
    yields: bool
    largest: int
    dereferences: bool
    constants: dict[str, Any]
    sites: list[Site]
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def module(self) -> Op:
        """The operations that it was lowered from."""
        return parse_module(self.text)


def lower_tiles(text: str, is_library: IsLibrary, add_site: AddSite, nan: bool = False) -> TileProgram:
    """Lower generic MLIR `text` that holds one public `tt.func` and the functions it calls; with `nan`, the program
    looks for the first NaN.

    Raises MlirSyntaxError for text that is no generic MLIR and Unsupported for an operation without a lowering.
    """
    from npuscope.mlir.tiles.tt import function_name

    module = parse_module(text)
    inherit_locations(module, is_library)
    functions = [op for op in module.regions[0].blocks[0].operations if op.name == "tt.func" and op.regions[0].blocks]
    kernel = next((op for op in functions if op.attributes.get("sym_visibility") == '"public"'), functions[-1])
    sites: list[Site] = []

    def own_site(site: Site) -> SiteName:
        sites.append(site)
        return SiteName(len(sites) - 1)

    writer = TileWriter(is_library, own_site, module, nan)
    frames = user_frames(kernel.location, is_library)
    writer.kernel_file = frames[0].file if frames else None
    for function in functions:
        writer.operation(function)
    code = compile_text(writer, frames[0].line if frames else 1)
    name = kernel.attr_str("sym_name")
    arguments = kernel.regions[0].blocks[0].arguments
    return TileProgram(
        name,
        entry_of(code, function_name(name), writer.globals, sites, add_site),
        [(argument.hint or argument.name.lstrip("%"), argument.type) for argument in arguments],
        text,
        "\n".join(writer.lines),
        code,
        writer.yields,
        BATCH_ELEMENTS if writer.alone else _largest(module),
        any(op.name == "tt.int_to_ptr" for op in module.walk()),
        writer.globals,
        sites,
    )


def entry_of(
    code: CodeType, function: str, constants: dict[str, Any], sites: list[Site], add_site: AddSite
) -> Callable[..., Any]:
    """The function that `code` defines, among its constants and sites."""
    namespace: dict[str, Any] = dict(constants)
    namespace.update((str(SiteName(place)), add_site(site)) for place, site in enumerate(sites))
    exec(code, namespace)  # noqa: S102 - written by us
    entry: Callable[..., Any] = namespace[function]
    return entry


def _largest(module: Op) -> int:
    sizes = [1]
    for op in module.walk():
        for result in op.results:
            size = 1
            for count in shape_of(result.type):
                size *= count
            sizes.append(size)
    return max(sizes)
