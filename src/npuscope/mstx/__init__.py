"""Labelled ranges and marks of a script: the vendor's ``mstx`` calls, which work on any machine.

:mod:`npuscope.mstx.ranges` keeps what is open and tells the one who listens, :mod:`npuscope.mstx.module` makes
``import mstx`` give a module with these calls, :mod:`npuscope.mstx.supply` is how any module is given that is not
installed. The functions here act on the ranges of this process, so that code of one's own needs no vendor's package::

    from npuscope import mstx

    with mstx.annotate("load"):
        batch = next(loader)
"""

from npuscope.mstx.calls import annotate as annotate
from npuscope.mstx.calls import get_tool_id as get_tool_id
from npuscope.mstx.calls import mark as mark
from npuscope.mstx.calls import mstx_range as mstx_range
from npuscope.mstx.calls import range_end as range_end
from npuscope.mstx.calls import range_start as range_start
