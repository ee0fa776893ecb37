"""Streams without a key: `key_by`, and windows, joins and patterns over all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_windows.datastream.columns import bind_columns
from gpu_windows.datastream.connected import BroadcastStream
from gpu_windows.datastream.keyed import KeyedStream
from gpu_windows.datastream.match import MatchStream
from gpu_windows.datastream.select import select
from gpu_windows.datastream.steps import Step
from gpu_windows.datastream.time_joins import IntervalJoin
from gpu_windows.datastream.two_inputs import TwoInputs
from gpu_windows.datastream.windowed import WindowedStream
from gpu_windows.errors import QueryError
from gpu_windows.planning.own_columns import NO_KEY
from gpu_windows.runners.outputs import Input
from gpu_windows.vocabulary.options import Duration
from gpu_windows.vocabulary.windows import WindowAssigner

if TYPE_CHECKING:
    from gpu_windows.annotations import Column
    from gpu_windows.runners.outputs import Outputs


class UnkeyedStream(Step, ABC):
    """Rows without a key, with a time or without one."""

    @property
    def _rows(self) -> Input:
        """The rows with a time: those of a `TimedStream`; a `Stream` gives its rows a null one."""
        assert isinstance(self, Input), "only streams without a time give their rows one"
        return self

    @abstractmethod
    def where(self, condition: str) -> UnkeyedStream:
        """Take the rows only for which a condition is true."""

    def select(
        self, /, *columns: str | Mapping[str, str], where: str | None = None, **expressions: str
    ) -> Outputs:
        """Return rows as they are: some of their columns, expressions, a condition; no windows.

        ``stream.select("user", total="price * quantity", where="price > 10")``. Rows come at once,
        and nothing is kept of them: none is late, and one without a time is a result as any other.
        On streams `gpu_windows.write_stream` writes them once, as results of all queries;
        `gpu_windows.stream_results` goes on from them with the time that they have.

        Parameters
        ----------
        *columns : str or mapping of str to str
            Names of columns; expressions by name, in their place, of which one may be called
            ``where``. Without any column all are taken.
        where : str, optional
            A condition in SQL over the rows: see `where`.
        **expressions : str
            Name of a result to an expression in SQL over the rows, such as Spark computes; over
            Arrow tables those that Arrow computes alike (extra ``sql``).

        Returns
        -------
        Outputs

        Raises
        ------
        QueryError
            If a column does not exist, an expression or the condition is invalid.

        Examples
        --------
        >>> sales = pa.table({"shop": ["a", "b"], "price": [2.0, 3.0], "quantity": [4, 1]})
        >>> totals = gw.stream(sales).select("shop", total="price * quantity", where="price < 3")
        >>> totals.result().to_pylist()
        [{'shop': 'a', 'total': 8.0}]
        """
        stream = self if where is None else self.where(where)
        return select(stream._rows, columns, expressions)

    def key_by(self, *columns: str | Column) -> KeyedStream:
        """Give every row a key: one or several columns; null is a key of its own.

        Parameters
        ----------
        *columns : str or Column
            Names, or expressions on Spark.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"site": ["x", "x", "y"], "user": ["ann", "bob", "ann"]}))
        >>> visits = clicks.key_by("site", "user").count_window(1).aggregate(n=gw.count())
        >>> visits.select(["site", "user"]).to_pylist()[0]
        {'site': 'x', 'user': 'ann'}
        """
        timed = self._rows
        source, names = bind_columns(timed.source, map(_check_key, columns))
        return KeyedStream(source, timed.time, timed.watermarks, names)

    def broadcast(self) -> BroadcastStream:
        """Let every shard see all rows: for `KeyedStream.connect`.

        Examples
        --------
        >>> sales = gw.stream(pa.table({"shop": ["a"], "amount": [5]})).key_by("shop")
        >>> rates = gw.stream(pa.table({"currency": ["EUR"], "rate": [0.5]}))
        >>> isinstance(sales.connect(rates.broadcast()), gw.typing.BroadcastConnectedStream)
        True
        """
        timed = self._rows
        return BroadcastStream(timed.source, timed.time, timed.watermarks)

    def window_all(self, assigner: WindowAssigner) -> WindowedStream:
        """Put all rows into the same windows, whatever their keys (Flink: windowAll).

        In Spark partial aggregates are made everywhere, on streams where rows are in time for sure;
        what needs the rows themselves is done by one task. `explain` says which.

        Parameters
        ----------
        assigner : WindowAssigner
            Such as ``gw.TumblingEventTimeWindows.of("1 hour")``.
        """
        return self._all_rows.window(assigner)

    def count_window_all(self, size: int, slide: int | None = None) -> WindowedStream:
        """Put every ``size`` rows into a window: `KeyedStream.count_window` over all rows.

        Parameters
        ----------
        size : int
            Rows per window, at least 1.
        slide : int, optional
            Rows between two windows; default: ``size``, without overlap.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"user": ["ann", "bob", "ann", "bob"]}))
        >>> clicks.count_window_all(2).aggregate(users=gw.count_distinct("user"))[
        ...     "users"
        ... ].to_pylist()
        [2, 2]
        """
        return self._all_rows.count_window(size, slide)

    def interval_join_all(self, right: UnkeyedStream) -> IntervalJoin:
        """Join all rows with those of another stream that are near in time.

        All rows are in one shard, so one task joins them; where there is a key, say it.

        Parameters
        ----------
        right : Stream or TimedStream
            Another stream without a key.

        Examples
        --------
        >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
        >>> alarms = gw.stream(pa.table({"alarm": [1], "ts": [0]})).event_time("ts", in_order)
        >>> calls = gw.stream(pa.table({"call": [7, 8], "ts": [5, 9_000_000]})).event_time(
        ...     "ts", in_order
        ... )
        >>> near = alarms.interval_join_all(calls).between("0 seconds", "1 second")
        >>> near.select(["alarm"], ["call"]).to_pylist()
        [{'left_alarm': 1, 'right_call': 7}]
        """
        if not isinstance(right, UnkeyedStream):
            rule = "interval_join_all takes another stream without a key: leave out key_by"
            raise QueryError(rule, value=type(right).__name__)
        return IntervalJoin(TwoInputs(self._all_rows, right._all_rows))

    def match_recognize_all(
        self,
        pattern: str,
        define: Mapping[str, str] | None = None,
        *,
        within: Duration | None = None,
        after: str = "skip to next row",
        **options: Any,
    ) -> MatchStream:
        """Find a pattern in all rows: `KeyedStream.match_recognize` without a key.

        All rows are in one shard, so one task finds it; where there is a key, say it.

        Parameters
        ----------
        pattern, define, within, after, **options :
            See `KeyedStream.match_recognize`.
        """
        keyed = self._all_rows
        return keyed.match_recognize(pattern, define, within=within, after=after, **options)

    @property
    def _all_rows(self) -> KeyedStream:
        timed = self._rows
        source = timed.source.add_constant(NO_KEY, pa.scalar(value=True))
        return KeyedStream(source, timed.time, timed.watermarks, (NO_KEY,))


def _check_key(column: str | Column) -> str | Column:
    """Return a column of a key; raise `QueryError` for several at once, and for functions."""
    if isinstance(column, list | tuple):
        rule = "key_by takes columns one by one: key_by('a', 'b')"
        raise QueryError(rule, value=repr(column))
    if isinstance(column, FunctionType):
        rule = "key_by takes names of columns: with_columns(key='...') makes one in SQL"
        raise QueryError(rule, value=f"the function {column.__name__}")
    return column
