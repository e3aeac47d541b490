"""Which function carries out which Ascend C operation, and how its operands and attributes reach the function."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Entry:
    """A function for an operation: ``function(core, site, *operands, **attributes)``.

    * `parameters`: names of the operand parameters, in operand order; optional ones receive None when absent.
    * `variadic`: those that receive a list of operands.
    * `attributes`: keyword-only parameters, filled from the operation's attributes (``cmp_mode`` from ``cmpMode``).
      The names ``result_dtype``, ``result_type``, ``operand_types`` and ``result_types`` are filled from its types.
    * `blocking`: the function is a generator that the kernel must ``yield from``.
    * `polling`: a generator function with the same parameters to use inside while loops, where the kernel may poll
      memory that another core changes; None where that makes no difference. It takes ``fixed=True`` too, which says
      that every turn of the loop asks for the same place.
    * `outputs`: operands that the function gives a new value (references in C++); it returns those values.
    """

    name: str
    function: Callable[..., Any]
    parameters: tuple[str, ...]
    optional: frozenset[str]
    variadic: frozenset[str]
    attributes: dict[str, Any]
    blocking: bool
    polling: Callable[..., Any] | None = None
    outputs: tuple[str, ...] = ()


_entries: dict[str, Entry] = {}


def operation(
    *names: str,
    variadic: tuple[str, ...] = (),
    polling: Callable[..., Any] | None = None,
    outputs: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Register the decorated function for the operations called `names`; see Entry for the rest."""

    def register(function: F) -> F:
        positional: list[str] = []
        optional: set[str] = set()
        attributes: dict[str, Any] = {}
        for parameter in list(inspect.signature(function).parameters.values())[2:]:
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                attributes[parameter.name] = parameter.default
            else:
                positional.append(parameter.name)
                if parameter.default is not inspect.Parameter.empty:
                    optional.add(parameter.name)
        for name in names:
            if name in _entries:
                raise ValueError(f"operation {name} is registered twice")
            _entries[name] = Entry(
                name,
                function,
                tuple(positional),
                frozenset(optional),
                frozenset(variadic),
                attributes,
                inspect.isgeneratorfunction(function),
                polling,
                outputs,
            )
        return function

    return register


@lru_cache(maxsize=1)
def entries() -> dict[str, Entry]:
    """All registered operations by name; loads every file of this package."""
    import npuscope.ascendc as package

    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
    return _entries
