"""Aggregates that OVER alone has: values of rows nearby, numbers and ranks of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_windows.aggregates.aggregate import Aggregate, Framed
from gpu_windows.aggregates.built_in import count, first
from gpu_windows.errors import InvalidFrameError
from gpu_windows.vocabulary.frames import BEFORE_NOW, PeerRows, Range, Rows
from gpu_windows.vocabulary.options import is_whole

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


def lag(column: str | Column, rows: int = 1, *, by_time: bool = False) -> Framed:
    """Value of the row ``rows`` rows before, in order of time; null if it does not exist.

    For `KeyedStream.over`.

    Parameters
    ----------
    column : str or Column
        Any type.
    rows : int
        How many rows before, at least 1.
    by_time : bool
        Whether rows of the same time have the same value, that of the last of them, as in Flink's
        SQL. Otherwise each has its own predecessor, in order of arrival.

    Examples
    --------
    >>> prices = gw.stream(pa.table({"item": ["tea"] * 3, "price": [3, 4, 6], "ts": [1, 2, 3]}))
    >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    >>> items = prices.event_time("ts", in_order).key_by("item")
    >>> items.over().aggregate(before=gw.lag("price"))["before"].to_pylist()
    [None, 3, 4]
    """
    bounds = _single_row("lag", column, rows, before=True)
    return Framed(first(column), PeerRows(*bounds) if by_time else Rows(*bounds))


def lead(column: str | Column, rows: int = 1) -> Framed:
    """Value of the row ``rows`` rows after, in order of time; null if it does not exist.

    For `KeyedStream.over`; not on streams.

    Parameters
    ----------
    column : str or Column
        Any type.
    rows : int
        How many rows after, at least 1.

    Examples
    --------
    >>> prices = gw.stream(pa.table({"item": ["tea"] * 3, "price": [3, 4, 6], "ts": [1, 2, 3]}))
    >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    >>> items = prices.event_time("ts", in_order).key_by("item")
    >>> items.over().aggregate(next=gw.lead("price"))["next"].to_pylist()
    [4, 6, None]
    """
    return Framed(first(column), Rows(*_single_row("lead", column, rows, before=False)))


def row_number() -> Framed:
    """Number of the row among those of its key in order of time, from 1. Result: BIGINT.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann", "bob", "ann"], "ts": [1, 1, 1]}))
    >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    >>> users = clicks.event_time("ts", in_order).key_by("user")
    >>> users.over().aggregate(n=gw.row_number()).select(["user", "n"]).to_pylist()
    [{'user': 'ann', 'n': 1}, {'user': 'bob', 'n': 1}, {'user': 'ann', 'n': 2}]
    """
    return Framed(count(), Rows())


def rank() -> Framed:
    """One more than the number of rows of the key with an earlier time. Result: BIGINT.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "ts": [1, 1, 2]}))
    >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    >>> users = clicks.event_time("ts", in_order).key_by("user")
    >>> users.over().aggregate(rank=gw.rank())["rank"].to_pylist()
    [1, 1, 3]
    """
    return Framed(Aggregate("rank"), Range(None, BEFORE_NOW))


def dense_rank() -> Framed:
    """Number of the row's time among the distinct times of the key, from 1. Result: BIGINT.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "ts": [1, 1, 2]}))
    >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    >>> users = clicks.event_time("ts", in_order).key_by("user")
    >>> users.over().aggregate(rank=gw.dense_rank())["rank"].to_pylist()
    [1, 1, 2]
    """
    return Framed(Aggregate("dense_rank"), Range())


def _single_row(name: str, column: str | Column, rows: int, *, before: bool) -> tuple[int, int]:
    """Return the bounds of a frame of one row."""
    if column is None:
        raise InvalidFrameError(f"{name} takes a column", value=None)
    if not is_whole(rows) or rows < 1:
        raise InvalidFrameError(f"{name} takes a positive number of rows", value=repr(rows))
    return (rows, -rows) if before else (-rows, rows)
