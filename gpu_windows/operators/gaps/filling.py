"""Results of windows without rows: the aggregate of no rows, carried forward, interpolated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.aggregates.user import BoundUserAggregate
from gpu_windows.functions.window import Aggregates
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.columns.numeric import from_numeric, one_chunk, to_numeric
from gpu_windows.operators.gaps.gaps import NONE, Windows
from gpu_windows.operators.gaps.numbering import WindowNumbers
from gpu_windows.operators.results import TRACE, Fired, result_table
from gpu_windows.operators.row_at_a_time.accumulators import UserAccumulator, accumulator_of
from gpu_windows.planning.kinds.window import WindowQuery
from gpu_windows.planning.kinds.window_plan import WindowPlan
from gpu_windows.vocabulary.gap_filling import GapFilling

Ints = NDArray[np.int64]


def results_of_no_rows(query: WindowQuery) -> list[pa.Array]:
    """Return an array of one value for each aggregate: its result over no rows."""
    assert isinstance(query.function, Aggregates), "only aggregates are filled"
    return [
        pa.array(
            [
                UserAccumulator(bound, query.display_name).result()
                if isinstance(bound, BoundUserAggregate)
                else accumulator_of(bound).result()
            ],
            bound.result_type,
        )
        for bound in query.function.bound
    ]


class FilledResults:
    """Makes result tables of windows with and without rows.

    Parameters
    ----------
    plan : WindowPlan
    filling : GapFilling
    keys : KeyEncoder
    numbers : WindowNumbers
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(
        self,
        plan: WindowPlan,
        filling: GapFilling,
        keys: KeyEncoder,
        numbers: WindowNumbers,
        *,
        trace: bool,
    ) -> None:
        self._schema = pa.schema([*plan.result_schema, *(TRACE if trace else ())])
        self._filling, self._keys, self._numbers = filling, keys, numbers
        self._names = [bound.name for bound in plan.query.function.output_fields(plan.query.schema)]
        self._no_rows = results_of_no_rows(plan.query)

    @property
    def empty(self) -> pa.Table:
        """A table without results."""
        return self._schema.empty_table()

    def make_table(self, windows: Windows, results: pa.Table, carried: pa.Table) -> pa.Table:
        """Return the results of windows.

        Parameters
        ----------
        windows : Windows
            Their rows are indices into ``results``; ``before`` is one into these and then
            ``carried``.
        results : pyarrow.Table
            Of windows with rows.
        carried : pyarrow.Table
            Values of earlier windows.
        """
        columns = [
            self._column(name, no_rows, windows, results, carried)
            for name, no_rows in zip(self._names, self._no_rows, strict=True)
        ]
        ends = self._numbers.ends(windows.numbers)
        fired = Fired(
            self._numbers.starts(windows.numbers), ends, 0, "on_time", "event_time", ends - 1
        )
        keys = self._keys.decode(windows.codes)
        return result_table(self._schema, keys, len(windows), fired, columns)

    def _column(
        self,
        name: str,
        no_rows: pa.Array,
        windows: Windows,
        results: pa.Table,
        carried: pa.Table,
    ) -> pa.Array:
        column = one_chunk(results.column(name))
        if name not in self._filling.carried_results:
            index = np.where(windows.is_filled, len(column), windows.rows)
            return _take([column, no_rows], index)
        parts = [column, one_chunk(carried.column(name)), pa.nulls(1, column.type)]
        null = len(column) + len(carried)
        if name in self._filling.carry_forward:
            before = np.where(windows.before == NONE, null, windows.before)
            return _take(parts, np.where(windows.is_filled, before, windows.rows))
        whole = pa.concat_arrays(parts)
        if not windows.is_filled.any():
            return whole.take(pa.array(windows.rows))
        return self._interpolate(whole, windows, null)

    def _interpolate(self, column: pa.Array, windows: Windows, null: int) -> pa.Array:
        """Return a column of results, those of filled windows on a line between neighbours."""
        has_both = windows.is_filled & (windows.before != NONE) & (windows.after != NONE)
        left = np.where(windows.is_filled, np.where(has_both, windows.before, null), windows.rows)
        right = np.where(has_both, windows.after, left)
        begins, ends = (to_numeric(column.take(pa.array(index))) for index in (left, right))
        low, high = map(self._numbers.ordinals, windows.numbers_around)
        step = np.where(has_both, self._numbers.ordinals(windows.numbers) - low, 0)
        values = _on_line(begins.values, ends.values, step, np.where(has_both, high - low, 1))
        valid = [each.valid for each in (begins, ends) if len(each.valid)]
        mask = np.logical_and.reduce(valid) if valid else np.empty(0, np.bool_)
        return from_numeric(values, mask, column.type)


def _take(parts: list[pa.Array], index: Ints) -> pa.Array:
    """Return values of several arrays by their indices in all of them."""
    return pa.concat_arrays(parts).take(pa.array(index))


def _on_line(begins: NDArray[Any], ends: NDArray[Any], step: Ints, steps: Ints) -> NDArray[Any]:
    """Return values on lines, after some of their steps; at step 0 where they begin."""
    if begins.dtype == np.float64:
        with np.errstate(invalid="ignore", over="ignore"):
            line: NDArray[Any] = begins + (ends - begins) * (step / steps)
        return np.where(step == 0, begins, line)  # an infinity less itself is NaN
    whole, rest = np.divmod(ends - begins, steps)  # the product of both could overflow
    found: NDArray[Any] = begins + whole * step + rest * step // steps
    return found
