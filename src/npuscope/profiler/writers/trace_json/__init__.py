"""trace.json, the timeline that the vendor's viewer reads, in three flavours: all cores, one core, on-board.

Each ``write_...`` takes a binary file that is open for writing and returns the number of events.
"""

from npuscope.profiler.writers.trace_json.on_board import OnBoard as OnBoard
from npuscope.profiler.writers.trace_json.on_board import write_on_board as write_on_board
from npuscope.profiler.writers.trace_json.options import Shown as Shown
from npuscope.profiler.writers.trace_json.options import shown_of as shown_of
from npuscope.profiler.writers.trace_json.simulator import write_simulator as write_simulator
from npuscope.profiler.writers.trace_json.single_core import CoreTraces as CoreTraces
from npuscope.profiler.writers.trace_json.single_core import write_core as write_core
