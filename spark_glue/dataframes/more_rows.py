"""Rows by Spark with the elements of their lists and maps, or with rows of a table: a lookup."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it
from pyspark.sql.types import ArrayType, MapType, StructType

from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gpu_windows.runners.explosion import Explosion
    from gpu_windows.runners.lookup import Lookup


_POSITION, _ELEMENT, _VALUE = "__position", "__element", "__value"


def explode_frame(frame: DataFrame, explosion: Explosion) -> DataFrame:
    """Return the rows of the elements, with all columns of the rows that they come from."""
    dtype = frame.schema[explosion.column].dataType
    make = F.posexplode_outer if explosion.keep_empty else F.posexplode
    parts = make(F.col(quote_name(explosion.column)))
    own = [F.col(quote_name(name)) for name in frame.columns]
    if isinstance(dtype, MapType):
        frame = frame.select("*", parts.alias(_POSITION, _ELEMENT, _VALUE))
        values = [F.col(_ELEMENT), F.col(_VALUE)]
    else:
        assert isinstance(dtype, ArrayType)
        frame = frame.select("*", parts.alias(_POSITION, _ELEMENT))
        element = F.col(_ELEMENT)
        values = [element]
        if isinstance(dtype.elementType, StructType):
            values = [element.getField(name) for name in dtype.elementType.fieldNames()]
    added = [each.alias(name) for each, name in zip(values, explosion.names, strict=True)]
    if explosion.position is not None:
        added.append((F.col(_POSITION) + 1).cast("int").alias(explosion.position))
    return frame.select(*own, *added)


def look_up_frame(frame: DataFrame, table: DataFrame, lookup: Lookup) -> DataFrame:
    """Return the rows with the columns of each row of the table that has their key."""
    keys = {f"__lookup_{index}": column for index, column in enumerate(lookup.keys.values())}
    picked = {**keys, **lookup.columns}
    other = table.select(*(F.col(quote_name(c)).alias(name) for name, c in picked.items()))
    pairs = zip(lookup.keys, keys, strict=True)
    same = [F.col(quote_name(own)) == F.col(name) for own, name in pairs]
    how = "left" if lookup.keep_unmatched else "inner"
    return frame.join(other, reduce(and_, same), how).drop(*keys)
