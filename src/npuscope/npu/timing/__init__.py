"""The timing model: from a launch's trace to a time for every instruction. All its figures are modelled."""

from npuscope.npu.timing.model import time_launch as time_launch
