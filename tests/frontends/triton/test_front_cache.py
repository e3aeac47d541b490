"""A second run of a script does no work that the first one did; the cache can be damaged, and can be off."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuscope.frontends.cache import Entries, cache_folder

SCRIPT = """
    import torch
    import triton
    import triton.language as tl
    from npuscope.frontends import triton_programs
    from triton.compiler import code_generator

    counts = {"made": 0, "lowered": 0}


    def counted(module, name, what):
        original = getattr(module, name)

        def call(*arguments, **named):
            counts[what] += 1
            return original(*arguments, **named)

        setattr(module, name, call)


    counted(code_generator, "ast_to_ttir", "made")
    counted(triton_programs, "lower_tiles", "lowered")


    @triton.jit
    def double(x, B: tl.constexpr):
        o = tl.arange(0, B)
        tl.store(x + o, 2 * tl.load(x + o))


    x = torch.arange(16.0)
    double[(1,)](x, 16)
    assert torch.equal(x, 2 * torch.arange(16.0))
    print(counts)
"""


def test_a_script_that_runs_again(front: Callable[..., Any], tmp_path: Path) -> None:
    """Nothing is compiled twice; a damaged entry is made again; another path is another script; 0 switches off."""
    first, second = front("run", SCRIPT), front("run", SCRIPT)
    assert (first.stdout, first.stderr) == ("{'made': 1, 'lowered': 1}\n", "")
    assert (second.stdout, second.stderr) == ("{'made': 0, 'lowered': 0}\n", "")
    for entry in (tmp_path / "cache" / "npuscope" / "tiles").iterdir():
        entry.write_bytes(entry.read_bytes()[:-5])
    third = front("run", SCRIPT)
    assert (third.stdout, third.stderr) == ("{'made': 0, 'lowered': 1}\n", "")
    other = front("run", SCRIPT, folder="elsewhere", NPUSCOPE_CACHE="0", XDG_CACHE_HOME=str(tmp_path / "unused"))
    assert (other.stdout, other.stderr) == ("{'made': 1, 'lowered': 1}\n", "")
    assert not (tmp_path / "unused").exists()


def test_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written is read; half an entry is none; a folder that cannot be is no error."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    entries = Entries("things")
    assert entries.read("key") is None
    entries.write("key", b"content")
    assert entries.read("key") == b"content"
    file = tmp_path / "npuscope" / "things" / "key"
    assert [path.name for path in file.parent.iterdir()] == ["key"]
    file.write_bytes(file.read_bytes()[:20])
    assert entries.read("key") is None
    (tmp_path / "npuscope" / "other").write_text("a file where the folder should be")
    Entries("other").write("key", b"content")
    assert Entries("other").read("key") is None
    monkeypatch.setenv("NPUSCOPE_CACHE", "0")
    assert cache_folder() is None and Entries("things").read("key") is None
