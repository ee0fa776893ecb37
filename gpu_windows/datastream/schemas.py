"""Schemas as users write them: Arrow's, Spark's, or DDL as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, Union

import pyarrow as pa

from gpu_windows.errors import QueryError, require_extra

if TYPE_CHECKING:
    from gpu_windows.annotations import StructType

#: What ``output=`` takes: a schema of Arrow or Spark, or DDL such as ``"total DOUBLE"``.
Schema: TypeAlias = Union[pa.Schema, str, "StructType"]


def read_schema(schema: Any, parameter: str = "output=") -> pa.Schema:
    """Return the Arrow schema of what a user wrote.

    Parameters
    ----------
    schema : pyarrow.Schema, str or StructType
        A text has columns as in Spark's DDL: ``"total DOUBLE, names ARRAY<STRING>"``. A column
        that is NOT NULL must have a value in each row; parts of structs and lists are nullable,
        as in what functions of Spark's return.

    parameter : str
        What it is, for messages.

    Raises
    ------
    QueryError
        If it is something else, or has a type that does not cross between Spark and Arrow.
    SqlError
        If the text is not DDL, with the place in it.
    """
    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(schema, str):
        require_extra("sqlglot", "sql", "a schema as DDL")
        from gpu_windows.expressions.ddl import read_ddl

        return read_ddl(schema)
    if _is_spark_struct(schema):
        return _from_spark(schema)
    rule = f"{parameter} is a pyarrow.Schema, a StructType or DDL such as 'total DOUBLE'"
    raise QueryError(rule, value=repr(schema))


def _is_spark_struct(value: Any) -> bool:
    """Whether a value is a StructType of PySpark's, which need not be installed."""
    kind = type(value)
    return kind.__module__ == "pyspark.sql.types" and kind.__name__ == "StructType"


def _from_spark(struct: StructType) -> pa.Schema:
    from gpu_windows.spark_glue.columns.types import to_arrow_schema

    fields = []
    for field, given in zip(to_arrow_schema(struct), struct.fields, strict=True):
        if field.type == pa.null():
            rule = "this type of Spark's has no Arrow type that crosses"
            raise QueryError(rule, value=given.dataType.simpleString(), column=given.name)
        fields.append(field.with_nullable(given.nullable))
    return pa.schema(fields)
