"""A formula over counts of events: arithmetic and a few functions, on whole columns at a time."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

NAMES = re.compile(r"cycles|e\d+|[A-Z0-9]+_[A-Z0-9]+|[a-z0-9]+_to_[a-z0-9]+")
"""``cycles``: total cycles of a row; ``e12``: event 12; ``GM_L1``: bytes on that way; ``gm_to_l1``: its peak, GB/s."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide,
}  # fmt: skip


class Formula:
    """A parsed formula. `names` are what it reads: ``e12``, ``cycles``, ``GM_L1``; `functions` what it calls.

    Raises ValueError for text that is no formula: other operators, names or syntax.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._tree = ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise ValueError(f"not a formula: {text!r}: {error.msg}") from None
        self.names: set[str] = set()
        self.functions: set[str] = set()
        self._check(self._tree)

    def __call__(self, values: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> np.ndarray:
        """The formula's value; `values` holds all its names, `functions` all that it calls. What has no value, 0 / 0
        or x / 0, is NaN."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.asarray(self._value(self._tree, values, functions), np.float64)
        return np.where(np.isfinite(found), found, np.nan)

    @property
    def events(self) -> list[int]:
        """Numbers of the events that it reads, ascending."""
        return sorted(int(name[1:]) for name in self.names if re.fullmatch(r"e\d+", name))

    def _check(self, node: ast.expr) -> None:
        match node:
            case ast.Constant(value=int() | float()):
                pass
            case ast.Name(id=name) if NAMES.fullmatch(name):
                self.names.add(name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                self._check(left)
                self._check(right)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                self.functions.add(name)
                for argument in arguments:
                    self._check(argument)
            case _:
                raise ValueError(f"not a formula: {self.text!r}: {ast.unparse(node)!r} is not allowed")

    def _value(self, node: ast.expr, values: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return values[name]
            case ast.BinOp(left=left, op=op, right=right):
                sides = (self._value(side, values, functions) for side in (left, right))
                return _OPERATORS[type(op)](*sides)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return functions[name](*(self._value(argument, values, functions) for argument in arguments))
        raise AssertionError(ast.dump(node))
