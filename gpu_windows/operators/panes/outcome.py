"""Results of panes in a call: rows, and when their windows fired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class FiredRows:
    """Rows of windows that fired, with the sort keys of the order of firing.

    Parameters
    ----------
    rows : pyarrow.Table
        n rows.
    when : int64[n]
        Row or time that fired the window of each row.
    window : int64[n]
        Order of the windows that one row or time fires.
    """

    rows: pa.Table
    when: Ints
    window: Ints


@dataclass(frozen=True)
class Outcome:
    """Results of some panes in a call.

    Parameters
    ----------
    results : FiredRows
        Rows of the result schema, then of `TRACE` if it is asked for.
    late : int64[m]
        Numbers, among the new rows, of those that came too late for their session.
    sides : mapping of str to FiredRows
        Rows of the side outputs, by tag; all of the query's, or none.
    counts : Counter of str
        Counters of the function.
    """

    results: FiredRows
    late: Ints
    sides: Mapping[str, FiredRows] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
