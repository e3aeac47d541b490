"""Usage errors in the wording of the stock command, so that scripts that read them go on working."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


class Usage(click.UsageError):
    """A mistake on the command line; the message is complete."""


class Command(click.Command):
    """A command whose usage errors are worded the stock way."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.allow_extra_args = True  # they are refused here, in other words

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and refuse what is left."""
        self._require_values(args)
        rest = super().parse_args(ctx, args)
        if rest:
            raise Usage(f"unexpected argument '{rest[0]}' found")
        return rest

    def _require_values(self, args: Sequence[str]) -> None:
        """Without this, `--log-file --json` would name a file `--json`."""
        options = {name: one for one in self.params if isinstance(one, click.Option) for name in one.opts}
        for word, following in zip(args, args[1:], strict=False):
            option = options.get(word)
            if option and not option.is_flag and following in options:
                raise Usage(f"a value is required for '{spelled(option)}' but none was supplied")


class Group(click.Group):
    """The root command; it names an unknown sub-command as the stock one does."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The sub-command that the first word names."""
        if self.get_command(ctx, args[0]) is None:
            raise Usage(f"unrecognized subcommand '{args[0]}'")
        return super().resolve_command(ctx, args)


def spelled(parameter: click.Parameter) -> str:
    """An option with its value, as it is shown: `--log-file <LOG_FILE>`."""
    flag = parameter.opts[0]
    return f"{flag} <{flag.lstrip('-').replace('-', '_').upper()}>"


def invalid(parameter: click.Parameter | None, value: object, text: str) -> Usage:
    """A value that a flag does not take."""
    flag = f" for '{spelled(parameter)}'" if parameter else ""
    joint = "\n  " if text.startswith("[") else ": "  # a list of what is possible has a line of its own
    return Usage(f"invalid value '{value}'{flag}{joint}{text}")


def require(context: click.Context, *names: str) -> None:
    """Raises Usage, naming all of them, for flags that must be given and are not."""
    parameters = {one.name: one for one in context.command.params}
    missing = [spelled(parameters[name]) for name in names if context.params[name] is None]
    if missing:
        raise Usage("\n  ".join(["the following required arguments were not provided:", *missing]))


def worded(error: click.ClickException) -> str:
    """The text of any usage error."""
    if isinstance(error, click.NoSuchOption):
        return f"unexpected argument '{error.option_name}' found{_hint(error)}"
    if isinstance(error, click.BadOptionUsage) and error.ctx:
        option = next((one for one in error.ctx.command.params if error.option_name in one.opts), None)
        if isinstance(option, click.Option):
            if option.is_flag:
                return f"a value was given to '{error.option_name}', which takes none"
            return f"a value is required for '{spelled(option)}' but none was supplied"
    return error.format_message()


def _hint(error: click.NoSuchOption) -> str:
    root = error.ctx.find_root() if error.ctx else None
    if root and error.ctx is not root and any(error.option_name in one.opts for one in root.command.params):
        return "; it goes before the sub-command"
    return f"; a similar argument exists: '{error.possibilities[0]}'" if error.possibilities else ""
