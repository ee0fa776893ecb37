"""Collated strings: passed through unchanged, refused where values are compared.

With a collation (Spark's ``STRING COLLATE UTF8_LCASE``) different bytes may be equal. Python
receives the bytes, and comparing those would give other results than Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyarrow import types

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.errors import ColumnTypeError

#: Metadata of an Arrow field with a collation; strings without it are compared by bytes.
_COLLATION = b"gpu_windows.collation"
#: Lower case with final sigma as sigma, as in Spark's collations.
_LOWER = "translate(lower({}), '\u03c2', '\u03c3')"
_BY_BYTES = "collate({}, 'UTF8_BINARY')"
#: Expressions without a collation that are equal where strings of a collation are.
_EQUAL_TEXTS = {
    "UTF8_LCASE": _LOWER.format(_BY_BYTES),
    "UTF8_BINARY_RTRIM": f"rtrim({_BY_BYTES})",
    "UTF8_LCASE_RTRIM": _LOWER.format(f"rtrim({_BY_BYTES})"),
}


def with_collation(field: pa.Field, collation: str) -> pa.Field:
    """Return a string field with a collation."""
    return field.with_metadata({_COLLATION: collation.encode()})


def collation_of(field: pa.Field) -> str | None:
    """Return the collation of a field; None for comparison by bytes."""
    found = (field.metadata or {}).get(_COLLATION)
    return None if found is None else found.decode()


def with_collations_of(field: pa.Field, aggregate: Aggregate, schema: pa.Schema) -> pa.Field:
    """Return the result field of an aggregate, with the collations of values it passes through.

    Parameters
    ----------
    field : pyarrow.Field
    aggregate : Aggregate
    schema : pyarrow.Schema
        Of the input.
    """
    if not isinstance(aggregate.column, str) or aggregate.column not in schema.names:
        return field
    source = schema.field(aggregate.column)
    if not any(_collations(source)):
        return field
    if field.type == source.type:
        return field.with_type(source.type).with_metadata(source.metadata)
    if types.is_list(field.type) and field.type.value_type == source.type:
        return field.with_type(pa.list_(source.with_name("item").with_nullable(True)))
    return field


def check_collations(compared: Iterable[pa.Field], display_name: Callable[[str], str]) -> None:
    """Refuse comparisons of collated strings, also within structs, lists and maps.

    Parameters
    ----------
    compared : iterable of pyarrow.Field
        Columns and results whose values are compared.
    display_name : callable
        From a column to the user's name of it.

    Raises
    ------
    ColumnTypeError
        With the column, its collation, and an expression to compare instead.
    """
    for field in compared:
        for collation in _collations(field):
            column = display_name(field.name)
            raise ColumnTypeError(_rule(column, collation), value=collation, column=column)


def _collations(field: pa.Field) -> Iterator[str]:
    collation, dtype = collation_of(field), field.type
    if collation is not None:
        yield collation
    if types.is_nested(dtype):
        for place in range(dtype.num_fields):
            yield from _collations(dtype.field(place))


def _rule(column: str, collation: str) -> str:
    quoted = f"`{column.replace('`', '``')}`"
    by_bytes = f"compare its bytes, {_BY_BYTES.format(quoted)}"
    equal = _EQUAL_TEXTS.get(collation.upper())
    alike = "" if equal is None else f", or by the collation, {equal.format(quoted)}"
    return (
        "collated strings cannot be keys, orders or compared values: "
        f"add a column, using with_columns, to {by_bytes}{alike}"
    )
