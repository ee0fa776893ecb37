"""Rows of a key with aggregates over frames beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from gpu_windows.aggregates.aggregate import Aggregate, Framed
from gpu_windows.aggregates.definitions import bind
from gpu_windows.datastream.columns import as_list, bind_columns, name_arguments, no_aggregate
from gpu_windows.datastream.steps import ConfigurableStep, R
from gpu_windows.errors import QueryError
from gpu_windows.functions.over import Over, OverColumn
from gpu_windows.planning.kinds.over import OverQuery
from gpu_windows.planning.own_columns import OWN
from gpu_windows.runners.outputs import KeyedInput, Outputs, Source
from gpu_windows.vocabulary.frames import Frame

if TYPE_CHECKING:
    from gpu_windows.annotations import Column

#: What may be computed of a row.
OverAggregate: TypeAlias = Aggregate | Framed


@dataclass(frozen=True)
class OverStream(ConfigurableStep[R]):
    """Rows of keys, before `aggregate` computes something over the frame of each.

    Flink: OverWindow. A result is a row of the input, with its time, and comes when the watermark
    has passed its frames.

    Examples
    --------
    >>> sales = gw.stream(pa.table({"shop": ["a"] * 3, "amount": [1, 2, 4], "ts": [0, 1, 2]}))
    >>> timed = sales.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> so_far = timed.key_by("shop").over(gw.Rows())
    >>> so_far.aggregate(["amount"], total=gw.sum("amount")).select(["amount", "total"]).to_pylist()
    [{'amount': 1, 'total': 1}, {'amount': 2, 'total': 3}, {'amount': 4, 'total': 7}]
    """

    keyed: KeyedInput
    frame: Frame | None = None

    def aggregate(
        self, columns: Sequence[str | Column] | None = None, /, **aggregates: OverAggregate
    ) -> R:
        """Compute aggregates over the frame of every row.

        Parameters
        ----------
        columns : sequence of str or Column, optional
            What of the row stands in its result, besides keys and time; default: all its columns.
        **aggregates : Aggregate or Framed
            Result column name to aggregate, such as ``total=gw.sum("amount")``; one over a frame of
            its own: ``last10=gw.mean("amount").over(gw.Rows(9))``; or `lag`, `lead`,
            `row_number`, `rank`.

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs
            The keys, the time (TIMESTAMP), the columns, the aggregates.

        Examples
        --------
        >>> prices = gw.stream(pa.table({"item": ["tea"] * 3, "price": [3, 5, 4], "ts": [0, 1, 2]}))
        >>> timed = prices.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> rows = timed.key_by("item").over(gw.Rows(1))
        >>> rows.aggregate([], high=gw.max("price"), last=gw.lag("price")).column_names
        ['item', 'ts', 'high', 'last']
        """
        source, carried = self._row_columns(columns)
        found: dict[str, Framed] = {}
        for name, framed in self._with_frames(aggregates):
            source, aggregate = name_arguments(source, name, framed.aggregate)
            found[name] = replace(framed, aggregate=aggregate)
        source, order = bind_columns(source, self.order, "__order")
        made = (
            OverColumn(bind(name, framed.aggregate, source.schema), framed.frame)
            for name, framed in found.items()
        )
        query = OverQuery(
            schema=source.schema,
            time=self.keyed.time,
            watermarks=self.keyed.watermarks,
            keys=self.keyed.keys,
            over=Over(tuple(made), carried),
            arrival_order=order,
            options=self.options_,
        )
        return self._end(source.outputs(query))

    def _row_columns(
        self, columns: Sequence[str | Column] | None
    ) -> tuple[Source, tuple[str, ...]]:
        """Return the source and the columns of the rows in results, without keys and time."""
        source = self.keyed.source
        there = {*self.keyed.keys, self.keyed.time, *OWN}
        if columns is None:
            return source, tuple(n for n in source.user_columns if n not in there)
        if isinstance(columns, Aggregate | Framed):
            rule = "aggregates are named, such as total=gw.sum('amount')"
            raise QueryError(rule, value=repr(columns))
        source, names = bind_columns(source, as_list(columns))
        return source, tuple(name for name in dict.fromkeys(names) if name not in there)

    def _with_frames(self, aggregates: Mapping[str, OverAggregate]) -> Iterator[tuple[str, Framed]]:
        """Yield the aggregates, each over its frame."""
        for name, aggregate in aggregates.items():
            if isinstance(aggregate, Framed):
                yield name, self._of_times(aggregate)
            elif not isinstance(aggregate, Aggregate):
                raise no_aggregate(name, aggregate)
            elif self.frame is None:
                rule = f"{name} needs a frame: key_by(...).over(frame), or aggregate.over(frame)"
                raise QueryError(rule, value=aggregate.describe())
            else:
                yield name, Framed(aggregate, self.frame)

    def _of_times(self, framed: Framed) -> Framed:
        """Return an aggregate with the column of times, where it is of these."""
        if framed.aggregate.function != "dense_rank":
            return framed
        return replace(framed, aggregate=replace(framed.aggregate, column=self.keyed.time))

    if TYPE_CHECKING:

        def with_outputs(self) -> OverStream[Outputs]: ...  # noqa: D102 - `LastStep` has it
