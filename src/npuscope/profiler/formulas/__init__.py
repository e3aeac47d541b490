"""The columns of the metric tables as data (``*.toml``), and the engine that computes them from counts of events,
whether a timeline gave the counts or a device's dump (opprof.md 2.2, 2.3)."""

from npuscope.profiler.formulas.column import Column as Column
from npuscope.profiler.formulas.engine import Rows as Rows
from npuscope.profiler.formulas.engine import evaluate as evaluate
from npuscope.profiler.formulas.files import table_columns as table_columns
