"""The first rows of windows, and those of keys, kept up to date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from gpu_windows.datastream.columns import as_list, bind_columns, named_columns
from gpu_windows.datastream.steps import LastStep, R
from gpu_windows.errors import InvalidDurationError, QueryError
from gpu_windows.functions.top import (
    Top,
    check_count,
    check_number,
    check_order,
    directions,
)
from gpu_windows.functions.top_changes import TopChanges
from gpu_windows.planning.kinds.top import TOP_NAMES, TopQuery
from gpu_windows.planning.validation import check_distinct
from gpu_windows.runners.outputs import KeyedInput, Source
from gpu_windows.vocabulary.options import Duration, Options, change_options, ticks

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


class KeyedTop(KeyedInput, LastStep[R]):
    """Rows of keys, of which the first ones may be kept."""

    def top(
        self,
        count: int,
        by: str | Column | Sequence[str | Column],
        *,
        descending: bool | Sequence[bool] = True,
        columns: Sequence[str | Column] | None = None,
        number: str | None = "row_number",
        change: str = "change",
        time_to_live: Duration | None = None,
        first: bool = True,
        arrival_order: Sequence[str | Column] = (),
        **options: Any,
    ) -> R:
        """Keep the first rows of every key up to date (Flink's SQL: top-N, deduplication).

        Results are changes of a table of these rows: on a stream those of a micro-batch, on an
        input that ends the rows that are first in the end, all of them inserted. Rows count as they
        arrive: they need no time, and are never late. `upsert` keeps such a table.

        Parameters
        ----------
        count : int
            How many rows of a key, at least 1.
        by : str, Column or sequence of them
            What they are ordered by: numbers, booleans, dates, timestamps, texts. Nulls are less
            than any value, NaN is more than any; of equal rows see ``first``.
        descending : bool or sequence of bool
            Whether the greatest come first; of each column of ``by``, or of all.
        columns : sequence of str or Column, optional
            What of the rows stands in the results; default: all columns besides the keys.
        number : str, optional
            The result column with a row's number, BIGINT, from 1 on. None: results are rows that
            come among the first or leave them, which are fewer, for a row that only gets another
            number is none. Of one row a key results are the same, without the column.
        change : str
            The result column that says what happens, STRING: ``"insert"``; ``"update_after"``,
            this row has the number now, in place of another; ``"delete"``.
        time_to_live : duration, optional
            Forget a key of which no row has come for so long, in processing time, and delete its
            rows. Default: keys are kept for ever.
        first : bool
            Which of equal rows is first: the one that arrived first. False, with a ``count`` of 1:
            the one that arrived last, so that a row replaces one of the same time.
        arrival_order : sequence of str or Column
            Columns that give the order of arrival, which a shuffle in Spark loses; default: event
            time, then the columns that are used. Ignored on an Arrow table, whose order it is.
        **options
            See `Options`.

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs
            The keys, ``columns``, ``number``, ``change``: a row for each change.

        Raises
        ------
        QueryError
            If a parameter is not as it should be, a column is not there or cannot be ordered by.

        Examples
        --------
        >>> scores = gw.stream(
        ...     pa.table({"game": ["x"] * 3, "player": ["a", "b", "c"], "score": [3, 9, 5]})
        ... )
        >>> scores.key_by("game").top(2, "score").select(["player", "row_number"]).to_pylist()
        [{'player': 'b', 'row_number': 1}, {'player': 'c', 'row_number': 2}]
        """
        keys = [*map(self.source.display_name, self.keys)]
        rows = _order_rows(self.source, keys, by, descending, columns)
        source, order = bind_columns(rows.source, as_list(arrival_order), "__order")
        top = TopChanges(
            count=check_count(count),
            by=rows.order,
            columns=rows.columns,
            carried=rows.carried,
            number=None if number is None else check_number(number, "number, if it is not None,"),
            change=check_number(change, "change"),
            time_to_live=None if time_to_live is None else _lives(time_to_live),
            first=_check_first(first, count),
        )
        check_distinct((*keys, *(field.name for field in top.fields)), TOP_NAMES)
        query = TopQuery(
            schema=source.schema,
            time=self.time,
            watermarks=self.watermarks,
            keys=self.keys,
            top=top,
            arrival_order=order,
            options=change_options(Options(), options),
        )
        return self._end(source.outputs(query))


def window_top(
    rows: KeyedInput,
    count: int,
    by: str | Column | Sequence[str | Column],
    descending: bool | Sequence[bool],  # noqa: FBT001
    columns: Sequence[str | Column] | None,
    number: str,
) -> tuple[Source, Top]:
    """Return the source and the function of `WindowedStream.top`."""
    found = _order_rows(rows.source, rows.keys, by, descending, columns)
    output = found.carried.append(pa.field(check_number(number), pa.int64(), nullable=False))
    check_distinct(output.names)
    return found.source, Top(check_count(count), found.order, found.columns, output)


class _OrderedRows(NamedTuple):
    """Rows in an order.

    Parameters
    ----------
    source : Source
        With all columns.
    columns : tuple of str
        Those of results, then others that rows are ordered by.
    order : tuple of (int, bool)
        Indices in ``columns``, and whether each descends.
    carried : pyarrow.Schema
        Fields of results.
    """

    source: Source
    columns: tuple[str, ...]
    order: tuple[tuple[int, bool], ...]
    carried: pa.Schema


def _order_rows(
    source: Source, keys: Sequence[str], by: Any, descending: Any, columns: Any
) -> _OrderedRows:
    """Return rows in the order that users write; see `KeyedTop.top`."""
    if columns is None:
        columns = [name for name in source.user_columns if name not in keys]
    source, carried = named_columns(source, columns)
    source, ordered = named_columns(source, by if isinstance(by, list | tuple) else (by,))
    check_order(source.schema, ordered)
    every = tuple(dict.fromkeys((*carried, *ordered)))
    pairs = zip(ordered, directions(descending, len(ordered)), strict=True)
    order = tuple((every.index(name), down) for name, down in pairs)
    fields = (source.schema.field(name).with_name(source.display_name(name)) for name in carried)
    return _OrderedRows(source, every, order, pa.schema(fields))


def _check_first(first: Any, count: int) -> bool:
    if first not in (True, False) or (not first and count != 1):
        raise QueryError("first is True, or with a count of 1 False", value=repr(first))
    return bool(first)


def _lives(duration: Duration) -> int:
    """Return how long keys are kept, in ticks."""
    lives = ticks(duration)
    if lives <= 0:
        raise InvalidDurationError("keys must live for some time", value=duration)
    return lives
