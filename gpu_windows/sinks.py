"""Where the results of streaming queries go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Upsert:
    """A sink that keeps one result for each key and window, the latest: see `upsert`."""

    merge: Callable[[DataFrame, tuple[str, ...], int], None]
    late: Callable[[DataFrame, int], None] | None = None


def upsert(
    merge: Callable[[DataFrame, tuple[str, ...], int], None],
    *,
    late: Callable[[DataFrame, int], None] | None = None,
) -> Upsert:
    """Return a sink for a table in which a window's later firing replaces its earlier one.

    Of the firings of a window in a micro-batch ``merge`` is given the last one, so that it may be a
    MERGE of Delta Lake or Iceberg; written twice, after a restart, it changes nothing. A session
    that has grown is another window: what it fired before stays.

    Parameters
    ----------
    merge : callable
        Takes the results, the names of the columns that tell rows apart (the keys, which may be
        null: compare with ``<=>``, and the window's bounds), and the number of the micro-batch.
    late : callable, optional
        Takes the late and rejected rows, and the number of the micro-batch. Default: they are
        counted, not written.
    """
    return Upsert(merge, late)
