"""Primitive partials: what is taken of a row, and how it combines (`gpu_windows.rules`)."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cached_property
from hashlib import sha256

from gpu_windows.aggregates.argument_types import Lane


class Combine(Enum):
    """How two primitive partials become one."""

    ADD = "add"
    LEAST = "least"
    GREATEST = "greatest"
    MOMENTS = "moments"
    PICK = "pick"
    DISTINCT_SKETCH = "distinct sketch"
    QUANTILES_SKETCH = "quantiles sketch"

    @property
    def is_sketch(self) -> bool:
        """Whether the DataSketches library makes and merges these partials."""
        return self in (Combine.DISTINCT_SKETCH, Combine.QUANTILES_SKETCH)


class Lift(Enum):
    """What a primitive partial takes from a row."""

    ONE = "one"  # 1 for a row whose column is not null (any row, if there is no column)
    VALUE = "value"
    HIGH = "high"  # value >> 32: with LOW an exact sum of any number of int64
    LOW = "low"  # value & (2**32 - 1)
    NEW = "new"  # 1 for the first of the rows of its key that have its time
    ROW = "row"  # the row itself, as the candidate of a PICK


@dataclass(frozen=True)
class Partial:
    """A primitive partial aggregate of one column.

    ``by`` and ``descending`` belong to PICK: the row with the least (or greatest) ``by`` is kept,
    the earlier one of equals, or with ``latest`` the later one; without ``by``, the earliest (or
    latest) row. ``sketch_size``
    is lg k of a distinct sketch, k of a quantiles sketch. Where there is ``where``, a column of
    booleans, only rows count in which it is true. With ``once``, which is of frames alone, only the
    first of equal values does. ``since`` is the number of the start of a streaming query from which
    on rows count: 0 is its first one. So what begins empty shares no partial with what does not.
    ``word`` is which one is lifted of values of two words: 1 the upper, 0 the lower.
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
        """Name of its columns in tables of partials, the same whatever other partials there are.

        State is read by it, so it depends on what a partial is and nothing else.
        """
        given = {
            each.name: value.value if isinstance(value, Enum) else value
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default or each.default is MISSING
        }
        return f"__p{sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:12]}"


#: The partial that every plan has: how many rows there are, whatever their columns hold.
ROWS = Partial(Combine.ADD, Lift.ONE)
#: How many different times there are, of frames.
TIMES = Partial(Combine.ADD, Lift.NEW)
