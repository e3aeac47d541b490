"""flash-linear-attention."""

from __future__ import annotations

import fla.ops.gated_oja_rule  # noqa: F401
from libraries.fla_recurrences import RECURRENCES

TABLE = [*RECURRENCES]
