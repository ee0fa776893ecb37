"""Joins of rows by their times: near in time, or with the version of their key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, get_args

import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.datastream.pairs import Pairs, PairsRows
from gpu_windows.datastream.steps import ConfigurableStep, LastStep, R
from gpu_windows.datastream.two_inputs import Marked, MergedInputs, Prefixes, Selection, TwoInputs
from gpu_windows.errors import (
    ColumnTypeError,
    InvalidDurationError,
    InvalidOptionError,
    QueryError,
)
from gpu_windows.functions.interval_join import IntervalJoinSpec, Nearest
from gpu_windows.functions.join import JoinType
from gpu_windows.functions.join_function import IntervalPairs
from gpu_windows.functions.temporal_join import TemporalJoinSpec
from gpu_windows.functions.two_inputs import DELETED
from gpu_windows.planning.kinds.pairs import IntervalJoinQuery, PairsQuery, TemporalJoinQuery
from gpu_windows.rules import LONG_MAX, VERSIONED_TICKS
from gpu_windows.runners.outputs import Outputs
from gpu_windows.vocabulary.options import Duration, show_ticks, ticks


@dataclass(frozen=True)
class PairsInTime(ConfigurableStep[R], PairsRows[R]):
    """Joins of rows by their times, without windows."""

    both: TwoInputs
    _process = IntervalPairs

    def _with_marks(self) -> tuple[Self, str, str]:
        return self, self.both.left.time, self.both.right.time

    def _merge_inputs(
        self, left: Selection | Marked, right: Selection | Marked, prefixes: Prefixes
    ) -> MergedInputs:
        return self.both.merge(left, right, prefixes, self.order)

    def _query_outputs(
        self,
        kind: type[PairsQuery],
        merged: MergedInputs,
        join: IntervalJoinSpec | TemporalJoinSpec,
    ) -> Outputs:
        query = kind(
            schema=merged.source.schema,
            time=merged.time,
            watermarks=merged.watermarks,
            keys=merged.keys,
            join=join,
            arrival_order=merged.order,
            options=self.options_,
        )
        outputs = merged.source.outputs(query)
        self.both.check_timed()
        return outputs


@dataclass(frozen=True)
class IntervalJoin(LastStep[R]):
    """Two streams before `between` sets how far apart in time their rows may be.

    Examples
    --------
    >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    >>> ads = gw.stream(pa.table({"user": ["ann"], "ad": [7], "ts": [0]}))
    >>> clicks = gw.stream(pa.table({"user": ["ann"], "page": ["a"], "ts": [3_000_000]}))
    >>> ads, clicks = (rows.event_time("ts", in_order).key_by("user") for rows in (ads, clicks))
    >>> pairs = ads.interval_join(clicks).between("0 seconds", "10 seconds")
    >>> pairs.select(["ad"], ["page"]).to_pylist()
    [{'user': 'ann', 'left_ad': 7, 'right_page': 'a'}]
    """

    both: TwoInputs

    @staticmethod
    def _later() -> Mapping[str, type]:
        """Return the call that comes next, and the step that it returns."""
        return {"between(lower, upper)": IntervalJoined}

    def between(self, lower: Duration, upper: Duration) -> IntervalJoined[R]:
        """Join rows with ``left time + lower <= right time <= left time + upper``.

        Parameters
        ----------
        lower, upper : datetime.timedelta or str
            Negative where the right row may be the earlier one: ``between("-5 seconds",
            "10 seconds")``.

        Raises
        ------
        InvalidDurationError
            If ``lower`` is greater than ``upper``, or a bound does not fit.
        """
        bounds = ticks(lower), ticks(upper)
        if bounds[0] > bounds[1]:
            rule = "the lower bound of an interval join must not be greater than the upper one"
            raise InvalidDurationError(rule, value=" > ".join(map(show_ticks, bounds)))
        for bound in bounds:
            if abs(bound) >= LONG_MAX:
                raise InvalidDurationError("a bound must fit 64 bits", value=show_ticks(bound))
        return self._next(IntervalJoined(self.both, *bounds))

    if TYPE_CHECKING:

        def with_outputs(self) -> IntervalJoin[Outputs]: ...  # noqa: D102 - `LastStep` has it


@dataclass(frozen=True)
class IntervalJoined(PairsInTime[R]):
    """Two streams whose rows are joined if they are near in time. Bounds are in ticks.

    Late is a row whose time is before the watermark: unlike in windows, one that is at it is not.
    Late rows are given back, or joined: `join_late`; then the order of arrival matters, because a
    late row joins what came before it.

    Examples
    --------
    >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    >>> ads = gw.stream(pa.table({"user": ["ann"] * 2, "ad": [7, 8], "ts": [0, 2_000_000]}))
    >>> clicks = gw.stream(pa.table({"user": ["ann"], "page": ["a"], "ts": [2_000_000]}))
    >>> ads, clicks = (rows.event_time("ts", in_order).key_by("user") for rows in (ads, clicks))
    >>> pairs = ads.interval_join(clicks).between("0 seconds", "10 seconds")
    >>> pairs.lower_bound_exclusive().select(["ad"], ["page"])["left_ad"].to_pylist()
    [7]
    """

    lower: int
    upper: int
    excludes_lower: bool = False
    excludes_upper: bool = False
    nearest_: Nearest | None = None
    joins_late: bool = False

    def lower_bound_exclusive(self) -> Self:
        """Do not join rows that are exactly the lower bound apart.

        Examples
        --------
        >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
        >>> left = gw.stream(pa.table({"k": [1], "ts": [0]})).event_time("ts", in_order).key_by("k")
        >>> right = (
        ...     gw.stream(pa.table({"k": [1, 1], "ts": [0, 5]}))
        ...     .event_time("ts", in_order)
        ...     .key_by("k")
        ... )
        >>> pairs = left.interval_join(right).between("0 s", "1 s")
        >>> pairs.lower_bound_exclusive().select(right=["ts"])["right_ts"].to_pylist()
        [5]
        """
        return replace(self, excludes_lower=True)

    def upper_bound_exclusive(self) -> Self:
        """Do not join rows that are exactly the upper bound apart."""
        return replace(self, excludes_upper=True)

    def nearest(self, direction: Nearest = "either") -> Self:
        """Join a left row with one right row within the bounds, the nearest in time: as-of.

        On a stream the pair comes when the watermark says that no nearer row comes any more.

        Parameters
        ----------
        direction : {"before", "after", "either"}
            The nearest of the right rows that are not later, not earlier, or any; of two that are
            equally near the earlier one. Of several with the same time, one.

        Raises
        ------
        InvalidOptionError
            If it is something else.

        Examples
        --------
        >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
        >>> trades = gw.stream(pa.table({"item": ["tea"], "ts": [10]}))
        >>> quotes = gw.stream(
        ...     pa.table({"item": ["tea"] * 3, "price": [3, 4, 5], "ts": [1, 8, 12]})
        ... )
        >>> trades, quotes = (
        ...     rows.event_time("ts", in_order).key_by("item") for rows in (trades, quotes)
        ... )
        >>> as_of = trades.interval_join(quotes).between("-1 second", "0 seconds").nearest("before")
        >>> as_of.select(right=["price"]).to_pylist()
        [{'item': 'tea', 'right_price': 4}]
        """
        if direction not in get_args(Nearest):
            rule = f"nearest takes {', '.join(get_args(Nearest))}"
            raise InvalidOptionError(rule, value=direction)
        return replace(self, nearest_=direction)

    def join_late(self) -> Self:
        """Join late rows too, with the rows that are still kept, as Flink's SQL does.

        A row is kept for as long as a partner that is on time may come. One for which that is over
        when it comes joins what is there and is not kept: it comes at once where it has no
        partner and the join type keeps its side, and is given back as late if not. Times before
        1970 are late from the start, as in Flink's SQL. On a bounded input nothing is late.
        """
        return replace(self, joins_late=True)

    def _join_outputs(self, merged: MergedInputs, pairs: Pairs) -> Outputs:
        pair = pairs.pair
        is_outer = pair.how not in ("inner", "left")
        if self.nearest_ is not None and (is_outer or pair.condition is not None):
            rule = "the nearest row is for inner and left joins without a condition"
            raise QueryError(rule, value=f"how={pair.how!r}, where={pair.condition}")
        if self.nearest_ is not None and self.joins_late:
            raise QueryError(
                "nearest() is for rows in time: not with late ones", value="join_late()"
            )
        join = IntervalJoinSpec(
            pair, *self._bounds, pairs.output, self.nearest_, self.joins_late, pairs.process
        )
        if join.usable_ticks[0] >= join.usable_ticks[1]:
            rule = "the bounds of an interval join must leave times that fit 64 bits with them"
            raise InvalidDurationError(rule, value=join.describe())
        return self._query_outputs(IntervalJoinQuery, merged, join)

    @property
    def _bounds(self) -> tuple[int, int]:
        """The bounds, without what lies in the direction that is not asked for."""
        lower, upper = self.lower + self.excludes_lower, self.upper - self.excludes_upper
        lower = max(lower, 0) if self.nearest_ == "after" else lower
        return lower, min(upper, 0) if self.nearest_ == "before" else upper

    if TYPE_CHECKING:

        def with_outputs(self) -> IntervalJoined[Outputs]: ...  # noqa: D102 - `LastStep` has it


@dataclass(frozen=True)
class TemporalJoin(PairsInTime[R]):
    """A stream whose rows are joined with versions: right rows, each the next of its key.

    A left row is joined with the right row of its key that has the greatest time up to its own, and
    comes when the watermark reaches its time; of several versions of one time the last that arrived
    counts. No row is late: see docs/joins.md.

    Examples
    --------
    >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
    >>> sales = gw.stream(pa.table({"item": ["tea"] * 2, "count": [1, 2], "ts": [5, 15]}))
    >>> prices = gw.stream(
    ...     pa.table(
    ...         {"item": ["tea"] * 2, "price": [3.0, None], "gone": [False, True], "ts": [0, 10]}
    ...     )
    ... )
    >>> sales, prices = (rows.event_time("ts", in_order).key_by("item") for rows in (sales, prices))
    >>> priced = sales.temporal_join(prices, deleted="gone")
    >>> priced.select(["count"], ["price"], how="left")["right_price"].to_pylist()
    [3.0, None]
    """

    deleted: str | None = None
    valid_for_: int | None = None

    def __post_init__(self) -> None:
        if self.deleted is None:
            return
        if not isinstance(self.deleted, str):
            rule = "deleted names a column of the right side: true where the key has no version"
            raise QueryError(rule, value=type(self.deleted).__name__)
        source, name = self.both.right.source.bind_column(self.deleted, None)
        dtype = source.schema.field(name).type
        if not types.is_boolean(dtype):
            rule = "what says that a version is deleted is true or false"
            raise ColumnTypeError(rule, value=str(dtype), column=self.deleted)

    def valid_for(self, duration: Duration) -> Self:
        """Let a version expire after some event time though no newer one came.

        A left row that is as much later than the newest version, or more, has no version; one that
        has ended is kept no longer.

        Parameters
        ----------
        duration : str or datetime.timedelta
            Positive.

        Raises
        ------
        InvalidDurationError
            If it is not positive, or does not fit.

        Examples
        --------
        >>> in_order = gw.WatermarkStrategy.for_monotonous_timestamps()
        >>> sales = gw.stream(pa.table({"item": ["tea"] * 2, "ts": [1_000_000, 90_000_000]}))
        >>> prices = gw.stream(pa.table({"item": ["tea"], "price": [3.0], "ts": [0]}))
        >>> sales, prices = (
        ...     rows.event_time("ts", in_order).key_by("item") for rows in (sales, prices)
        ... )
        >>> fresh = sales.temporal_join(prices).valid_for("1 minute")
        >>> fresh.select(right=["price"], how="left")["right_price"].to_pylist()
        [3.0, None]
        """
        lives = ticks(duration)
        if not 0 < lives <= VERSIONED_TICKS[1]:
            rule = "a version is valid for a positive time that fits 62 bits"
            raise InvalidDurationError(rule, value=show_ticks(lives))
        return replace(self, valid_for_=lives)

    def _merge_inputs(
        self, left: Selection | Marked, right: Selection | Marked, prefixes: Prefixes
    ) -> MergedInputs:
        right_side = right if self.deleted is None else Marked(right, DELETED, self.deleted)
        merged = super()._merge_inputs(left, right_side, prefixes)
        return replace(merged, right=tuple(name for name in merged.right if name != DELETED))

    def _pair(self, merged: MergedInputs, how: JoinType, where: pc.Expression | None) -> Pairs:
        if how not in ("inner", "left"):
            raise QueryError("a temporal join is inner or left", value=f"how={how!r}")
        return super()._pair(merged, how, where)

    def _join_outputs(self, merged: MergedInputs, pairs: Pairs) -> Outputs:
        deleted = None if self.deleted is None else DELETED
        join = TemporalJoinSpec(pairs.pair, pairs.output, deleted, self.valid_for_, pairs.process)
        return self._query_outputs(TemporalJoinQuery, merged, join)

    if TYPE_CHECKING:

        def with_outputs(self) -> TemporalJoin[Outputs]: ...  # noqa: D102 - `LastStep` has it
