"""The `dyno` command: ask daemons what runs, and have running processes traced."""

from npuscope.cli.dyno.command import main

__all__ = ["main"]
