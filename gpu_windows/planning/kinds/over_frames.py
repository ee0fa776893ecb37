"""Which frames streams can have."""

from __future__ import annotations

from gpu_windows.errors import UnsupportedAggregateError, UnsupportedQueryError
from gpu_windows.planning.kinds.over import OverQuery
from gpu_windows.rules import LONG_MAX
from gpu_windows.vocabulary.frames import Frame


def check_over(query: OverQuery, *, spark: bool) -> None:
    """Refuse frames that streams cannot have.

    Raises
    ------
    UnsupportedQueryError, UnsupportedAggregateError
        With the reason.
    """
    for frame in query.over.frames:
        reason = _why_not(frame)
        if reason is not None:
            raise UnsupportedQueryError(reason, value=frame.describe())
    for column in query.over.columns:
        if column.frame.is_unbounded_before and column.counts_once:
            rule = "on streams different values of all rows of a key are not counted: all are kept"
            raise UnsupportedAggregateError(rule, value=column.describe())
    if spark and not query.watermarks.moves:
        rule = "over gives a row when the watermark has passed it: on streams there must be one"
        raise UnsupportedQueryError(rule, value=query.watermarks.describe())


def _why_not(frame: Frame) -> str | None:
    """Return why a stream cannot have a frame, or None."""
    if frame.upper == LONG_MAX:
        return "on a stream a key has no last row: following must have an end"
    if not frame.in_time and frame.upper > 0:
        return "on streams frames of rows end with the row or before: later rows are not there yet"
    if frame.is_unbounded_before and frame.upper < (-1 if frame.in_time else 0):
        return "on streams a frame from the first row on ends with the row, or just before its time"
    return None
