"""Versions of Triton that are not supported are refused in one line, before anything of them is loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("version", ["3.7.1", "3.10.0", "4.0.0"])
def test_other_versions(front: Callable[..., Any], tmp_path: Path, version: str) -> None:
    """Exit code 2 and what to install."""
    ahead = tmp_path / "ahead"
    facts = ahead / f"triton-{version}.dist-info" / "METADATA"
    facts.parent.mkdir(parents=True)
    facts.write_text(f"Metadata-Version: 2.1\nName: triton\nVersion: {version}\n")
    (ahead / "triton").mkdir()
    (ahead / "triton" / "__init__.py").write_text("raise SystemExit('loaded')\n")
    done = front("run", "import triton\n", ahead=str(ahead))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"npuscope: triton {version} is not supported (needs >=3.8,<3.10): pip install 'npuscope[triton]'\n"
    )
