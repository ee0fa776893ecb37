"""Which parts of a query over windows depend on the order in which rows arrive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpu_windows.planning.validation import is_user_code
from gpu_windows.vocabulary.triggers import EventTimeTrigger

if TYPE_CHECKING:
    from gpu_windows.planning.kinds.window import WindowQuery


def find_ordered_parts(query: WindowQuery, *, bounded: bool) -> tuple[str, ...]:
    """Return the parts whose result depends on the order of arrival, in words.

    ``bounded``: whether the input is, so that no row is late.
    """
    parts = [*query.function.ordered_parts]
    at_end = isinstance(query.trigger, EventTimeTrigger) and query.assigner.is_event_time
    if not at_end:  # a continuous trigger begins with the time of the first row
        parts.append(f"the trigger ({query.trigger.describe()})")
    if query.evictor is not None:
        parts.append(f"the evictor ({query.evictor.describe()})")
    if query.merges and is_user_code(query.assigner):
        parts.append(f"what is merged ({query.assigner.describe()})")
    if not bounded and query.assigner.is_event_time:
        parts += _ordered_when_late(query)
    return tuple(parts)


def _ordered_when_late(query: WindowQuery) -> Iterator[str]:
    """Yield what late rows do: one that finds a session open makes it reach further."""
    if query.merges:
        yield "which rows are late for their session"
    if query.allowed_lateness > 0:
        yield "what late rows fire, one by one"
