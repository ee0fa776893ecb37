"""What a query gives: results, late rows, rejected rows and counters, of one source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows import local
from gpu_windows.errors import ColumnTypeError
from gpu_windows.operators.base import REASON
from gpu_windows.plan import Plan
from gpu_windows.planner import explain, plan
from gpu_windows.query import Query, require_column

if TYPE_CHECKING:
    from pyspark.sql import Column

#: A Spark DataFrame or an Arrow table, whichever the query began with.
Frame = Any


class Outputs(ABC):
    """The outputs of one query."""

    plan: Plan

    @abstractmethod
    def result(self) -> Frame:
        """Return keys, ``window_start``, ``window_end`` and the results."""

    @abstractmethod
    def late(self) -> Frame:
        """Return the input rows that came after all their windows were closed."""

    @abstractmethod
    def rejected(self) -> Frame:
        """Return the input rows without a usable timestamp, with a column ``reason``.

        ``null_timestamp``, or ``out_of_range_timestamp`` where a window would not fit int64.
        """

    @abstractmethod
    def metrics(self) -> Frame:
        """Return one row of counters.

        ``rows`` seen; of these ``late``, ``gap`` (between windows), ``null_timestamp`` and
        ``out_of_range_timestamp`` are in no window; ``fired`` windows were emitted.
        """

    def explain(self) -> str:
        """Return what is computed, how, where and why."""
        return explain(self.plan)


class Source(ABC):
    """Where rows come from."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns."""

    @abstractmethod
    def name(self, column: str | Column, fallback: str | None) -> tuple[Source, str]:
        """Return this source with the column in it, and the column's name.

        An expression gets its own name (its alias), or ``fallback`` where one is given.
        """

    @abstractmethod
    def outputs(self, query: Query) -> Outputs:
        """Plan a query over this source."""


class ArrowSource(Source):
    """An Arrow table, or a reader, which is read once."""

    def __init__(self, data: pa.Table | pa.RecordBatchReader) -> None:
        self._data = data

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns."""
        return self._data.schema

    def name(self, column: str | Column, fallback: str | None) -> tuple[Source, str]:
        """Return the name; Arrow has no column expressions."""
        if not isinstance(column, str):
            rule = "columns of an Arrow table are given by name"
            raise ColumnTypeError(rule, value=type(column).__name__)
        require_column(self.schema, column)
        return self, column

    def outputs(self, query: Query) -> Outputs:
        """Plan for the local runner."""
        return ArrowOutputs(plan(query, bounded=True), self._data)


class ArrowOutputs(Outputs):
    """Outputs of the local runner; the query runs once, when the first is asked for."""

    def __init__(self, planned: Plan, data: pa.Table | pa.RecordBatchReader) -> None:
        self.plan = planned
        self._data = data

    @cached_property
    def _run(self) -> local.LocalRun:
        return local.run(self.plan, self._data)

    def result(self) -> pa.Table:
        """Return the results, in order of firing."""
        return self._run.results

    def late(self) -> pa.Table:
        """Return no row: a bounded input is complete before a window closes."""
        unused = self._run.unused
        return unused.filter(pc.equal(unused.column(REASON), "late")).drop_columns([REASON])

    def rejected(self) -> pa.Table:
        """Return the rows without a usable timestamp, and the reason."""
        unused = self._run.unused
        return unused.filter(pc.not_equal(unused.column(REASON), "late"))

    def metrics(self) -> pa.Table:
        """Return one row of counters."""
        return pa.Table.from_pylist([vars(self._run.counters)])
