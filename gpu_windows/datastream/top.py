"""The function of `WindowedStream.top`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from gpu_windows.functions.top import (
    Top,
    check_count,
    check_number,
    check_order,
    directions,
)
from gpu_windows.planning.validation import check_distinct
from gpu_windows.runners.outputs import Source


def top(
    source: Source,
    count: Any,
    carried: Sequence[str],
    by: Sequence[str],
    descending: Any,
    number: Any,
) -> Top:
    """Return the function that takes the first rows of windows.

    Parameters
    ----------
    source : Source
        With the columns.
    count, descending, number
        See `WindowedStream.top`.
    carried, by : sequence of str
        Columns of results, and those that rows are ordered by.
    """
    order = zip(by, directions(descending, len(by)), strict=True)
    check_order(source.schema, by)
    seen = tuple(dict.fromkeys((*carried, *by)))
    fields = [source.schema.field(name).with_name(source.display_name(name)) for name in carried]
    output = pa.schema([*fields, pa.field(check_number(number), pa.int64(), nullable=False)])
    check_distinct(output.names)
    places = tuple((seen.index(name), down) for name, down in order)
    return Top(check_count(count), places, seen, output)
