"""Rows joined with a batch DataFrame: a lookup."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from gpu_windows.runners.lookup import Lookup


def look_up_frame(frame: DataFrame, table: DataFrame, lookup: Lookup) -> DataFrame:
    """Return the rows with the columns of each row of the table that has their key."""
    keys = {f"__lookup_{index}": column for index, column in enumerate(lookup.keys.values())}
    picked = {**keys, **lookup.columns}
    other = table.select(*(F.col(quote_name(c)).alias(name) for name, c in picked.items()))
    pairs = zip(lookup.keys, keys, strict=True)
    same = [F.col(quote_name(own)) == F.col(name) for own, name in pairs]
    how = "left" if lookup.keep_unmatched else "inner"
    return frame.join(other, reduce(and_, same), how).drop(*keys)
