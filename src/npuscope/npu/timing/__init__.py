"""The timing model: from a launch's trace to a time for every instruction. All its figures are modelled.

* :mod:`.kinds` says what an instruction is, :mod:`.shapes` and :mod:`.operands` what it touches, :mod:`.banks`,
  :mod:`.work` and :mod:`.transfers` what it costs by itself, :mod:`.links` what it waits for, :mod:`.steps` where its
  code lies. :mod:`.program` puts that together.
* :mod:`.engine` runs it: :mod:`.flows` share the memory, :mod:`.l2` is the cache. :mod:`.tables` makes the timeline.

The constants are the chip's (``[timing]`` in ``npu/chips/*.toml``).
"""

from pathlib import Path

from npuscope.npu.timing.l2 import L2 as L2
from npuscope.npu.timing.l2 import cold as cold
from npuscope.npu.timing.model import time_launch as time_launch
from npuscope.trace.stale import drop_stale

drop_stale(Path(__file__).parent)
