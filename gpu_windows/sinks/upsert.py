"""A sink for a table with one row for each key and window, or for each of a key's first rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpu_windows.commits.records import LATE, RESULT
from gpu_windows.planning.plan import Plan
from gpu_windows.runners.sink import Sink, SinkBatch, SinkQuery, SinkWriter
from gpu_windows.sinks.function import check_takes, planned_argument
from gpu_windows.sinks.modes import Replacement, check_can_upsert


@dataclass(frozen=True)
class Upsert(Sink):
    """A sink that keeps the latest result of each key and window, or number: see `upsert`.

    Parameters
    ----------
    merge : callable
        Takes results, the columns that tell rows apart, and the number of the micro-batch.
    late : callable, optional
        Takes late and rejected rows, and the number of the micro-batch.

    Examples
    --------
    >>> sink = gw.upsert(lambda results, columns, number: results.show())
    >>> isinstance(sink, gw.typing.Upsert), sink.late is None
    (True, True)
    """

    merge: Callable[..., None]
    late: Callable[..., None] | None = None

    def __post_init__(self) -> None:
        planned = planned_argument(self.merge, None)
        check_takes(self.merge, "results", "columns", "number", **planned)
        if self.late is not None:
            check_takes(self.late, "late rows", "number", **planned_argument(self.late, None))

    def check(self, plan: Plan) -> None:
        """Raise for results without the columns that identify the row each replaces.

        Raises
        ------
        QueryError
        UnsupportedQueryError
        """
        check_can_upsert(plan)

    def open(self, query: SinkQuery) -> SinkWriter:
        """Return a writer that knows the columns which identify rows."""
        return UpsertWriter(self, Replacement.of(query))


@dataclass(frozen=True)
class UpsertWriter(SinkWriter):
    """Calls the functions of an `Upsert`.

    Parameters
    ----------
    sink : Upsert
    replacement : Replacement
        Of results.
    """

    sink: Upsert
    replacement: Replacement

    def write(self, batch: SinkBatch) -> None:
        """Merge the last firing of each window, and pass on the late rows."""
        outputs = batch.outputs
        rows = self.replacement.latest(outputs[RESULT])
        merge, late = self.sink.merge, self.sink.late
        merge(rows, self.replacement.on, batch.number, **planned_argument(merge, batch.planned_ms))
        if late is not None:
            late(outputs[LATE], batch.number, **planned_argument(late, batch.planned_ms))


def upsert(
    merge: Callable[..., None],
    *,
    late: Callable[..., None] | None = None,
) -> Upsert:
    """Return a sink for a table in which a window's later firing replaces its earlier one.

    ``merge`` gets the last firing of each window in a micro-batch, so it may be a MERGE of Delta
    Lake or Iceberg; a repetition after a restart changes nothing. Windows that merge after they
    have fired, such as sessions with early results, need the column ``change``
    (``with_firing_columns(changes=True)``): rows with "delete" are to be removed.

    For the first rows of keys (`KeyedStream.top`), ``merge`` gets the changes of a micro-batch, one
    row for each key and number. Their column ``change`` says whether the row is new ("insert"),
    replaces another ("update_after") or is removed ("delete").

    For the rows of a `top` of windows, the number is among the columns that identify rows: if a
    later firing has fewer rows, the others stay. Results of a function with several rows per window
    have no such column: ``merge`` gets all rows of the last firing.

    Parameters
    ----------
    merge : callable
        Takes the results, the names of the columns that identify rows (the keys, which may be
        null: compare with ``<=>``, and the window's bounds), and the number of the micro-batch.
        If it, or ``late``, has a parameter ``planned_ms``, it also gets the time at which Spark
        planned the micro-batch (`SinkBatch.planned_ms`), because an older copy of a checkpoint uses
        the same numbers for other rows.
    late : callable, optional
        Takes the late and rejected rows, and the number of the micro-batch. Default: they are
        counted, not written.

    Raises
    ------
    QueryError
        If one of them cannot be called with these arguments.

    Examples
    --------
    >>> def merge(results, columns, number):
    ...     results.createOrReplaceTempView("changes")
    ...     on = " AND ".join(f"t.{name} <=> c.{name}" for name in columns)
    ...     results.sparkSession.sql(
    ...         f"MERGE INTO minutes t USING changes c ON {on} "
    ...         "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ...     )
    >>> sink = gw.upsert(merge)
    >>> isinstance(sink, gw.Sink)
    True
    """
    return Upsert(merge, late)
