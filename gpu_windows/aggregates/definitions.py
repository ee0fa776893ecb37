"""Aggregates as data: partials of a row, how they combine, how they become the result.

An aggregate is a set of primitive *partials* (lift and combine, `gpu_windows.rules`) and a way
to *lower* them. Null rules are SQL's: nulls are skipped, and an aggregate over no value is null
(``count`` is 0). Result types are Spark's. Exact results that do not fit their type (a sum of
BIGINT beyond 64 bits) raise `ArithmeticOverflowError`, as Spark in ANSI mode; they never wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial

import pyarrow as pa
from pyarrow import types

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.partials import ROWS, TIMES, Combine, Lift, Partial
from gpu_windows.column_types.logical import (
    any_type,
    collations,
    is_comparable,
    is_hashable,
    is_number,
    is_ordered,
    is_plain_number,
    is_sortable,
    is_summed,
    is_wide,
    lane_of,
    remedy_of,
)
from gpu_windows.errors import UnsupportedAggregateError


class Lower(Enum):
    """How partials become the result."""

    COUNT = "count"
    RANK = "rank"  # a count, and one
    VALUE = "value"  # a sum, minimum or maximum; null if the count is 0
    RATIO = "ratio"  # sum / count
    SPREAD = "spread"  # m2 / (count - ddof)
    ROOT_SPREAD = "root spread"
    ROW = "row"  # the value column of the row that was picked
    ESTIMATE = "estimate"  # of a sketch: the number of distinct values
    SKETCHED_QUANTILE = "sketched quantile"
    LIST = "list"  # without partials: it needs all values of a window


# ---- definitions


def _same(dtype: pa.DataType) -> pa.DataType:
    return dtype


def _sum_type(dtype: pa.DataType) -> pa.DataType:
    if types.is_decimal(dtype):
        return pa.decimal128(min(dtype.precision + 10, _DIGITS), dtype.scale)
    return pa.int64() if types.is_integer(dtype) else pa.float64()


def _mean_type(dtype: pa.DataType) -> pa.DataType:
    if types.is_decimal(dtype):
        return pa.decimal128(min(dtype.precision + 4, _DIGITS), min(dtype.scale + 4, _DIGITS))
    return pa.float64()


def _count_partial(aggregate: Aggregate) -> Partial:
    return Partial(Combine.ADD, Lift.ONE, _column(aggregate))


def _column(aggregate: Aggregate) -> str | None:
    return aggregate.column if isinstance(aggregate.column, str) else None


def _times_partials(_aggregate: Aggregate, _dtype: pa.DataType) -> tuple[Partial, ...]:
    return (TIMES,)


def _count_partials(aggregate: Aggregate, _dtype: pa.DataType) -> tuple[Partial, ...]:
    return (_count_partial(aggregate),)


def _sum_partials(aggregate: Aggregate, dtype: pa.DataType) -> tuple[Partial, ...]:
    halved = types.is_decimal(dtype) or (types.is_integer(dtype) and dtype.bit_width == 64)
    lifts = (Lift.HIGH, Lift.LOW) if halved else (Lift.VALUE,)
    words = (1, 0) if is_wide(dtype) else (0,)
    sums = (
        Partial(Combine.ADD, lift, _column(aggregate), lane_of(dtype), word=word)
        for word in words
        for lift in lifts
    )
    return (*sums, _count_partial(aggregate))


def _extreme_partials(
    combine: Combine, aggregate: Aggregate, dtype: pa.DataType
) -> tuple[Partial, ...]:
    column = _column(aggregate)
    if not is_ordered(dtype):  # no kernel type has the order of its values
        descending = combine is Combine.MAX
        return (Partial(Combine.PICK, Lift.ROW, column, by=column, descending=descending),)
    return (Partial(combine, Lift.VALUE, column, lane_of(dtype)), _count_partial(aggregate))


def _no_partials(_aggregate: Aggregate, _dtype: pa.DataType) -> tuple[Partial, ...]:
    return ()


def _moments_partials(aggregate: Aggregate, _dtype: pa.DataType) -> tuple[Partial, ...]:
    return (Partial(Combine.MOMENTS, Lift.VALUE, _column(aggregate), "float64"),)


def _sketch_partials(
    combine: Combine, aggregate: Aggregate, dtype: pa.DataType
) -> tuple[Partial, ...]:
    column, lane = _column(aggregate), lane_of(dtype)
    return (Partial(combine, Lift.VALUE, column, lane, sketch_size=aggregate.sketch_size),)


def _pick_partials(
    aggregate: Aggregate, _dtype: pa.DataType, *, descending: bool
) -> tuple[Partial, ...]:
    pick = Partial(
        Combine.PICK,
        Lift.ROW,
        _column(aggregate),
        by=aggregate.by if isinstance(aggregate.by, str) else None,
        descending=descending,
        latest=not aggregate.first,
        skip_nulls=aggregate.skip_nulls,
    )
    return (pick,)


@dataclass(frozen=True)
class Definition:
    """An aggregate function as data.

    Parameters
    ----------
    accepts, accepts_text
        The types of the argument, as a predicate and as text.
    result_type
        Argument type to result type.
    partials
        The primitive partials that it needs; aggregates of one query share equal ones.
    lower
        How they become the result.
    order_dependent
        Whether the order of arrival decides the result (of ties, for arg_min and arg_max).
    of_frames
        Whether it is for frames only.
    """

    accepts: Callable[[pa.DataType], bool]
    accepts_text: str
    result_type: Callable[[pa.DataType], pa.DataType]
    partials: Callable[[Aggregate, pa.DataType], tuple[Partial, ...]]
    lower: Lower
    order_dependent: bool = field(default=False, kw_only=True)
    of_frames: bool = field(default=False, kw_only=True)


#: Digits of the widest decimals.
_DIGITS = 38
_SMALL = "integers, floats and decimals of up to 18 digits"
_NUMBERS = "integers, floats and decimals of up to 38 digits"
_SORTABLE = f"{_NUMBERS}, booleans, dates, timestamps, strings and binary"

_MIN_PARTIALS = partial(_extreme_partials, Combine.MIN)
_MAX_PARTIALS = partial(_extreme_partials, Combine.MAX)

DEFINITIONS = {
    "rank": Definition(
        any_type, "any type", lambda _: pa.int64(), _count_partials, Lower.RANK, of_frames=True
    ),
    "dense_rank": Definition(
        any_type, "any type", lambda _: pa.int64(), _times_partials, Lower.COUNT, of_frames=True
    ),
    "count": Definition(any_type, "any type", lambda _: pa.int64(), _count_partials, Lower.COUNT),
    "sum": Definition(is_summed, _NUMBERS, _sum_type, _sum_partials, Lower.VALUE),
    "min": Definition(is_sortable, _SORTABLE, _same, _MIN_PARTIALS, Lower.VALUE),
    "max": Definition(is_sortable, _SORTABLE, _same, _MAX_PARTIALS, Lower.VALUE),
    "mean": Definition(is_summed, _NUMBERS, _mean_type, _sum_partials, Lower.RATIO),
    "variance": Definition(
        is_number, _SMALL, lambda _: pa.float64(), _moments_partials, Lower.SPREAD
    ),
    "stddev": Definition(
        is_number, _SMALL, lambda _: pa.float64(), _moments_partials, Lower.ROOT_SPREAD
    ),
    "collect_list": Definition(
        any_type, "any type", pa.list_, _no_partials, Lower.LIST, order_dependent=True
    ),
    "count_distinct": Definition(
        is_comparable, "simple types", lambda _: pa.int64(), _no_partials, Lower.LIST
    ),
    "quantile": Definition(is_summed, _NUMBERS, lambda _: pa.float64(), _no_partials, Lower.LIST),
    "approx_count_distinct": Definition(
        is_hashable,
        f"{_SMALL}, booleans, dates, timestamps and strings",
        lambda _: pa.int64(),
        partial(_sketch_partials, Combine.DISTINCT_SKETCH),
        Lower.ESTIMATE,
    ),
    "approx_quantile": Definition(
        is_plain_number,
        "integers and floats",
        lambda _: pa.float64(),
        partial(_sketch_partials, Combine.QUANTILES_SKETCH),
        Lower.SKETCHED_QUANTILE,
    ),
    "bool_and": Definition(types.is_boolean, "booleans", _same, _MIN_PARTIALS, Lower.VALUE),
    "bool_or": Definition(types.is_boolean, "booleans", _same, _MAX_PARTIALS, Lower.VALUE),
    **{
        name: Definition(
            any_type,
            "any type",
            _same,
            partial(_pick_partials, descending=descending),
            Lower.ROW,
            order_dependent=True,
        )
        for name, descending in (
            ("first", False),
            ("last", True),
            ("arg_min", False),
            ("arg_max", True),
        )
    },
}


@dataclass(frozen=True)
class BoundAggregate:
    """An aggregate with its name in the result, and its argument's type and nullability.

    ``since``: see `Partial`; for earlier rows its argument may be null.
    """

    name: str
    aggregate: Aggregate
    argument_type: pa.DataType
    nullable: bool = True
    since: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it reads."""
        return self.aggregate.columns

    def describe(self) -> str:
        """Return the aggregate as SQL would write it."""
        return self.aggregate.describe()

    @property
    def definition(self) -> Definition:
        """The definition of its function."""
        return DEFINITIONS[self.aggregate.function]

    @property
    def needs_rows(self) -> bool:
        """Whether it needs all values of a window instead of partials."""
        return self.aggregate.is_distinct or self.definition.lower is Lower.LIST

    @property
    def result_type(self) -> pa.DataType:
        """Arrow type of the result column."""
        return self.definition.result_type(self.argument_type)

    def result_field(self, schema: pa.Schema) -> pa.Field:
        """Return the field of the result column, with the collations of values that it passes on.

        ``schema``: of the input.
        """
        field, column = pa.field(self.name, self.result_type), _column(self.aggregate)
        source = schema.field(column) if column in schema.names else None
        if source is None or not any(collations(source)):
            return field
        if field.type == source.type:
            return field.with_type(source.type).with_metadata(source.metadata)
        if types.is_list(field.type) and field.type.value_type == source.type:
            return field.with_type(pa.list_(source.with_name("item").with_nullable(True)))
        return field

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The primitive partials that it needs; empty if it needs the rows."""
        if self.aggregate.is_distinct:
            return ()
        partials = self.definition.partials(self.aggregate, self.argument_type)
        if not self.nullable:
            partials = tuple(ROWS if each.lift is Lift.ONE else each for each in partials)
        where = self.aggregate.where
        if isinstance(where, str):
            partials = tuple(replace(each, where=where) for each in partials)
        if self.since:
            partials = tuple(replace(each, since=self.since) for each in partials)
        return partials

    def with_rows_since(self, since: int) -> BoundAggregate:
        """Return the same over rows since a start of the query: see `Partial`."""
        return replace(self, since=since, nullable=True)


def bind(name: str, aggregate: Aggregate, schema: pa.Schema) -> BoundAggregate:
    """Check an aggregate against the types of its columns.

    Raises
    ------
    UnsupportedAggregateError
        If its function does not take the type, or ``by`` cannot be compared.
    """
    definition = DEFINITIONS[aggregate.function]
    column = _column(aggregate)
    dtype = pa.null() if column is None else schema.field(column).type
    if not definition.accepts(dtype):
        remedy = remedy_of(aggregate.function)
        rule = f"{aggregate.function} takes {definition.accepts_text}: {remedy}"
        raise UnsupportedAggregateError(rule, value=str(dtype), column=column)
    if aggregate.is_distinct and not is_comparable(dtype):
        rule = f"distinct takes simple types: {remedy_of('count_distinct')}"
        raise UnsupportedAggregateError(rule, value=str(dtype), column=column)
    if isinstance(aggregate.by, str) and not is_sortable(schema.field(aggregate.by).type):
        rule = f"the ordering of {aggregate.function} takes {_SORTABLE}: {remedy_of('by')}"
        value = str(schema.field(aggregate.by).type)
        raise UnsupportedAggregateError(rule, value=value, column=aggregate.by)
    where = aggregate.where
    if isinstance(where, str) and not types.is_boolean(schema.field(where).type):
        rule = f"the condition of {aggregate.function} must be a column of booleans"
        value = str(schema.field(where).type)
        raise UnsupportedAggregateError(rule, value=value, column=where)
    nullable = column is None or schema.field(column).nullable
    return BoundAggregate(name, aggregate, dtype, nullable)
