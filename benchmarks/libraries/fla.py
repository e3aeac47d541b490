"""flash-linear-attention."""

from __future__ import annotations

import fla.ops.gated_oja_rule
import fla.ops.gdn2  # noqa: F401

from libraries.fla_attention import ATTENTION
from libraries.fla_modules import MODULES
from libraries.fla_recurrences import RECURRENCES

TABLE = [*RECURRENCES, *ATTENTION, *MODULES]
