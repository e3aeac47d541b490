"""What the machine said of flags and events, as findings of the synchronisation check."""

from __future__ import annotations

from npuscope.sanitizer.faults import FORMS as OTHER_FORMS
from npuscope.sanitizer.faults import Form, about_synchronisation
from npuscope.sanitizer.findings import Severity
from npuscope.trace.schema import Fault

FORMS: dict[str, Form] = {
    "flag_set_twice": Form(
        "flag-set-twice", Severity.ERROR,
        lambda facts: f"flag {facts['event']} id {facts['id']} is set while it is up: a flag is one bit, what the "
        "second set does is undefined",
        "Wait for the flag before it is set again, or use another id.",
    ),
    "flag_left_set": Form(
        "unpaired-flag", Severity.WARNING,
        lambda facts: f"flag {facts['event']} id {facts['id']} is up when the kernel ends: no wait_flag takes it, and "
        "the next kernel on the core meets it",
        "Wait for it once more before the end, or leave out the last set.",
    ),
    "cross_core_overflow": Form(
        "cross-core-overflow", Severity.ERROR,
        lambda facts: f"cross-core flag {facts['id']} is raised to {facts['count']} on {facts['core']}, its counter "
        f"holds {facts['limit']}: the set is lost",
        "Wait for the flag more often: at most 15 sets may be waiting.",
    ),
    "cross_core_left_set": Form(
        "cross-core-left-set", Severity.WARNING,
        lambda facts: f"the counter of cross-core flag {facts['id']} stands at {facts['count']} when the kernel ends: "
        "as many waits are missing, and the next kernel's first wait does not wait",
        "Let every set be waited for on each core that it reaches.",
    ),
    "bad_event": Form(
        "bad-event", Severity.ERROR,
        lambda facts: f"{facts['event']} names one pipe twice: a flag from a pipe to itself never arrives",
        "Use pipe_barrier to order a pipe with itself.",
    ),
    "event_elsewhere": Form(
        "event-elsewhere", Severity.ADVISORY,
        lambda facts: f"flag {facts['event']} does nothing here: the cores of this launch have the pipes "
        f"{', '.join(facts['pipes'])}",
        "Name pipes that this kind of core has, or leave the flag out.",
    ),
    "event_ids_exhausted": Form(
        "queue-limit", Severity.ERROR,
        lambda facts: f"all {facts['limit']} event ids of {facts['event']} are taken",
        "Release event ids that are not needed any more.",
    ),
    "event_id_not_allocated": Form(
        "queue-state", Severity.ERROR,
        lambda facts: f"event id {facts['id']} of {facts['event']} is released but was not allocated",
        "Release each id once, after alloc_event_id.",
    ),
}
"""Faults that the check of synchronisation reports, apart from ``deadlock`` and its share of ``bad_operand``."""


def form_of(fault: Fault) -> Form | None:
    """How a fault reads, None for one that is not about synchronisation."""
    if fault.code == "bad_operand":
        return OTHER_FORMS["bad_operand"] if about_synchronisation(fault) else None
    return FORMS.get(fault.code)
