"""`breakpoint()` inside a kernel: the debugger of Python stops there, and the kernel's variables are its locals.

Triton compiles kernels and knows no such call. It becomes an operation that carries the variables (one that prints,
with a name that :mod:`npuscope.mlir.tiles.debug` knows), and the programs of the kernel run one after the other.
"""

from __future__ import annotations

import sys
from typing import Any

from npuscope.tile.stopping import PREFIX


def install() -> None:
    """Let kernels call `breakpoint()`."""
    from triton.compiler.code_generator import CodeGenerator
    from triton.language import core

    @core.builtin
    def breakpoint(*arguments: Any, _semantic: Any = None) -> Any:
        """Stop here."""
        shown = {
            name: value
            for name, value in _variables(CodeGenerator).items()
            if isinstance(value, core.tensor) and not value.dtype.is_ptr()
        }
        handles = [value.handle for value in shown.values()]
        signs = [value.dtype.is_int_signed() for value in shown.values()]
        prefix = " ".join((PREFIX, *shown))
        return _semantic.tensor(_semantic.builder.create_print(prefix, False, handles, signs), core.void)

    CodeGenerator.builtin_namespace["breakpoint"] = breakpoint


def _variables(generator: type) -> dict[str, Any]:
    """The variables of the kernel that is being compiled, at the line that is being compiled."""
    frame = sys._getframe(1)
    while frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, generator):
            return dict(found.lscope)  # type: ignore[attr-defined]
        frame = frame.f_back  # type: ignore[assignment]
    return {}
