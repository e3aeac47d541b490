"""What to do about a kernel: rules over its figures, one file for each thing that they look at."""

from npuscope.profiler.advice.advice import Advice
from npuscope.profiler.advice.case import Case
from npuscope.profiler.advice.engine import advise
from npuscope.profiler.advice.user_rules import load_rules

__all__ = ["Advice", "Case", "advise", "load_rules"]
