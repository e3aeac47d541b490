"""docs/coverage-pyasc.md says which operations of pyasc's dialects are carried out; it is generated here and compared.

``UPDATE_DOCS=1 pytest tests/docs`` writes it anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from npuscope.mlir.dialects import lowerings
from npuscope.mlir.dialects.ascendc import library_names

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coverage-pyasc.md"

SPELLINGS = {
    "tpipetquebinddestroy": "pipedestroy",
    "tpipe": "pipe",
    "tquebind": "quebind",
    "datacachecleanandinvalid": "datacachecleaninvalid",
    "datacopypadext(l0|l2|nd2nz)$": r"datacopypad\1ext",
    "kfc(initobj|init|isrun|quit|run)$": r"kfcserver\1",
    "localtensorreinterpretcast": "reinterpretcast",
    "matmulgetmatmulapitiling": "getmatmulapitiling",
    "no$": "noop",
}
"""Where the class of an operation is spelled otherwise than its name."""

HEAD = """\
# Operations of pyasc's dialects

Generated from pyasc {version}: every operation that its `ascendc` and `emitasc` dialects define, and whether npuscope
carries it out. A kernel that uses one without a lowering ends with one line that names the operation and the user's
line, exit code 2.

| dialect | operations | carried out |
| --- | --- | --- |
{rows}
"""


def dialect_operations() -> set[str]:
    """Operation names in pyasc's compiled library."""
    package = pytest.importorskip("asc")
    library = next((Path(package.__file__).parent / "_C").glob("*.so")).read_bytes()
    names = {match.decode() for match in re.findall(rb"(?<=\0)(?:ascendc|emitasc)\.[a-zA-Z_][\w.]*(?=\0)", library)}
    builders = _builders(package)
    return {name for name in names if _compact(name) in builders}


def _builders(package: object) -> set[str]:
    """Compact names of the operations that the language layer can create."""
    from asc._C import ir

    found = set()
    for method in dir(ir.Builder):
        match = re.fullmatch(r"create_(asc|emitasc)_(\w+?)Op", method)
        if match:
            name = match[2].lower()
            for builder, operation in SPELLINGS.items():
                name = re.sub(f"^{builder}", operation, name)
            found.add(("ascendc" if match[1] == "asc" else "emitasc") + name)
    return found


def _compact(name: str) -> str:
    return re.sub(r"[._]", "", name).lower()


def render() -> str:
    """The page as it should be."""
    from importlib.metadata import version

    done = library_names() | frozenset(lowerings())
    lines, rows = [], []
    for dialect in ("ascendc", "emitasc"):
        names = sorted(name for name in dialect_operations() if name.startswith(dialect + "."))
        missing = [name for name in names if name not in done]
        rows.append(f"| {dialect} | {len(names)} | {len(names) - len(missing)} |")
        lines.append(f"\n## Without a lowering: {dialect}\n")
        lines.extend(f"* `{name}`" for name in missing)
        if not missing:
            lines.append("None.")
        lines.append(f"\n## Carried out: {dialect}\n")
        lines.append(", ".join(f"`{name.removeprefix(dialect + '.')}`" for name in names if name in done))
    return HEAD.format(version=version("pyasc"), rows="\n".join(rows)) + "\n".join(lines) + "\n"


def test_the_page_is_up_to_date() -> None:
    """The committed page is what the code says."""
    text = render()
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text
