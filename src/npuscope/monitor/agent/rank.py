"""Which rank this process is, as far as it can be told."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

UNKNOWN = -1
LONGEST = 9
"""Digits of a rank."""


def rank(environment: Mapping[str, str] = os.environ) -> int:
    """RANK, else the rank in torch.distributed where that is initialised, else RANK_ID, else -1.

    Never imports torch: what is not imported is not initialised.
    """
    found = (_whole(environment.get("RANK")), distributed_rank(), _whole(environment.get("RANK_ID")))
    return next((number for number in found if number is not None), UNKNOWN)


def distributed_rank() -> int | None:
    """The rank in the default process group; None while there is none."""
    distributed = initialised()
    try:
        return None if distributed is None else int(distributed.get_rank())
    except Exception:  # it is being torn down
        return None


def initialised() -> Any:
    """`torch.distributed`, once it is imported and has a default process group; else None."""
    distributed = sys.modules.get("torch.distributed")
    try:
        ready = distributed is not None and distributed.is_available() and distributed.is_initialized()
    except Exception:  # it is being imported, or torn down
        return None
    return distributed if ready else None


def _whole(word: str | None) -> int | None:
    word = (word or "").strip()
    return int(word) if word.isascii() and word.isdigit() and len(word) <= LONGEST else None
