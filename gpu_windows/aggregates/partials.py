"""Primitive partials: their value for a row, and how they combine (`gpu_windows.rules`)."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cached_property
from hashlib import sha256

from gpu_windows.column_types.logical import Lane


class Combine(Enum):
    """How two primitive partials become one."""

    ADD = "add"
    MIN = "least"
    MAX = "greatest"
    MOMENTS = "moments"
    PICK = "pick"
    DISTINCT_SKETCH = "distinct sketch"
    QUANTILES_SKETCH = "quantiles sketch"

    @property
    def is_sketch(self) -> bool:
        """Whether the DataSketches library makes and merges these partials."""
        return self in (Combine.DISTINCT_SKETCH, Combine.QUANTILES_SKETCH)


class Lift(Enum):
    """How a primitive partial begins with a row."""

    ONE = "one"  # 1 for a row whose column is not null (any row, if there is no column)
    VALUE = "value"
    HIGH = "high"  # value >> 32: with LOW an exact sum of any number of int64
    LOW = "low"  # value & (2**32 - 1)
    NEW = "new"  # 1 for the first row of a key with its time, 0 for others
    ROW = "row"  # the row itself, as the candidate of a PICK


@dataclass(frozen=True)
class Partial:
    """A primitive partial aggregate of one column.

    ``by`` and ``descending`` belong to PICK: it picks the row with the minimum (or maximum) of
    ``by``, the earlier one of equals, or with ``latest`` the later one; without ``by``, the
    earliest (or latest) row. ``sketch_size`` is lg k of a distinct sketch, k of a quantiles sketch.
    With ``where``, a column of booleans, only rows count in which it is true. With ``once``, for
    frames alone, only the first of equal values counts. ``since`` is the number of the start of a
    streaming query, 0 for the first, since which rows count: aggregates that were added later have
    partials of their own. ``word`` is the word that is lifted of values of two words: 1 is the
    upper, 0 the lower.
    """

    combine: Combine
    lift: Lift
    column: str | None = None
    lane: Lane = "int64"
    by: str | None = None
    descending: bool = False
    latest: bool = False
    skip_nulls: bool = True
    sketch_size: int = 0
    where: str | None = None
    once: bool = False
    since: int = 0
    word: int = 0

    @cached_property
    def name(self) -> str:
        """Name of its columns in tables of partials.

        State is read by name, so the name depends on the partial's own fields and nothing else.
        """
        given = {
            each.name: value.value if isinstance(value, Enum) else value
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default or each.default is MISSING
        }
        return f"__p{sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:12]}"


#: The partial that every plan has: the number of rows, nulls or not.
ROWS = Partial(Combine.ADD, Lift.ONE)
#: The number of distinct times, for frames.
TIMES = Partial(Combine.ADD, Lift.NEW)
