"""Join functions, called with the pairs of a join operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.functions.checked_results import as_rows
from gpu_windows.functions.counts import Counts
from gpu_windows.functions.failures import describe_key, failure
from gpu_windows.functions.join_function import IntervalPairs, PairProcess, WindowPairs
from gpu_windows.functions.keyed_process import dicts
from gpu_windows.functions.side_outputs import GatheredRows, GatheredSides
from gpu_windows.functions.two_inputs import MARKS
from gpu_windows.operators import open_functions
from gpu_windows.operators.base import Emission, Operator, StatefulOperator, Timers
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.process.output import EMISSION_ROWS
from gpu_windows.operators.results import TRACE
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.window import WINDOW_END, WINDOW_START
from gpu_windows.planning.plan import Plan
from gpu_windows.vocabulary.triggers.base import Row
from gpu_windows.vocabulary.windows.base import Window, window_of

#: Pairs that are converted to Python rows at once.
_PAIRS = 1 << 13


class PairsOperator(StatefulOperator[StateLog]):
    """Calls a user function with the pairs of a join; it has no state of its own.

    Parameters
    ----------
    plan : Plan
        Of a join with a function, which is open.
    process : PairProcess
        The function.
    pairs : Operator
        The join operator, the same as without a function.
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.
    """

    def __init__(
        self,
        plan: Plan,
        process: PairProcess,
        pairs: Operator,
        *,
        trace: bool = False,
    ) -> None:
        query = plan.query
        self._plan, self._process, self._pairs = plan, process, pairs
        self._schema = pa.schema([*plan.result_schema, *(TRACE if trace else ())])
        self._keys, self._firsts = query.keys, len(query.keys) + len(query.bound_fields)
        self._key_of_context = query.keys if query.has_key else ()
        self._new_context = _CONTEXTS[type(process)]
        owner = process.name
        self._rows: GatheredRows[int] = GatheredRows(process.output, owner)
        self._sides: GatheredSides[int] = GatheredSides(process.function.side_outputs, owner)
        self._counts = Counts()
        self._names = dict(process.left), dict(process.right)

    # ---- interface of an operator

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Process rows of both sides; emit the results of the function for their pairs."""
        yield from self._each(self._pairs.process(batch))

    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Emit the results of the function for the pairs that are due."""
        yield from self._each(self._pairs.advance_watermark(watermark))

    def advance_processing_time(self, time: int) -> Iterator[Emission]:
        """Emit the results of the function for the pairs that are due."""
        yield from self._each(self._pairs.advance_processing_time(time))

    def state_size(self) -> dict[str, int]:
        """Return the number of entries of each kind."""
        return self._pairs.state_size()

    def close(self) -> None:
        """Close the user functions of the query."""
        self._pairs.close()
        open_functions.close(self._plan.query.token)

    @property
    def _stateful_pairs(self) -> StatefulOperator[Any]:
        """The operator of the pairs, which has all the state."""
        assert isinstance(self._pairs, StatefulOperator), "joins keep rows"
        return self._pairs

    def _restore_state(self, log: StateLog) -> StateLog:
        self._stateful_pairs.restore(log)
        return log

    def _save(self, stored: StateLog) -> None:
        del stored
        self._stateful_pairs.save()

    def _next_timers(self, stored: StateLog) -> Timers:
        del stored
        return self._stateful_pairs.next_timers()

    # ---- pairs

    def _each(self, emissions: Iterator[Emission]) -> Iterator[Emission]:
        """Yield the results of the function for pairs, then the rest of their emissions."""
        none = self._schema.empty_table()
        for emission in emissions:
            for begin in range(0, len(emission.results), _PAIRS):
                yield from self._call_function(emission.results.slice(begin, _PAIRS))
            counters = replace(emission.counters, fired=0)  # pairs are no results
            yield Emission(none, emission.late, counters, self._all_sides(emission.sides))

    def _call_function(self, pairs: pa.Table) -> Iterator[Emission]:
        """Call the function with some pairs; yield its results."""
        handler, called = self._process.handler, f"{self._process.name}.{self._process.method}"
        context = self._new_context(pairs, self._key_of_context, self._sides, self._counts)
        lefts, rights = (_rows_of(pairs, *side) for side in zip(self._names, MARKS, strict=True))
        for context.index, (left, right) in enumerate(zip(lefts, rights, strict=True)):
            try:
                for row in as_rows(handler(left, right, context)):
                    self._rows.add(context.index, row)
            except Exception as error:
                at = f"{describe_key(context.key)}, left row {left!r}, right row {right!r}"
                raise failure(error, f"{called}, at {at}", handler) from error
            if len(self._rows.rows) + len(self._sides) >= EMISSION_ROWS:
                yield self._make_emission(pairs)
        if self._rows.rows or self._sides or self._counts:
            yield self._make_emission(pairs)

    def _make_emission(self, pairs: pa.Table) -> Emission:
        """Return an emission of the gathered results for some pairs."""
        indices, rows = self._rows.take()
        of = pairs.take(pa.array(indices, pa.int64()))
        before = self._schema.names[: self._firsts]
        after = self._schema.names[self._firsts + len(rows.schema) :]
        columns = [*of.select(before).columns, *rows.columns, *of.select(after).columns]
        results = pa.Table.from_arrays(columns, schema=self._schema)
        sides = {tag: self._with_keys(pairs, *rows) for tag, rows in self._sides.take().items()}
        counters = Counters(fired=len(rows), user=tuple(sorted(self._counts.items())))
        self._counts.clear()
        return Emission(results, pa.table({}), counters, self._all_sides(sides))

    def _with_keys(self, pairs: pa.Table, indices: list[int], rows: pa.Table) -> pa.Table:
        """Return rows after the keys of their pairs."""
        keys = pairs.select(self._keys).take(pa.array(indices, pa.int64()))
        names = [*keys.column_names, *rows.column_names]
        return pa.Table.from_arrays([*keys.columns, *rows.columns], names=names)

    def _all_sides(self, found: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Return the rows of all side outputs of the query, in its order."""
        return {
            tag: found[tag].cast(schema) if tag in found else schema.empty_table()
            for tag, schema in self._plan.query.side_outputs.items()
        }


def _rows_of(pairs: pa.Table, names: Mapping[str, str], mark: str) -> Iterator[Row | None]:
    """Yield the rows of a side; None for pairs without one, or if the join omits the side."""
    if mark not in pairs.column_names:
        return iter([None] * len(pairs))
    is_there = pc.is_valid(pairs.column(mark)).to_pylist()
    return (
        row if there else None for row, there in zip(dicts(pairs, names), is_there, strict=True)
    )


class _PairContext:
    """A `gpu_windows.functions.join_function.PairContext` of the current pair.

    Attributes
    ----------
    index : int
        Index of the current pair.
    """

    index: int

    def __init__(
        self,
        pairs: pa.Table,
        keys: Sequence[str],
        sides: GatheredSides[int],
        counts: Counts,
    ) -> None:
        self._keys = [*dicts(pairs, {name: name for name in keys})]
        self._sides, self._counts = sides, counts

    @property
    def key(self) -> Row:
        """The key of the current pair."""
        return self._keys[self.index]

    def output(self, tag: str, row: Mapping[str, object]) -> None:
        """Add a row to a side output."""
        self._sides.add(tag, self.index, row)

    def count(self, counter: str, by: int = 1) -> None:
        """Add to a counter of the user's."""
        self._counts.add(counter, by)


class _InTime(_PairContext):
    """An `IntervalPairContext`."""

    def __init__(self, pairs: pa.Table, *rest: Any) -> None:
        super().__init__(pairs, *rest)
        self._times = [_ticks(pairs, mark) for mark in MARKS]

    @property
    def left_timestamp(self) -> int | None:
        """The time of the left row."""
        return self._times[0][self.index]

    @property
    def right_timestamp(self) -> int | None:
        """The time of the right row."""
        return self._times[1][self.index]

    @property
    def timestamp(self) -> int:
        """The later time of both."""
        both = (self.left_timestamp, self.right_timestamp)
        return max(time for time in both if time is not None)


class _InWindows(_PairContext):
    """A `WindowPairContext`."""

    def __init__(self, pairs: pa.Table, *rest: Any) -> None:
        super().__init__(pairs, *rest)
        self._bounds = [pairs.column(name).to_pylist() for name in (WINDOW_START, WINDOW_END)]

    @property
    def window(self) -> Window:
        """The window of the current pair."""
        start, end = (bounds[self.index] for bounds in self._bounds)
        return window_of(start, end)


def _ticks(pairs: pa.Table, mark: str) -> list[int | None]:
    """Return the times of a side; None where it has no row."""
    if mark not in pairs.column_names:
        return [None] * len(pairs)
    ticks: list[int | None] = pairs.column(mark).cast(pa.int64()).to_pylist()
    return ticks


#: What functions may ask, by what is known of their pairs.
_CONTEXTS: Mapping[type[PairProcess], Callable[..., _PairContext]] = {
    IntervalPairs: _InTime,
    WindowPairs: _InWindows,
}
