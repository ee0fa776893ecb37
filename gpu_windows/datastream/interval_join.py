"""The API of interval joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, get_args

import pyarrow as pa

from gpu_windows.datastream.pairs import PairsInTime
from gpu_windows.datastream.steps import LastStep, R
from gpu_windows.datastream.two_inputs import MergedInputs, TwoInputs
from gpu_windows.errors import InvalidDurationError, InvalidOptionError, QueryError
from gpu_windows.functions.interval_join import IntervalJoinSpec, Nearest
from gpu_windows.functions.join import Pair
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.planning.kinds.pairs import IntervalJoinQuery
from gpu_windows.rules import LONG_MAX
from gpu_windows.runners.outputs import Outputs
from gpu_windows.vocabulary.options import Duration, show_ticks, ticks


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

    def _join_outputs(
        self,
        merged: MergedInputs,
        pair: Pair,
        output: pa.Schema,
        process: PairProcess | None = None,
    ) -> Outputs:
        is_outer = pair.how not in ("inner", "left")
        if self.nearest_ is not None and (is_outer or pair.condition is not None):
            rule = "the nearest row is for inner and left joins without a condition"
            raise QueryError(rule, value=f"how={pair.how!r}, where={pair.condition}")
        if self.nearest_ is not None and self.joins_late:
            raise QueryError(
                "nearest() is for rows in time: not with late ones", value="join_late()"
            )
        join = IntervalJoinSpec(
            pair, *self._bounds, output, self.nearest_, self.joins_late, process
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
