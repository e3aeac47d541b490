"""Runs the user's script as `python` would, so that its own prints, exceptions and exit code stay its own."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType

from npuscope.errors import UserError
from npuscope.frontends import extra_for

ARGUMENTS = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""How a verb that runs a script is read: options after the script are the script's own."""


class FailFast(BaseException):
    """Raised through the user's code when the first error has been found and nothing more is wanted."""


def run_script(target: str, arguments: Sequence[str], as_module: bool = False) -> int:
    """Run a file (or, with `as_module`, a module) as `__main__` with its own argv; returns its exit code.

    Raises UserError when the file does not exist or when the script met one (the caller prints the line).
    """
    require_script(target, as_module)
    sys.argv = [target, *arguments]
    sys.path[0] = os.getcwd() if as_module else os.path.dirname(os.path.abspath(target))
    try:
        if as_module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(target, run_name="__main__")
    except SystemExit as stop:
        return exit_code(stop.code)
    except KeyboardInterrupt:
        return 130
    except (UserError, FailFast):
        raise
    except BaseException as error:
        found = user_error(error) or _missing_dsl(error)
        if found is not None:
            raise found from None
        show_traceback(error)
        return 1
    return 0


def require_script(target: str, as_module: bool) -> None:
    """Raise UserError when there is no such file."""
    if target.startswith("-"):
        raise UserError(f"no such option: {target}")
    if not as_module and not os.path.isfile(target):
        raise UserError(f"no such script: {target}")


def exit_code(code: object) -> int:
    """What the interpreter would exit with for ``sys.exit(code)``."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def user_error(error: BaseException | None) -> UserError | None:
    """A UserError that the DSL wrapped on its way up."""
    while error is not None:
        if isinstance(error, UserError):
            return error
        error = error.__cause__
    return None


def _missing_dsl(error: BaseException) -> UserError | None:
    """What to install when the script imports a DSL that is not there."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    extra = extra_for(error.name)
    return UserError(f"the script imports {error.name}, which is not installed: pip install 'npuscope[{extra}]'") if (
        extra
    ) else None


def show_traceback(error: BaseException) -> None:
    """The script's traceback without the frames of npuscope and runpy above it."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace or error.__traceback__)


def _is_ours(file: str) -> bool:
    here = os.path.dirname(os.path.abspath(__file__))
    return file.startswith("<frozen runpy") or file.endswith("runpy.py") or os.path.abspath(file).startswith(here)
