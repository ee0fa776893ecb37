"""Compares what was executed with what was expected."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpu_windows.planning.kinds.window import WindowQuery
from tests.simulation.case import Case
from tests.simulation.outcome import Given, Outcome, Values
from tests.simulation.user_parts import SessionsUpTo

#: Relative and absolute: variances of floats depend on the order in which they are combined.
_TOLERANCE = 1e-9


def differences(case: Case, wanted: Outcome, found: Outcome) -> Iterator[str]:
    """Yield in words where two outcomes differ."""
    errors = [type(each.error).__name__ for each in (wanted, found)]
    if errors[0] != errors[1]:
        yield f"error: expected {wanted.error!r}, found {found.error!r}"
    if found.error is not None:
        return
    for number, (ours, its) in enumerate(zip(wanted.segments, found.segments, strict=True)):
        where = "the end" if number == len(found.segments) - 1 else f"segment {number}"
        yield from (f"{where}: {text}" for text in _of_segment(ours, its))
    if not _may_leave(case):
        for name, outcome in (("expected", wanted), ("found", found)):
            if outcome.left:
                yield f"left at the end: {name} {dict(outcome.left)}"


def _may_leave(case: Case) -> bool:
    """Whether something may be left, as in Flink: windows without an end, and in processing
    time.

    Sessions that are cut may be merged when a row of another one comes: nothing sets a timer to
    drop these.
    """
    has_end = case.query.ends_with_time and not case.is_stamped
    return not has_end or (
        isinstance(case.query, WindowQuery) and isinstance(case.query.assigner, SessionsUpTo)
    )


def _of_segment(wanted: Given, found: Given) -> Iterator[str]:
    for what in ("results", "late"):
        missing, extra = unmatched(getattr(wanted, what), getattr(found, what))
        yield from (f"{what}: lacks {row}" for row in missing)
        yield from (f"{what}: has {row}" for row in extra)
    if wanted.counters != found.counters:
        yield f"counters: expected {wanted.counters}, found {found.counters}"


def unmatched(wanted: Counter[Values], found: Counter[Values]) -> tuple[list[Values], list[Values]]:
    """Return the rows that only one of two has; floats may differ by a rounding."""
    missing, extra = list((wanted - found).elements()), list((found - wanted).elements())
    for row in list(missing):
        near = next((other for other in extra if _is_near(row, other)), None)
        if near is not None:
            missing.remove(row)
            extra.remove(near)
    return missing, extra


def _is_near(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_is_near, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(one == other)
