"""Usage errors in the wording of the stock command, so that scripts that read them go on working."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


class Usage(click.UsageError):
    """A mistake on the command line; the message is complete."""


class Worded(click.Command):
    """A command that words what its parser refuses the stock way."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise Usage(f"unexpected argument '{error.option_name}' found{_hint(error, ctx)}") from None
        except click.BadOptionUsage as error:
            raise Usage(self._misused(error)) from None

    def _misused(self, error: click.BadOptionUsage) -> str:
        option = next((one for one in self.params if error.option_name in one.opts), None)
        if not isinstance(option, click.Option):
            return error.format_message()
        if option.is_flag:
            return f"unexpected value for '{error.option_name}' found; no more were expected"
        return f"a value is required for '{spelled(option)}' but none was supplied"


class Command(Worded):
    """A sub-command."""

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


class Group(Worded, click.Group):
    """The root command; it names an unknown sub-command as the stock one does."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they were added."""
        return list(self.commands)

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


def _hint(error: click.NoSuchOption, context: click.Context) -> str:
    root = context.find_root()
    if context is not root and any(error.option_name in one.opts for one in root.command.params):
        return "; it goes before the sub-command"
    return f"; a similar argument exists: '{error.possibilities[0]}'" if error.possibilities else ""
