"""Rows of a scan that tasks read themselves, or the reason why Spark reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Self

from gpu_windows.errors import GpuWindowsError
from gpu_windows.planning.plan import Plan
from gpu_windows.runners.row_changes import RowChange
from gpu_windows.runners.scanned_rows import ScannedRows
from gpu_windows.spark_glue.columns.types import to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ArrivingFiles:
    """The files of a stream.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        A streaming one: their paths.
    roots : tuple of str
        Of the folders that they come to.
    """

    frame: DataFrame
    roots: tuple[str, ...]


@dataclass(frozen=True)
class TaskScan:
    """The rows of a scan as tasks read them, beside the DataFrame of the same rows.

    Parameters
    ----------
    rows : ScannedRows, optional
        None where Spark reads them.
    reason : str
        Why it does.
    arriving : ArrivingFiles, optional
        Of a stream: where its files come from.
    """

    rows: ScannedRows | None
    reason: str = ""
    arriving: ArrivingFiles | None = None

    def then(self, change: RowChange | str) -> Self:
        """Return the rows after a change.

        Parameters
        ----------
        change : RowChange or str
            A string is the reason why tasks cannot make it.
        """
        if self.rows is None:
            return self
        if isinstance(change, str):
            return replace(self, rows=None, reason=change)
        try:
            return replace(self, rows=self.rows.then(change))
        except GpuWindowsError as error:
            return replace(self, rows=None, reason=str(error))

    def check_columns(self, frame: DataFrame) -> Self:
        """Return this scan, or the reason why its columns differ from those of a DataFrame."""
        if self.rows is None:
            return self
        found = {field.name: field.type for field in self.rows.schema}
        wanted = {field.name: field.type for field in to_arrow_schema(frame.schema)}
        unlike = [n for n in {**wanted, **found} if found.get(n) != wanted.get(n)]
        if not unlike:
            return self
        name = unlike[0]
        reason = f"column {name} is {wanted.get(name)} to Spark, and {found.get(name)} in a task"
        return replace(self, rows=None, reason=reason)

    @classmethod
    def concat(cls, scans: Iterable[TaskScan | None]) -> Self | None:
        """Return the union of several sources; None if none of them is a scan."""
        every = tuple(scans)
        given = [scan for scan in every if scan is not None]
        if not given:
            return None
        if any(scan.arriving is not None for scan in given):
            return cls(None, "several streams of files are read by Spark")
        parts = [scan.rows.parts for scan in given if scan.rows is not None]
        if len(parts) < len(every):
            reasons = (scan.reason for scan in given if scan.rows is None)
            return cls(None, next(reasons, "another input is a DataFrame"))
        return cls(ScannedRows(tuple(chain.from_iterable(parts))))

    def describe(self, plan: Plan, *, in_task: bool) -> str:
        """Return a line of ``explain()``: who reads the rows, and why tasks do not."""
        if self.rows is None or not in_task:
            reason = self.reason or "Spark sorts its rows, or makes the partials"
            return f"files are read by Spark: {reason}"
        parts = self.rows.parts
        columns = sorted({n for part in parts for n in part.columns_read(plan.input_columns)})
        text = f"files are read in the tasks, by Arrow: columns {', '.join(columns)}"
        if self.arriving is not None:
            return text
        return f"{text} of {sum(len(part.scan.files) for part in parts)} files"
