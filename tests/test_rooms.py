"""The rooms of the package: imports go down only, a tool never imports another tool, and only the command line and the
reports print or exit. Every source file is parsed; nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "npuscope"
SOURCE = Path(__file__).resolve().parents[1] / "src" / PACKAGE

ALLOWED: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "mstx": frozenset({"errors"}),  # ranges of a script: the front ends and the monitor both read them
    "trace": frozenset({"errors"}),
    "npu": frozenset({"trace", "errors"}),
    "ascendc": frozenset({"npu", "trace", "errors"}),
    "tile": frozenset({"npu", "trace", "errors"}),
    "mlir": frozenset({"tile", "ascendc", "npu", "trace", "errors"}),
    "frontends": frozenset({"mlir", "tile", "ascendc", "npu", "trace", "mstx", "errors"}),
    "sanitizer": frozenset({"trace", "errors"}),
    "profiler": frozenset({"npu", "trace", "errors"}),  # a peak is a fact of the chip
    "debugger": frozenset({"mlir", "ascendc", "npu", "trace", "errors"}),
    "monitor": frozenset({"mstx", "errors"}),
    "report": frozenset({"sanitizer", "profiler", "monitor", "trace", "errors"}),
    "pytest_plugin": frozenset({"cli"}),  # the door by which pytest comes in
    "__main__": frozenset({"cli"}),
}
"""What each room may import besides itself and the package's own ``__init__``; ``cli``, at the top, may import all."""

TOP = "cli"
PRINTERS = frozenset({"cli", "report"})
EXITS = {"sys": "exit", "os": "_exit"}
BUILTIN_CALLS = frozenset({"print", "exit", "quit"})


def room_of(module: str) -> str | None:
    """``trace`` for ``npuscope.trace.schema``, "" for ``npuscope`` itself, None for anything outside the package."""
    parts = module.split(".")
    if parts[0] != PACKAGE:
        return None
    return parts[1] if len(parts) > 1 else ""


def imported_modules(tree: ast.AST, module: str, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, full name) of every module that a source imports, wherever the import stands in it; names imported from
    the package itself count as modules, because that is how one room imports another."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node.module or "", node.level, module, is_package=is_package)
            if base == PACKAGE:
                yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, base
        elif isinstance(node, ast.Call) and called_name(node) in ("import_module", "__import__") and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                dots = len(name.value) - len(name.value.lstrip("."))
                yield node.lineno, absolute(name.value[dots:], dots, module, is_package=is_package)


def absolute(name: str, level: int, module: str, *, is_package: bool) -> str:
    """The full name behind ``from <level dots><name> import ...`` written in ``module``."""
    if level == 0:
        return name
    parts = module.split(".")
    keep = len(parts) - level + (1 if is_package else 0)
    return ".".join([*parts[: max(keep, 0)], *([name] if name else [])])


def called_name(call: ast.Call) -> str:
    """Last name of what is called: ``f`` of ``f()`` and of ``a.b.f()``; "" for anything else."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def import_violations(tree: ast.AST, module: str, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, sentence) of every import that goes up the picture or sideways."""
    room = room_of(module)
    assert room is not None
    if room == TOP:
        return
    if room and room not in ALLOWED:
        yield 1, f"no room is called {room}"
        return
    names = {*ALLOWED, TOP}
    for line, imported in imported_modules(tree, module, is_package=is_package):
        target = room_of(imported)
        # "from npuscope import __version__" reads the package's __init__, which imports no room.
        if target in names and target != room and target not in ALLOWED.get(room, frozenset()):
            yield line, f"{room or PACKAGE} may not import {target}"


class ExitCalls(ast.NodeVisitor):
    """Finds calls that print or end the process. A parameter called ``print`` is not the builtin."""

    def __init__(self, tree: ast.AST) -> None:
        self.found: list[tuple[int, str]] = []
        self.modules: dict[str, str] = {}  # local name of sys and os
        self.functions: dict[str, str] = {}  # local name of sys.exit and os._exit
        self.parameters: list[set[str]] = []
        for node in ast.walk(tree):
            self.note_imports(node)
        self.visit(tree)

    def note_imports(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            self.modules |= {alias.asname or alias.name: alias.name for alias in node.names if alias.name in EXITS}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module in EXITS:
            self.functions |= {
                alias.asname or alias.name: f"{node.module}.{alias.name}"
                for alias in node.names
                if alias.name == EXITS[node.module]
            }

    def in_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        self.parameters.append({argument.arg for argument in every if argument})
        self.generic_visit(node)
        self.parameters.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = in_function

    def visit_Call(self, node: ast.Call) -> None:
        if name := self.forbidden(node.func):
            self.found.append((node.lineno, f"{name}() is called"))
        self.generic_visit(node)

    def forbidden(self, function: ast.expr) -> str | None:
        if isinstance(function, ast.Name):
            if any(function.id in names for names in self.parameters):
                return None
            return self.functions.get(function.id, function.id if function.id in BUILTIN_CALLS else None)
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            module = self.modules.get(function.value.id)
            if module and function.attr == EXITS[module]:
                return f"{module}.{function.attr}"
        return None


def violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """One line for each rule that the source of ``module`` breaks, in the order of its lines."""
    tree = ast.parse(source)
    found = list(import_violations(tree, module, is_package=is_package))
    if room_of(module) not in PRINTERS:
        found += ExitCalls(tree).found
    return [f"{module}:{line}: {sentence}" for line, sentence in sorted(found)]


def source_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_the_house_is_in_order() -> None:
    found = [
        line
        for path in source_files()
        for line in violations(
            path.read_text(encoding="utf-8"), module_name(path), is_package=path.name == "__init__.py"
        )
    ]
    assert found == []


def test_every_file_is_looked_at() -> None:
    modules = {module_name(path) for path in source_files()}
    assert {"npuscope", "npuscope.errors", "npuscope.npu", "npuscope.npu.chip"} <= modules


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("import npuscope.cli.main", "npu may not import cli"),
        ("import npuscope.sanitizer.race as race", "npu may not import sanitizer"),
        ("from npuscope.mlir.reader import read", "npu may not import mlir"),
        ("from npuscope import profiler", "npu may not import profiler"),
        ("from ..frontends import pyasc", "npu may not import frontends"),
        ("from .. import report", "npu may not import report"),
        ("from ..monitor.daemon import main", "npu may not import monitor"),
        ("def f():\n    from npuscope.debugger import repl", "npu may not import debugger"),
        ("import importlib\nimportlib.import_module('npuscope.mlir')", "npu may not import mlir"),
        ("print('x')", "print() is called"),
        ("def f(x):\n    return [print(x)]", "print() is called"),
        ("import sys\nsys.exit(1)", "sys.exit() is called"),
        ("import sys as system\nsystem.exit(1)", "sys.exit() is called"),
        ("from sys import exit as leave\nleave()", "sys.exit() is called"),
        ("import os\nos._exit(1)", "os._exit() is called"),
        ("from os import _exit\n_exit(1)", "os._exit() is called"),
        ("exit()", "exit() is called"),
    ],
)
def test_a_bad_source_is_named(source: str, sentence: str) -> None:
    line = source.count("\n") + 1
    assert violations(source, "npuscope.npu.machine") == [f"npuscope.npu.machine:{line}: {sentence}"]


@pytest.mark.parametrize(
    "source",
    [
        "from npuscope.trace.schema import Pipe",
        "from npuscope.errors import UserError",
        "from npuscope import __version__",
        "from . import chip",
        "from .chip import load_chip",
        "from ..trace import schema",
        "import sys, numpy, os\nos.getpid()\nsys.stdout",
        "def f(print):\n    print('x')",
        "def f(console):\n    console.print('x')\n    console.exit()",
        "def f(task):\n    task.print = None",
    ],
)
def test_a_good_source_passes(source: str) -> None:
    assert violations(source, "npuscope.npu.machine") == []


@pytest.mark.parametrize("tool", ["sanitizer", "profiler", "debugger", "monitor"])
def test_tools_keep_apart(tool: str) -> None:
    others = {"sanitizer", "profiler", "debugger", "monitor"} - {tool}
    source = "\n".join(f"import npuscope.{other}" for other in sorted(others))
    assert violations(source, f"npuscope.{tool}.check") == [
        f"npuscope.{tool}.check:{line}: {tool} may not import {other}"
        for line, other in enumerate(sorted(others), start=1)
    ]


def test_what_the_debugger_and_the_reports_may_import() -> None:
    assert violations("import npuscope.npu\nimport npuscope.mlir", "npuscope.debugger.target") == []
    assert violations("import npuscope.sanitizer\nprint('x')", "npuscope.report.text") == []
    assert violations("import npuscope.npu", "npuscope.report.text") == [
        "npuscope.report.text:1: report may not import npu"
    ]


def test_the_command_line_may_do_everything() -> None:
    source = "import sys\nimport npuscope.monitor\nfrom npuscope import debugger\nprint('x')\nsys.exit(0)"
    assert violations(source, "npuscope.cli.main") == []


def test_relative_imports_start_at_the_package_of_an_init() -> None:
    assert violations("from . import machine\nfrom .sanitizer import race", "npuscope.npu", is_package=True) == []
    assert violations("from ..sanitizer import race", "npuscope.npu", is_package=True) == [
        "npuscope.npu:1: npu may not import sanitizer"
    ]
    assert violations("from .npu import machine", "npuscope", is_package=True) == [
        "npuscope:1: npuscope may not import npu"
    ]


def test_a_room_that_the_house_lacks_is_named() -> None:
    assert violations("import sys", "npuscope.utils.text") == ["npuscope.utils.text:1: no room is called utils"]
