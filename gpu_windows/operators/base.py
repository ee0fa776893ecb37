"""The face of an operator: columnar, stateful and independent of Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

import pyarrow as pa


@dataclass(frozen=True)
class Counters:
    """What became of the rows; every row of the input is in exactly one of the first five.

    ``rows`` counts all rows seen; ``late``, ``gap``, ``null_timestamp`` and
    ``out_of_range_timestamp`` those that are in no window; the rest were accepted.
    ``fired`` counts emitted windows. ``cpu_batches`` and ``cuda_batches`` count calls of kernels by
    back end, ``device_fallbacks`` those that did not fit device memory and went to the CPU; they
    depend on how the input was cut, and do not take part in equality.
    """

    rows: int = 0
    late: int = 0
    gap: int = 0
    null_timestamp: int = 0
    out_of_range_timestamp: int = 0
    fired: int = 0
    cpu_batches: int = field(default=0, compare=False)
    cuda_batches: int = field(default=0, compare=False)
    device_fallbacks: int = field(default=0, compare=False)

    def __add__(self, other: Counters) -> Counters:
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Counters(**sums)


@dataclass(frozen=True)
class Emission:
    """What an operator gives back: always three parts.

    Parameters
    ----------
    results : pyarrow.Table
        Rows of ``Plan.result_schema``, in the order in which they fired, then (in a traced
        operator) the columns of `TRACE`.
    late : pyarrow.Table
        Input rows that are in no window because they came too late (`REASON` is "late"), or
        have no usable timestamp ("null_timestamp", "out_of_range_timestamp"). Rows in a gap
        between windows are only counted, as in Flink.
    counters : Counters
    """

    results: pa.Table
    late: pa.Table
    counters: Counters = field(default_factory=Counters)


#: Extra result columns of a traced operator: what caused the firing ("element" or "event_time")
#: and the timer's time in ticks (null for "element").
TRACE = (pa.field("fired", pa.string()), pa.field("fired_time", pa.int64()))


class Operator(ABC):
    """Evaluates a plan for some keys.

    Runners call `process` with batches in order of arrival and `advance_watermark` between
    them. A batch has the columns ``Plan.input_columns`` (event time as int64 ticks), and
    `ARRIVAL` (int64) where the plan's order says so.
    """

    @abstractmethod
    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Take rows, in order of arrival. Any number of them, 0 too."""

    @abstractmethod
    def advance_watermark(self, watermark: int) -> Iterator[Emission]:
        """Fire the windows up to ``watermark`` (ticks) and drop what is over.

        A watermark that is not greater than the last one does nothing. LONG_MAX ends the input.
        """
