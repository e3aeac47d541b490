"""Programs that start the ranks and do not train themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence

PROGRAMS = frozenset({"torchrun", "accelerate", "deepspeed", "mpirun", "srun", "msrun", "vllm"})
MODULES = frozenset({
    "torch.distributed.run", "torch.distributed.launch", "torch.distributed.launcher", "accelerate.commands.launch",
    "deepspeed.launcher.runner", "deepspeed.launcher.launch",
})  # fmt: skip
FILES = ("torch/distributed/run.py", "torch/distributed/launch.py")
WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})
"""Options of the interpreter of which the next word is a part."""


def is_launcher(words: Sequence[str]) -> bool:
    """Whether a command line, the interpreter first, starts a launcher."""
    program, is_module = started(words)
    if is_module:
        return program in MODULES
    return os.path.basename(program) in PROGRAMS or program.endswith(FILES)


def started(words: Sequence[str]) -> tuple[str, bool]:
    """The script of a command line, or the module and True; "" for neither."""
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if word == "-m":
            return (rest[0] if rest else "", True)
        if word.startswith("-m") and not word.startswith("--"):
            return word[2:], True
        if word in WITH_VALUE:
            rest = rest[1:]
        elif word == "-c":
            return "", False
        elif not word.startswith("-"):
            return word, False
    return "", False
