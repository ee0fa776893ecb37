"""Logical types of columns, and the only conversions of other Arrow types to them.

Arrow has several types for the same values: text is a string, a large string, a view or an entry of
a dictionary. Logical types are those that Spark has, so that operators see one type of each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from gpu_windows.errors import ColumnTypeError
from gpu_windows.rules import LONG_MAX, LONG_MIN

#: Metadata of an Arrow field with a collation; strings without it are compared by bytes.
_COLLATION = b"gpu_windows.collation"
#: Types that represent values in kernels.
Lane = Literal["int64", "float64"]
#: Maximum digits of a decimal of Spark.
DIGITS = 38
#: Decimals of up to this many digits are one lane, their unscaled value; wider ones are two.
DECIMAL_DIGITS = 18
#: Arrow types to their logical types.
_LOGICAL = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.time32("s"): pa.time64("us"),
    pa.time32("ms"): pa.time64("us"),
}
#: Logical types by their names in SQL; one of each kind of types with parameters.
LOGICAL: Mapping[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DECIMAL(18, 2)": pa.decimal128(18, 2),
    "DECIMAL(20, 0)": pa.decimal128(20, 0),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP of ns": pa.timestamp("ns", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "INTERVAL DAY TO SECOND": pa.duration("us"),
    "TIME": pa.time64("us"),
    "ARRAY<INT>": pa.list_(pa.int32()),
    "STRUCT<x INT>": pa.struct([("x", pa.int32())]),
    "MAP<STRING, INT>": pa.map_(pa.string(), pa.int32()),
}
#: What to do with columns of types that a use does not take.
_REMEDIES = {
    **dict.fromkeys(
        ("sum", "mean", "variance", "stddev", "quantile", "approx_quantile"),
        'make a number of it, with_columns(n="CAST(x AS DOUBLE)")',
    ),
    **dict.fromkeys(("min", "max", "by"), "order by a number or a time that is made of it"),
    **dict.fromkeys(
        ("key", "count_distinct", "approx_count_distinct"),
        "take its parts one by one, or a number or text of it",
    ),
    **dict.fromkeys(("bool_and", "bool_or"), "compare it with something"),
}
_LISTS = (
    types.is_list,
    types.is_large_list,
    types.is_fixed_size_list,
    types.is_list_view,
    types.is_large_list_view,
)
#: Microseconds per unit.
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000}


def logical_type(dtype: pa.DataType) -> pa.DataType:
    """Return the Spark type for the values of a column, as an Arrow type.

    Times keep their zone, which is for display. Times of nanoseconds stay, because they may be
    finer than Spark's. So do durations of any unit, because one that is too long is a bad value of
    its row, and types that Spark does not have, such as extension types that give numbers another
    meaning (pandas: Period).

    Examples
    --------
    >>> import pyarrow as pa
    >>> logical_type(pa.dictionary(pa.int8(), pa.large_string()))
    DataType(string)
    >>> logical_type(pa.list_view(pa.uint16()))
    ListType(list<item: int32>)
    """
    if isinstance(dtype, pa.BaseExtensionType):
        storage = logical_type(dtype.storage_type)
        return dtype if types.is_primitive(storage) else storage
    if types.is_dictionary(dtype) or types.is_run_end_encoded(dtype):
        return logical_type(dtype.value_type)
    if types.is_decimal(dtype):
        is_wide = dtype.precision > DIGITS
        return dtype if is_wide else pa.decimal128(dtype.precision, dtype.scale)
    if types.is_timestamp(dtype):
        return pa.timestamp("us", dtype.tz) if dtype.unit in _MICROSECONDS else dtype
    if types.is_fixed_size_binary(dtype):
        return pa.binary()
    if types.is_nested(dtype):
        return _logical_nested(dtype)
    return _LOGICAL.get(dtype, dtype)


def _logical_nested(dtype: pa.DataType) -> pa.DataType:
    if any(is_list(dtype) for is_list in _LISTS):
        return pa.list_(_logical_field(dtype.value_field))
    if types.is_struct(dtype):
        return pa.struct([_logical_field(field) for field in dtype])
    if types.is_map(dtype):
        key, item = _logical_field(dtype.key_field), _logical_field(dtype.item_field)
        return pa.map_(key, item, keys_sorted=dtype.keys_sorted)
    return dtype


def _logical_field(field: pa.Field) -> pa.Field:
    """Return a field with its logical type; metadata of another type is dropped."""
    dtype = logical_type(field.type)
    return field if dtype == field.type else field.with_type(dtype).remove_metadata()


def logical_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns with logical types."""
    return pa.schema([_logical_field(field) for field in schema])


def is_logical(schema: pa.Schema) -> bool:
    """Whether all columns have logical types."""
    return all(field.type == logical_type(field.type) for field in schema)


def hides_nulls(dtype: pa.DataType) -> bool:
    """Whether an array of a type may have nulls that it does not count: in its entries or runs."""
    is_extension = isinstance(dtype, pa.BaseExtensionType)
    return bool(is_extension or types.is_dictionary(dtype) or types.is_run_end_encoded(dtype))


def logical_table(table: pa.Table, clipped: Collection[str] = ()) -> pa.Table:
    """Return a table with logical types; columns that have these are not copied.

    Parameters
    ----------
    table : pyarrow.Table
    clipped : collection of str
        Event time columns. Their values that do not fit microseconds become the first or last
        int64, which is out of range for every window.

    Raises
    ------
    ColumnTypeError
        If a value does not fit the logical type.
    """
    for at, field in enumerate(table.schema):
        dtype = logical_type(field.type)
        if dtype != field.type:
            to = _clip_times if field.name in clipped else logical_array
            chunks = (to(chunk, dtype, field.name) for chunk in table.column(at).chunks)
            pieces = [piece for chunk in chunks for piece in chunk]
            table = table.set_column(at, _logical_field(field), pa.chunked_array(pieces, dtype))
    return table


def logical_array(array: pa.Array, dtype: pa.DataType, name: str) -> list[pa.Array]:
    """Cast an array to its logical type; return several arrays if one cannot hold the values.

    Parameters
    ----------
    array : pyarrow.Array
    dtype : pyarrow.DataType
        The logical type of its values, or a wider one.
    name : str
        Of the column, for errors.

    Raises
    ------
    ColumnTypeError
        If a value does not fit it.
    """
    try:
        return [plain_array(array).cast(dtype)]
    except pa.ArrowNotImplementedError as error:
        rule = f"values of this type are read as {dtype}, and Arrow cannot do that: cast it first"
        raise ColumnTypeError(rule, value=str(array.type), column=name) from error
    except pa.ArrowException:
        return _in_pieces(array, dtype, name)


def _in_pieces(array: pa.Array, dtype: pa.DataType, name: str) -> list[pa.Array]:
    """Cast an array in pieces; see `logical_array`."""
    if len(array) > 1:
        half = len(array) // 2
        parts = (array.slice(0, half), array.slice(half))
        return [piece for part in parts for piece in logical_array(_copy_array(part), dtype, name)]
    try:
        return [plain_array(_copy_array(array)).cast(dtype)]
    except pa.ArrowException as error:
        rule = f"a value of {array.type} is read as {dtype}, in which it has no place: "
        raise ColumnTypeError(rule + _remedy(array.type), value=error, column=name) from error


def plain_array(array: pa.Array) -> pa.Array:
    """Return values in a type that Arrow can cast: no extension types, runs or dictionary entries.

    Arrow casts dictionaries, but not of views; it casts list views, but not slices of them.
    """
    if isinstance(array, pa.ExtensionArray):
        return plain_array(array.storage)
    if types.is_run_end_encoded(array.type):
        return plain_array(pc.run_end_decode(array))
    if types.is_dictionary(array.type):
        entries = plain_array(array.dictionary).cast(logical_type(array.type.value_type))
        return entries.take(array.indices)
    if not types.is_nested(array.type) or _is_castable(array.type):
        return array
    if types.is_struct(array.type):
        parts = [plain_array(part) for part in array.flatten()]
        fields = [f.with_type(p.type) for f, p in zip(array.type, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())
    if types.is_map(array.type):
        return array
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
    entries = plain_array(array.flatten())
    return pa.LargeListArray.from_arrays(offsets, entries, mask=array.is_null())


def _is_castable(dtype: pa.DataType) -> bool:
    """Whether Arrow can cast a type to its logical type."""
    if isinstance(dtype, pa.BaseExtensionType) or types.is_run_end_encoded(dtype):
        return False
    if types.is_dictionary(dtype):
        view = (types.is_string_view, types.is_binary_view)
        return not any(is_view(dtype.value_type) for is_view in view)
    if types.is_list_view(dtype) or types.is_large_list_view(dtype):
        return False  # Arrow casts a slice to a list with too few offsets
    if any(is_list(dtype) for is_list in _LISTS):
        return _is_castable(dtype.value_type)
    return not types.is_struct(dtype) or all(_is_castable(field.type) for field in dtype)


def _copy_array(array: pa.Array) -> pa.Array:
    """Return a copy whose offsets begin at its first value."""
    return array.take(pa.array(range(len(array)), pa.int64()))


def _remedy(dtype: pa.DataType) -> str:
    if types.is_date64(dtype):
        return "cast it to a timestamp, or round it to days"
    if types.is_timestamp(dtype) or types.is_duration(dtype):
        return "set it to null where it does not fit int64 microseconds"
    return "shorten it"


def _clip_times(array: pa.Array, dtype: pa.DataType, name: str) -> list[pa.Array]:
    """Return times in microseconds; those that do not fit become the first or last int64."""
    del name
    factor = _MICROSECONDS[array.type.unit]
    ticks, limit = array.cast(pa.int64()), LONG_MAX // factor
    high, low = pc.greater(ticks, limit), pc.less(ticks, -limit)
    small = pc.if_else(pc.or_(high, low), 0, ticks)
    beyond = pc.if_else(high, LONG_MAX, pc.if_else(low, LONG_MIN, pc.multiply(small, factor)))
    return [beyond.cast(dtype)]


def name_of(dtype: pa.DataType) -> str:
    """Return the name of an Arrow type's logical type; nested types have the name of their kind."""
    logical = logical_type(dtype)
    if types.is_nested(logical):
        return next(name for name, each in LOGICAL.items() if each.id == logical.id)
    if types.is_decimal(logical):
        return "DECIMAL(18, 2)" if logical.precision <= 18 else "DECIMAL(20, 0)"
    zoned = types.is_timestamp(logical) and logical.tz is not None
    alike = pa.timestamp(logical.unit, "UTC") if zoned else logical
    return next(name for name, each in LOGICAL.items() if each == alike)


def remedy_of(use: str) -> str:
    """Return what to do with columns that an aggregate, ``by`` or a key does not take."""
    return _REMEDIES.get(use, "")


def with_collation(field: pa.Field, collation: str) -> pa.Field:
    """Return a string field with a collation."""
    return field.with_metadata({_COLLATION: collation.encode()})


def collation_of(field: pa.Field) -> str | None:
    """Return the collation of a field; None for comparison by bytes."""
    found = (field.metadata or {}).get(_COLLATION)
    return None if found is None else found.decode()


def collations(field: pa.Field) -> Iterator[str]:
    """Yield the collations of a field and of its parts."""
    collation = collation_of(field)
    if collation is not None:
        yield collation
    if types.is_nested(field.type):
        for place in range(field.type.num_fields):
            yield from collations(field.type.field(place))


# ---- what kernels do with values of logical types


def is_number(dtype: pa.DataType) -> bool:
    """Whether kernels add its values: integers except uint64, floats, small decimals."""
    if types.is_uint64(dtype):
        return False  # does not fit int64
    return bool(types.is_integer(dtype) or types.is_floating(dtype)) or is_small_decimal(dtype)


def is_small_decimal(dtype: pa.DataType) -> bool:
    """Whether it is a decimal of up to `DECIMAL_DIGITS` digits."""
    return bool(types.is_decimal128(dtype) and dtype.precision <= DECIMAL_DIGITS)


def is_wide(dtype: pa.DataType) -> bool:
    """Whether it is a wider decimal, whose values are an upper and a lower word."""
    return bool(types.is_decimal128(dtype) and dtype.precision > DECIMAL_DIGITS)


def is_summed(dtype: pa.DataType) -> bool:
    """Whether its values can be summed, in one lane or in two."""
    return is_number(dtype) or is_wide(dtype)


def is_text(dtype: pa.DataType) -> bool:
    """Whether it is a string or binary."""
    strings = types.is_string(dtype) or types.is_large_string(dtype)
    return bool(strings or types.is_binary(dtype) or types.is_large_binary(dtype))


def is_sortable(dtype: pa.DataType) -> bool:
    """Whether values of this type have an order; strings are ordered by bytes."""
    return is_ordered(dtype) or is_wide(dtype) or is_text(dtype)


def is_ordered(dtype: pa.DataType) -> bool:
    """Whether kernels can compare values of this type."""
    return bool(
        is_number(dtype)
        or types.is_boolean(dtype)
        or types.is_date32(dtype)
        or types.is_timestamp(dtype)
    )


def is_hashable(dtype: pa.DataType) -> bool:
    """Whether sketches can count values of this type."""
    return is_ordered(dtype) or bool(types.is_string(dtype) or types.is_large_string(dtype))


def is_comparable(dtype: pa.DataType) -> bool:
    """Whether values of this type can be compared for equality, as keys can, structs aside."""
    return is_sortable(dtype) or bool(types.is_decimal(dtype))


def is_plain_number(dtype: pa.DataType) -> bool:
    """Whether it is an integer or a float."""
    return is_number(dtype) and not types.is_decimal(dtype)


def lane_of(dtype: pa.DataType) -> Lane:
    """Return the kernel type that represents values of this type."""
    return "float64" if types.is_floating(dtype) else "int64"


def any_type(_dtype: pa.DataType) -> bool:
    """Accept any type."""
    return True
