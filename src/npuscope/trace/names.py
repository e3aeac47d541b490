"""The user's own name for something made on a line of source: the variable that the line assigns."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache

from npuscope.trace.schema import Site


def assigned_name(site: Site) -> str:
    """``x_local`` for a site on the line ``x_local = queue.alloc_tensor()``; empty when the line assigns no name."""
    return _assigned(site.frames[0].file, site.frames[0].line) if site.frames else ""


@lru_cache(maxsize=4096)
def _assigned(file: str, line: int) -> str:
    text = linecache.getline(file, line).strip()
    if "=" not in text:
        return ""
    head = text.split("=", 1)[0].split(":", 1)[0].strip()
    try:
        node = ast.parse(head, mode="eval").body
    except SyntaxError:
        return ""
    return node.id if isinstance(node, ast.Name) else ""
