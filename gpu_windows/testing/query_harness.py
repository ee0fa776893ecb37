"""Runs a query step by step: rows, watermarks and processing time come when a test says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.column_types.logical import logical_table
from gpu_windows.datastream.schemas import Schema, read_schema
from gpu_windows.datastream.stream import Stream
from gpu_windows.errors import QueryError
from gpu_windows.functions.failures import describe_time
from gpu_windows.operators.base import Emission, StatefulOperator
from gpu_windows.operators.build import restore_operator
from gpu_windows.operators.counters import Counters
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.planning.plan import ARRIVAL
from gpu_windows.rules import LONG_MAX, LONG_MIN
from gpu_windows.runners.arrow_selection import apply_selections
from gpu_windows.runners.arrow_source import IS_BOUNDED, ArrowOutputs, ArrowSource
from gpu_windows.runners.local import LocalRun, batches_for, gather_emissions, without_own
from gpu_windows.runners.selection import Arrangement
from gpu_windows.testing.times import Time, table_of, ticks_of


@dataclass(frozen=True)
class Snapshot:
    """State of a query at a moment, as a checkpoint has it; see `Harness.snapshot`.

    Parameters
    ----------
    log : MemoryLog
        State in the format of a checkpoint, of this version.
    watermark : int
        In ticks.
    rows : int
        Number of rows that were pushed before.
    times : tuple of int
        Times of these rows, in ticks, from which the query's strategy has its watermark.

    Examples
    --------
    >>> schema = pa.schema({"user": pa.string()})
    >>> test = gw.testing.harness(
    ...     lambda rows: rows.key_by("user").count_window(2).with_outputs().aggregate(n=gw.count()),
    ...     schema,
    ... )
    >>> test.push([{"user": "ann"}])
    >>> snapshot = test.snapshot()
    >>> test.push([{"user": "ann"}])
    >>> test.restore(snapshot)
    >>> test.push([{"user": "ann"}])
    >>> test.take()["n"].to_pylist()
    [2]
    """

    log: MemoryLog
    watermark: int
    rows: int
    times: tuple[int, ...] = ()


def harness(query: Callable[..., Any], /, *schemas: Schema, **inputs: Schema) -> Harness:
    """Return a harness of a query, as Flink's tests of operators have them.

    Parameters
    ----------
    query : callable
        Is given a stream for each input, and returns outputs: what ``with_outputs()`` and a verb
        return. It is called for every push of rows, so that the steps before the query are applied
        to them.
    *schemas : pyarrow.Schema, str or StructType
        Columns of the one input that ``query`` takes by position, such as ``frame.schema``.
    **inputs : pyarrow.Schema, str or StructType
        Columns of inputs that it takes by name.

    Returns
    -------
    Harness

    Raises
    ------
    QueryError
        If the query does not return outputs of one query over these inputs.

    Examples
    --------
    >>> def minutes(clicks):
    ...     timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    ...     windowed = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 minute"))
    ...     return windowed.with_outputs().aggregate(n=gw.count())
    >>> test = gw.testing.harness(minutes, "user STRING, ts TIMESTAMP")
    >>> test.push([{"user": "ann", "ts": "2026-05-01 12:00:10"}])
    >>> test.take().num_rows
    0
    >>> test.advance_watermark("2026-05-01 12:01:00")
    >>> test.take()["n"].to_pylist()
    [1]
    """
    if not callable(query):
        rule = "a harness takes a function of streams, which returns outputs"
        raise QueryError(rule, value=type(query).__name__)
    if len(schemas) + len(inputs) == 0 or len(schemas) > 1 or (schemas and inputs):
        rule = "a harness takes the schema of one input, or schemas of several by name"
        raise QueryError(rule, value=f"{len(schemas)} and {', '.join(inputs) or 'none'}")
    columns = {"": schemas[0]} if schemas else inputs
    read = {
        name: read_schema(schema, f"the schema of {name or 'the input'}")
        for name, schema in columns.items()
    }
    return Harness(query, read)


class Harness:
    """A query that runs step by step; `harness` makes it.

    Results come from the operator that streams run, with its state in memory. Time stands still
    between calls. A watermark is what a test says, whatever the query's strategy is.

    Parameters
    ----------
    query : callable
    inputs : mapping of str to pyarrow.Schema
        Columns of each input; of one that has no name, with the name "".

    Examples
    --------
    >>> schema = pa.schema({"user": pa.string()})
    >>> test = gw.testing.harness(
    ...     lambda rows: rows.key_by("user").count_window(2).with_outputs().aggregate(n=gw.count()),
    ...     schema,
    ... )
    >>> test.push([{"user": "ann"}])
    >>> test.push([{"user": "ann"}, {"user": "bob"}])
    >>> test.take()["user"].to_pylist()
    ['ann']
    """

    def __init__(self, query: Callable[..., Any], inputs: Mapping[str, pa.Schema]) -> None:
        self._query, self._inputs = query, dict(inputs)
        outputs = self._build({})
        self._plan, self._schema = outputs.plan, outputs.data.schema
        self._selections = outputs.selections
        self._rows = 0
        self._seen_times: list[int] = []
        #: The watermark in ticks; None before the first.
        self.watermark: int | None = None
        self._counters = Counters()
        self._untaken: dict[str, list[pa.Table]] = {}
        self._start(MemoryLog())

    def _start(self, log: MemoryLog) -> None:
        self._log = log
        self._operator: StatefulOperator[Any] = restore_operator(self._plan, log, in_order=True)

    def _build(self, tables: Mapping[str, pa.Table]) -> ArrowOutputs:
        """Return outputs of the query over some rows of its inputs."""
        rows = {
            name: logical_table(tables.get(name, schema.empty_table()), frozenset())
            for name, schema in self._inputs.items()
        }
        streams = {n: Stream(ArrowSource(each, as_declared=True)) for n, each in rows.items()}
        token = IS_BOUNDED.set(False)
        try:
            by_name = {name: stream for name, stream in streams.items() if name}
            outputs = self._query(*(streams[""],) if "" in streams else (), **by_name)
        finally:
            IS_BOUNDED.reset(token)
        if not isinstance(outputs, ArrowOutputs) or not isinstance(outputs.data, pa.Table):
            rule = "the query of a harness returns outputs: those of with_outputs() and a verb"
            raise QueryError(rule, value=type(outputs).__name__)
        arranges = any(isinstance(each, Arrangement) for each in outputs.selections)
        if arranges or outputs.plan.query.ranking is not None:
            rule = "a harness runs a query without distinct, order_by, limit and a top-N of windows"
            raise QueryError(rule, value=outputs.plan.strategy.value)
        return outputs

    # ---- steps

    def push(self, rows: Any = None, /, **inputs: Any) -> None:
        """Give the query rows, in order of arrival.

        Parameters
        ----------
        rows : table or list of dict
            Of the one input, as Arrow, pandas or Polars have it. Times may be text; a column that a
            dict lacks is null.
        **inputs : table or list of dict
            Of inputs with names; those of one call are together, in the order of the query's sides.

        Raises
        ------
        QueryError
            If there is no such input, it has ended, or a value does not fit its column.
        """
        if self.watermark == LONG_MAX:
            raise QueryError("rows come before end_input(), or after restore() of a snapshot")
        given = inputs if rows is None else {"": rows, **inputs}
        if unknown := [name for name in given if name not in self._inputs]:
            names = ", ".join(map(repr, self._inputs))
            raise QueryError(f"the inputs of this harness are {names}", value=unknown[0])
        tables = {name: table_of(each, self._inputs[name]) for name, each in given.items()}
        data: Any = self._build(tables).data
        for batch in batches_for(self._plan, data):
            if ARRIVAL in batch.column_names:
                at = batch.schema.get_field_index(ARRIVAL)
                batch = batch.set_column(at, ARRIVAL, pc.add(batch[ARRIVAL], self._rows))
            if self._plan.query.needs_time:
                self._seen_times += batch[self._plan.query.time].drop_null().to_pylist()
            self._gather(self._operator.process(batch))
            self._gather(self._operator.end_rows())
        self._rows += len(data)

    def advance_watermark(self, time: Time | None = None) -> None:
        """Advance the watermark; windows and timers up to it fire.

        Parameters
        ----------
        time : datetime, str or int, optional
            Without a zone it is in UTC; an integer is microseconds since 1970. Default: where the
            query's strategy is after the rows so far.

        Raises
        ------
        QueryError
            If it is before the current watermark, or the strategy of several inputs is asked for.
        """
        watermark = self._by_strategy() if time is None else ticks_of(time)
        if self.watermark is not None and watermark < self.watermark:
            rule = f"a watermark does not go back; it is {describe_time(self.watermark)}"
            raise QueryError(rule, value=describe_time(watermark))
        self.watermark = watermark
        self._gather(self._operator.advance_watermark(watermark))

    def _by_strategy(self) -> int:
        strategy: Any = self._plan.query.watermarks
        if len(strategy.inputs) > 1:
            raise QueryError("a query of several inputs has several strategies: give the time")
        times = np.array(self._seen_times, np.int64)
        current = LONG_MIN if self.watermark is None else self.watermark
        return max(current, strategy.watermark_of(times)) if len(times) else current

    def set_processing_time(self, time: Time) -> None:
        """Set the clock; windows and timers of processing time up to it fire.

        Parameters
        ----------
        time : datetime, str or int
            See `advance_watermark`.
        """
        self._gather(self._operator.advance_processing_time(ticks_of(time)))

    def end_input(self) -> None:
        """End the input: everything that has an end in event time fires."""
        self.watermark = LONG_MAX
        self._gather(self._operator.advance_watermark(LONG_MAX))

    def _gather(self, emissions: Iterator[Emission]) -> None:
        found = gather_emissions(self._plan, emissions, self._schema)
        self._counters += found.counters
        tables = _outputs_of(found)
        tables["result"] = apply_selections(tables["result"], self._selections)
        for name, table in tables.items():
            self._untaken.setdefault(name, []).append(table)

    # ---- outputs

    def take(self, output: str = "result") -> pa.Table:
        """Return the rows of an output since it was last taken.

        Parameters
        ----------
        output : str
            ``"result"``, ``"late"``, ``"rejected"`` (with the reason), or ``"sides/TAG"``.

        Returns
        -------
        pyarrow.Table
        """
        if not self._untaken:
            self._gather(iter(()))
        if output not in self._untaken:
            rule = f"outputs are {', '.join(self._untaken)}"
            raise QueryError(rule, value=repr(output))
        tables = self._untaken[output]
        self._untaken[output] = [tables[0].slice(0, 0)]
        return pa.concat_tables(tables)

    @property
    def counters(self) -> Counters:
        """Counters of all steps so far, those of user code in ``user``."""
        return self._counters

    def state_size(self) -> dict[str, int]:
        """Return the number of entries of each kind of state: 0 if nothing is left behind."""
        return self._operator.state_size()

    # ---- state

    def snapshot(self) -> Snapshot:
        """Return the state, as a checkpoint would have it; the query continues from it.

        Returns
        -------
        Snapshot
        """
        self._operator.save()
        self._log.reopen()
        copy = self._log.copy()
        self._start(self._log.copy())
        watermark = LONG_MIN if self.watermark is None else self.watermark
        return Snapshot(copy, watermark, self._rows, tuple(self._seen_times))

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, also one of another harness of the same query.

        Rows of outputs that were not taken are dropped, as after a crash.

        Raises
        ------
        StateError
            If it is the state of another query.
        """
        if not isinstance(snapshot, Snapshot):
            raise QueryError("restore takes a Snapshot", value=type(snapshot).__name__)
        self._untaken, self._rows, self._seen_times = {}, snapshot.rows, [*snapshot.times]
        self.watermark = None if snapshot.watermark == LONG_MIN else snapshot.watermark
        self._start(snapshot.log.copy())


def _outputs_of(found: LocalRun) -> dict[str, pa.Table]:
    """Return the tables of a run by the names of outputs."""
    sides = {f"sides/{tag}": rows for tag, rows in found.sides.items()}
    return {
        "result": without_own(found.results),
        "late": found.late,
        "rejected": found.rejected,
        **sides,
    }
