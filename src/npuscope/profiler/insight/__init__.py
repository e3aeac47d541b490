"""What MindStudio Insight shows of an operator: the blocks of `visualize_data.bin` as JSON (opprof.md 2.8)."""

from npuscope.profiler.insight.launch_blocks import Blocks as Blocks
from npuscope.profiler.insight.launch_blocks import Mode as Mode
from npuscope.profiler.insight.launch_blocks import wanted_types as wanted_types
