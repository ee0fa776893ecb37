"""Rows with a time and a key, before windows, frames, joins or functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from gpu_windows.datastream.connected import (
    BroadcastConnectedStream,
    BroadcastStream,
    ConnectedStreams,
    ProcessFunction,
    process_outputs,
)
from gpu_windows.datastream.keyed_windows import KeyedWindows
from gpu_windows.datastream.match import MatchStream, match_stream
from gpu_windows.datastream.over import OverStream
from gpu_windows.datastream.schemas import Schema, read_schema
from gpu_windows.datastream.steps import R
from gpu_windows.datastream.time_joins import IntervalJoin, TemporalJoin
from gpu_windows.datastream.two_inputs import TwoInputs
from gpu_windows.datastream.window_join import CoGroupedStreams, JoinedStreams
from gpu_windows.datastream.windowed import WindowedStream
from gpu_windows.errors import QueryError
from gpu_windows.runners.outputs import KeyedInput, Outputs
from gpu_windows.vocabulary.frames import Frame, check_frame
from gpu_windows.vocabulary.options import Duration

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


@dataclass(frozen=True)
class KeyedStream(KeyedWindows[R]):
    """Rows with an event time and a key.

    Examples
    --------
    >>> users = gw.stream(pa.table({"user": ["ann", "bob", "ann"]})).key_by("user")
    >>> isinstance(users, gw.typing.KeyedStream)
    True
    >>> users.count_window(2).aggregate(n=gw.count()).select(["user", "n"]).to_pylist()
    [{'user': 'ann', 'n': 2}]
    """

    @staticmethod
    def _later() -> Mapping[str, type]:
        """Return what may be said next, and the step that it gives."""
        return {"window(assigner)": WindowedStream, "over(frame)": OverStream}

    def over(self, frame: Frame | None = None) -> OverStream[R]:
        """Compute aggregates for every row, over the rows of its key before and after it.

        Flink: OVER. ``frame``: that of aggregates which have none of their own, such as
        ``Range("1 minute")`` or ``Rows(100)``.

        Parameters
        ----------
        frame : Frame, optional
            `gpu_windows.Rows` or `gpu_windows.Range`; default: each aggregate has its own.

        Raises
        ------
        InvalidFrameError
            If it is none.

        Examples
        --------
        >>> sales = gw.stream(pa.table({"shop": ["a"] * 3, "amount": [1, 2, 4], "ts": [0, 1, 2]}))
        >>> timed = sales.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> totals = (
        ...     timed.key_by("shop")
        ...     .over(gw.Rows(1))
        ...     .aggregate(last_two=gw.sum("amount"), so_far=gw.sum("amount").over(gw.Rows()))
        ... )
        >>> totals.select(["last_two", "so_far"]).to_pylist()[2]
        {'last_two': 6, 'so_far': 7}
        """
        return self._next(OverStream(self, None if frame is None else check_frame(frame)))

    def match_recognize(
        self,
        pattern: str,
        define: Mapping[str, str] | None = None,
        *,
        within: Duration | None = None,
        after: str = "skip to next row",
        **options: Any,
    ) -> MatchStream[R]:
        """Find a pattern in the rows of every key, in order of time (SQL: MATCH_RECOGNIZE).

        ``keyed.match_recognize("A B+ C", {"B": "B.price < LAST(B.price, 1) OR LAST(B.price, 1) IS
        NULL", "C": "C.price > A.price"}).measures(low="MIN(B.price)", time="MATCH_ROWTIME()")``.
        Needs the extra ``sql``.

        Parameters
        ----------
        pattern : str
            Variables, each with a quantifier: ``*``, ``+``, ``?``, ``{n}``, ``{n,}``, ``{n,m}``;
            reluctant with ``?`` after it. No row between those of a match is left out.
        define : mapping of str to str, optional
            Variable to condition in SQL, as Flink has it in DEFINE: over the row (``B.price``, or
            ``price``), rows before it (``A.price``, ``LAST(B.price, 1)``, ``FIRST(B.price)``), and
            sums (``SUM(B.price)``, also COUNT, AVG, MIN, MAX), the row among them. A variable
            without a condition takes any row.
        within : duration, optional
            The last row is less than so much after the first one. Without it what has begun is
            kept until it ends.
        after : str
            Where the search goes on after a match: ``"skip to next row"``, ``"skip past last
            row"``, ``"skip to first B"``, ``"skip to last B"``.
        **options
            See `Options`.

        Returns
        -------
        MatchStream
            Of which ``.measures(...)`` are the results.

        Raises
        ------
        InvalidPatternError
            If the pattern cannot be read, or is none that Flink has.
        InvalidDurationError
            If ``within`` is none.

        Examples
        --------
        >>> prices = gw.stream(
        ...     pa.table({"item": ["tea"] * 4, "price": [5, 3, 2, 6], "ts": [0, 1, 2, 3]})
        ... )
        >>> timed = prices.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> falls = timed.key_by("item").match_recognize(
        ...     "A B+ C",
        ...     {
        ...         "B": "B.price < LAST(B.price, 1) OR LAST(B.price, 1) IS NULL",
        ...         "C": "C.price > A.price",
        ...     },
        ...     after="skip past last row",
        ... )
        >>> falls.measures(start="A.price", low="MIN(B.price)", end="C.price").to_pylist()
        [{'item': 'tea', 'start': 5, 'low': 2, 'end': 6}]
        """
        return self._next(match_stream(self, pattern, define, within, after, options))

    def process(
        self,
        function: ProcessFunction,
        columns: Sequence[str | Column] = (),
        *,
        output: Schema,
        arrival_order: Sequence[str | Column] = (),
        **options: Any,
    ) -> R:
        """Give every row to a function of yours, in Python, with state of its key and timers.

        Parameters
        ----------
        function : KeyedProcessFunction or VectorProcessFunction
            One that takes a row at a time, or the rows of many keys at once, as arrays.
        columns : sequence of str or Column
            What it sees of the rows.
        output : pyarrow.Schema, str or StructType
            The columns that it returns, after the keys; a text is DDL: ``"total DOUBLE"``.
        arrival_order : sequence of str or Column
            Columns that give the order of arrival, which a shuffle in Spark loses; default: event
            time, then what the function sees. Ignored on an Arrow table, whose order it is.
        **options
            See `Options`.

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs
            The keys, and what was declared.

        Examples
        --------
        >>> class Numbered(gw.functions.KeyedProcessFunction):
        ...     state = {"rows": gw.functions.ValueStateDescriptor(pa.int64())}
        ...
        ...     def process_element(self, row, context):
        ...         rows = context.state("rows")
        ...         rows.update(rows.value(0) + 1)
        ...         return [{"page": row["page"], "number": rows.value()}]
        >>> clicks = gw.stream(pa.table({"user": ["ann", "ann"], "page": ["home", "cart"]}))
        >>> numbered = clicks.key_by("user").process(
        ...     Numbered(), ["page"], output="page STRING, number BIGINT"
        ... )
        >>> numbered.select(["page", "number"]).to_pylist()
        [{'page': 'home', 'number': 1}, {'page': 'cart', 'number': 2}]
        """
        outputs = process_outputs(
            self, function, columns, read_schema(output), arrival_order, options
        )
        return self._end(outputs)

    @overload
    def connect(self, right: KeyedStream) -> ConnectedStreams[R]: ...
    @overload
    def connect(self, right: BroadcastStream) -> BroadcastConnectedStream[R]: ...
    def connect(
        self, right: KeyedStream | BroadcastStream
    ) -> ConnectedStreams[R] | BroadcastConnectedStream[R]:
        """Connect another stream, whose rows go to the same function.

        Those that have the same key, or all rows of a small one:
        ``keyed.connect(rules.broadcast())``.

        Parameters
        ----------
        right : KeyedStream or BroadcastStream
            Stream with keys of the same types, or ``.broadcast()`` of a stream.
        """
        if isinstance(right, BroadcastStream):
            return self._next(BroadcastConnectedStream(self, right), right)
        if not isinstance(right, KeyedInput):
            rule = "connect takes a stream with the same key, or .broadcast() of one without"
            raise QueryError(rule, value=type(right).__name__)
        return self._next(ConnectedStreams(TwoInputs(self, right)), right)

    def join(self, right: KeyedStream) -> JoinedStreams[R]:
        """Join rows with those of another stream that have the same key and window.

        Parameters
        ----------
        right : KeyedStream
            Stream with keys of the same types, in the same order.
        """
        return self._next(JoinedStreams(TwoInputs(self, right)), right)

    def interval_join(self, right: KeyedStream) -> IntervalJoin[R]:
        """Join rows with those of another stream that have the same key and are near in time.

        Parameters
        ----------
        right : KeyedStream
            Stream with keys of the same types, in the same order.
        """
        return self._next(IntervalJoin(TwoInputs(self, right)), right)

    def temporal_join(self, right: KeyedStream, deleted: str | None = None) -> TemporalJoin[R]:
        """Join rows with the version of their key at their time.

        SQL: ``JOIN ... FOR SYSTEM_TIME AS OF left.time``.

        Parameters
        ----------
        right : KeyedStream
            The versions: a row is that of its key from its time on, until the next one.
        deleted : str, optional
            A column of booleans of the right side: true where the key has no version from then on.

        Raises
        ------
        QueryError
            If the keys do not fit, or there is no such column of booleans.

        Examples
        --------
        >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
        >>> sales = gw.stream(pa.table({"item": ["tea", "tea"], "count": [1, 2], "ts": [5, 15]}))
        >>> prices = gw.stream(
        ...     pa.table({"item": ["tea", "tea"], "price": [3.0, 4.0], "ts": [0, 10]})
        ... )
        >>> sales, prices = (
        ...     rows.event_time("ts", in_order).key_by("item") for rows in (sales, prices)
        ... )
        >>> sales.temporal_join(prices).select(["count"], ["price"])["right_price"].to_pylist()
        [3.0, 4.0]
        """
        return self._next(TemporalJoin(TwoInputs(self, right), deleted), right)

    def co_group(self, right: KeyedStream) -> CoGroupedStreams[R]:
        """Give the rows of two streams that have the same key and window to a function.

        Parameters
        ----------
        right : KeyedStream
            Stream with keys of the same types, in the same order.
        """
        return self._next(CoGroupedStreams(TwoInputs(self, right)), right)

    if TYPE_CHECKING:

        def with_outputs(self) -> KeyedStream[Outputs]: ...  # noqa: D102 - `LastStep` has it
