"""Columns of our own among those of users, and how messages call some columns."""

from __future__ import annotations

from gpu_windows.functions.two_inputs import COPY, DELETED, MARKS

#: Name of the column that says why a row was rejected or late.
REASON = "rejection_reason"

#: How messages call the column that carries watermarks.
CARRIER = "the column of watermarks"

#: Columns of our own, which users do not see: the time of rows that have none is null, the key of
#: rows that have none is one for all, or spreads them over shards where that does not matter.
NO_TIME, NO_KEY, SPREAD = "__no_time", "__no_key", "__spread"
#: All columns of our own that rows may have where they come back.
OWN = (NO_TIME, NO_KEY, SPREAD, COPY, DELETED, *MARKS)
