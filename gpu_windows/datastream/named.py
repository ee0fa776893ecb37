"""The columns of aggregates, each by a name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpu_windows.aggregates.definitions import Aggregate
from gpu_windows.runners.outputs import Source


def named(source: Source, name: str, aggregate: Aggregate) -> tuple[Source, Aggregate]:
    """Return a source that has the columns of an aggregate, and the aggregate of their names.

    Parameters
    ----------
    source : Source
    name : str
        Of the result, after which expressions are called, but conditions: they are told as written.
    aggregate : Aggregate
        Of names and, on Spark, expressions.
    """
    names: dict[str, Any] = {}
    for part in ("column", "by", "where"):
        column = getattr(aggregate, part)
        if column is not None:
            fallback = None if part == "where" else f"__{name}_{part}"
            source, names[part] = source.name(column, fallback)
    return source, replace(aggregate, **names)
