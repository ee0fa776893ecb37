"""Descriptions of aggregates: function, columns, condition, part of the window, frame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpu_windows.errors import (
    InvalidFrameError,
    InvalidWindowError,
    QueryError,
    UnsupportedAggregateError,
)
from gpu_windows.vocabulary.frames import Frame, check_frame
from gpu_windows.vocabulary.options import Duration, show_ticks, ticks

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


#: Functions that can aggregate distinct values.
_DISTINCT_FUNCTIONS = (
    "count", "sum", "mean", "min", "max", "variance", "stddev", "bool_and", "bool_or",
    "collect_list", "quantile",
)  # fmt: skip
#: Functions that pass values on; others compare them.
_CARRYING = (
    "count", "first", "last", "any_value", "collect_list", "lag", "lead", "arg_min", "arg_max",
)  # fmt: skip


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of a query: a function's name and its columns.

    Built by the functions of `gpu_windows.aggregates.built_in`. Columns are names; PySpark
    ``Column`` expressions are given a name by `gpu_windows.spark_glue.dataframes.source` before a
    query is built.

    Parameters
    ----------
    function : str
        Name of the function.
    column : str or Column, optional
        Input column; None for functions of rows.
    by : str or Column, optional
        Column that `arg_min` and `arg_max` compare.
    ddof : {1, 0}
        Delta degrees of freedom of `variance` and `stddev`.
    skip_nulls : bool
        ``ignore_nulls`` of `first` and `last`.
    fraction : float, optional
        Which quantile, in [0, 1].
    sketch_size : int
        ``lg_k`` or ``k`` of approximate aggregates.
    where : str or Column, optional
        Boolean column that selects rows: see `filter`.
    first : bool
        Whether `arg_min` and `arg_max` take the first or the last of equal rows.
    recent : int, optional
        Length of the last part of the window, in ticks: see `within`.
    is_distinct : bool
        Whether duplicate values are ignored: see `distinct`.

    Examples
    --------
    >>> amounts = gw.sum("amount")
    >>> amounts.filter("is_new").describe(), amounts.within("5 minutes").describe()
    ('sum(amount) FILTER (WHERE is_new)', 'sum(amount) within 5 min')
    """

    function: str
    column: str | Column | None = None
    by: str | Column | None = None
    ddof: int = 1
    skip_nulls: bool = False
    fraction: float | None = None
    sketch_size: int = 0
    where: str | Column | None = None
    first: bool = True  # of rows with equal ``by``
    recent: int | None = None  # ticks before the end of a window
    is_distinct: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it reads."""
        read = self.column, self.by, self.where
        return tuple(name for name in read if isinstance(name, str))

    @property
    def compared_columns(self) -> tuple[str, ...]:
        """Names of the columns whose values it compares, not only passes on."""
        compares = self.is_distinct or self.function not in _CARRYING
        compared = self.column if compares else None, self.by, self.where
        return tuple(name for name in compared if isinstance(name, str))

    def filter(self, condition: str | Column) -> Aggregate:
        """Return it over the rows for which a condition is true (SQL: FILTER).

        All rows make windows: in a window without a row for which it is true, a count is 0, and
        other aggregates are null.

        Parameters
        ----------
        condition : str or Column
            A column of booleans, where null is not true: its name, or on Spark an expression, such
            as ``F.col("price") > 100``.

        Raises
        ------
        QueryError
            If it has a condition already, or ``condition`` is None.

        Examples
        --------
        >>> sales = pa.table({"shop": ["a", "a"], "amount": [1, 4], "is_new": [True, False]})
        >>> pairs = gw.stream(sales).key_by("shop").count_window(2)
        >>> pairs.aggregate(new=gw.sum("amount").filter("is_new"))["new"].to_pylist()
        [1]
        """
        if condition is None:
            raise QueryError("a condition must be a column of booleans", value=condition)
        if self.where is not None:
            rule = f"{self.function} has a condition already: combine both in one column"
            raise QueryError(rule, value=condition)
        return replace(self, where=condition)

    def distinct(self) -> Aggregate:
        """Return it over distinct values, the first of equal ones (SQL: DISTINCT).

        Windows store their rows for it. All NaN are equal, and so are both zeros.

        Raises
        ------
        UnsupportedAggregateError
            Unless it is count, sum, mean, min, max, variance, stddev, bool_and, bool_or,
            collect_list, quantile or median of a column.

        Examples
        --------
        >>> sales = gw.stream(pa.table({"shop": ["a", "a", "a"], "amount": [1, 4, 4]}))
        >>> threes = sales.key_by("shop").count_window(3)
        >>> threes.aggregate(total=gw.sum("amount").distinct())["total"].to_pylist()
        [5]
        """
        if self.function == "count_distinct" or (
            self.function == "count" and self.column is not None
        ):
            return replace(self, function="count_distinct")
        if self.function not in _DISTINCT_FUNCTIONS or self.column is None:
            rule = f"distinct is for {', '.join(_DISTINCT_FUNCTIONS)} of a column"
            raise UnsupportedAggregateError(rule, value=self.describe())
        return replace(self, is_distinct=True)

    def within(self, duration: Duration) -> Aggregate:
        """Return it over the rows of the last part of a window.

        ``gw.sum("amount").within("5 minutes")`` in a window of an hour sums its last five minutes:
        one pass computes several lengths. For sliding windows of event time that fire once; without
        rows in that part, a count is 0, and other aggregates are null.

        Parameters
        ----------
        duration : str or datetime.timedelta
            A multiple of the slide, at most the size.

        Raises
        ------
        InvalidWindowError
            If it is not positive; once windows are given, if it is not a multiple of the slide.
        QueryError
            If the aggregate has such a part already.

        Examples
        --------
        >>> clicks = gw.stream(pa.table({"user": ["ann"] * 2, "ts": [0, 90_000_000]}))
        >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
        >>> windows = timed.key_by("user").window(gw.SlidingEventTimeWindows.of("2 min", "1 min"))
        >>> counts = windows.aggregate(n=gw.count(), last=gw.count().within("1 min"))
        >>> counts.select(["n", "last"]).to_pylist()
        [{'n': 1, 'last': 1}, {'n': 2, 'last': 1}, {'n': 1, 'last': 0}]
        """
        recent = ticks(duration)
        if recent <= 0:
            raise InvalidWindowError("within takes a positive duration", value=repr(duration))
        if self.recent is not None:
            rule = f"{self.function} is within the last {show_ticks(self.recent)} already"
            raise QueryError(rule, value=repr(duration))
        return replace(self, recent=recent)

    def over(self, frame: Frame) -> Framed:
        """Return it over a frame of its own, for `KeyedStream.over`.

        Parameters
        ----------
        frame : Frame
            `gpu_windows.Rows` or `gpu_windows.Range`.
        """
        return Framed(self, check_frame(frame))

    def describe(self) -> str:
        """Return the aggregate as SQL would write it."""
        fraction = () if self.fraction is None else (f"{self.fraction:g}",)
        size = (f"size {self.sketch_size}",) if self.sketch_size else ()
        columns = (name for name in (self.column, self.by) if isinstance(name, str))
        size = size if self.first else (*size, "last of equals")
        where = "" if self.where is None else f" FILTER (WHERE {self.where})"
        recent = "" if self.recent is None else f" within {show_ticks(self.recent)}"
        arguments = ", ".join((*columns, *fraction, *size)) or "*"
        arguments = f"DISTINCT {arguments}" if self.is_distinct else arguments
        return f"{self.function}({arguments}){where}{recent}"


@dataclass(frozen=True)
class Framed:
    """An aggregate over a frame of its own.

    Parameters
    ----------
    aggregate : Aggregate
    frame : Frame

    Examples
    --------
    >>> last_ten = gw.mean("price").over(gw.Rows(9))
    >>> last_ten.frame.describe()
    'ROWS BETWEEN 9 PRECEDING AND CURRENT ROW'
    """

    aggregate: Aggregate
    frame: Frame

    def __post_init__(self) -> None:
        check_frame(self.frame)
        if not isinstance(self.aggregate, Aggregate):
            rule = "a frame is for an aggregate, such as gw.sum('amount')"
            raise InvalidFrameError(rule, value=repr(self.aggregate))
        if self.aggregate.recent is not None:
            rule = "within is for windows; over a frame, say gw.Range"
            raise InvalidFrameError(rule, value=self.aggregate.describe())

    def filter(self, condition: str | Column) -> Framed:
        """Raise `InvalidFrameError`: a condition comes before the frame.

        Parameters
        ----------
        condition : str or Column
            Not supported here.

        Raises
        ------
        InvalidFrameError
            Always.
        """
        rule = (
            "a condition comes before the frame, gw.sum('amount').filter('is_new').over(frame); "
            "lag, lead, row_number, rank and dense_rank take none"
        )
        raise InvalidFrameError(rule, value=condition)

    def over(self, frame: Frame) -> Framed:
        """Raise `InvalidFrameError`: it has a frame already, as `lag` and `row_number` have.

        Parameters
        ----------
        frame : Frame
            Not supported here.

        Raises
        ------
        InvalidFrameError
            Always.
        """
        rule = f"{self.aggregate.describe()} has a frame already: {self.frame.describe()}"
        raise InvalidFrameError(rule, value=frame)
