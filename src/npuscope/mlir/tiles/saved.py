"""A lowered kernel as bytes, and back: what the cache keeps so that a later run need not lower it again."""

from __future__ import annotations

import marshal
import pickle

from npuscope.mlir.program import AddSite
from npuscope.mlir.tiles.program import TileProgram, entry_of


def dump(program: TileProgram) -> bytes | None:
    """Everything of a program but its text; None when something in it has no form as bytes."""
    facts = (
        program.name, program.entry.__name__, program.parameters, program.source, marshal.dumps(program.code),
        program.yields, program.largest, program.dereferences, program.constants, program.sites, program.attributes,
    )  # fmt: skip
    try:
        return pickle.dumps(facts, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None


def load(content: bytes, text: str, add_site: AddSite) -> TileProgram | None:
    """The program that `content` was made from, with new numbers for its sites; None when it cannot be had again."""
    try:
        name, function, parameters, source, code, yields, largest, dereferences, constants, sites, attributes = (
            pickle.loads(content)
        )
        body = marshal.loads(code)
    except Exception:  # whatever an unpickled name of another version raises: the text is lowered anew
        return None
    entry = entry_of(body, function, constants, sites, add_site)
    return TileProgram(
        name, entry, parameters, text, source, body, yields, largest, dereferences, constants, sites, attributes
    )
