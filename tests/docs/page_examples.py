"""What the tests of several pages do with the examples on them."""

from __future__ import annotations


def cured(program: str, cure: str) -> str:
    """The program with the changes of a diff: each hunk (blank lines between) stands in it once."""
    for hunk in cure.rstrip("\n").split("\n\n"):
        lines = hunk.splitlines()
        before = "".join(line[1:] + "\n" for line in lines if line[0] in " -")
        after = "".join(line[1:] + "\n" for line in lines if line[0] in " +")
        assert program.count(before) == 1, f"not once in the program:\n{before}"
        program = program.replace(before, after)
    return program
