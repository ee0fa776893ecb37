"""Functions of users that see the rows and timers of many keys at once, as columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.declared import Declares, check_state_types
from gpu_windows.functions.keyed_process import UserProcess
from gpu_windows.functions.vector_results import CheckedResult, VectorResult, checked_result
from gpu_windows.user_values import as_read_only, lend_arrays
from gpu_windows.vocabulary.rich_functions import RuntimeContext, declared

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class KeysBatch:
    """Some keys, and what is known of them. Times are ticks (microseconds).

    Arrays are read only: writing into one raises `ValueError`. Copy those that you want to change.

    Parameters
    ----------
    keys : pyarrow.Table
        n rows: the key columns.
    state : pyarrow.Table
        n rows: the columns that the function declared, null where nothing is kept. A table without
        columns has no length: take that of the batch.
    offsets : int64[n + 1]
        What is of key i, rows or timers, is ``[offsets[i]:offsets[i + 1]]``; each key has some.
    current_watermark : int
        -2**63 before the first one.
    current_processing_time : int
        On a stream that of the micro-batch.
    """

    keys: pa.Table
    state: pa.Table
    offsets: Ints
    current_watermark: int
    current_processing_time: int

    def __post_init__(self) -> None:
        lend_arrays(self)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> Ints:
        """How many rows or timers each key has: int64[n], read only."""
        return as_read_only(np.diff(self.offsets))

    @property
    def places(self) -> Ints:
        """The key of every row or timer: int64[rows or timers], read only."""
        return as_read_only(np.repeat(np.arange(len(self)), self.counts))


@dataclass(frozen=True)
class RowsBatch(KeysBatch):
    """The rows of some keys. Other parameters: see `KeysBatch`.

    Parameters
    ----------
    rows : pyarrow.Table
        The chosen columns, one key after the other, those of a key in order of arrival.
    timestamps : int64[rows], optional
        Their event times; None where rows were given no time.
    """

    rows: pa.Table
    timestamps: Ints | None


@dataclass(frozen=True)
class TimersBatch(KeysBatch):
    """The timers of some keys that are due. Other parameters: see `KeysBatch`.

    Parameters
    ----------
    times : int64[timers]
        One key after the other, those of a key in order of time. None is set any more.
    time_domain : {"event_time", "processing_time"}
    """

    times: Ints
    time_domain: Literal["event_time", "processing_time"]


class VectorProcessFunction(Declares, ABC):
    """Takes the rows of many keys at once, as Arrow, with state of each key and timers.

    It is called once for the rows that come together and once for the timers that are due together,
    so Python's own speed does not matter. The keys of a batch come in no order that means
    something. How rows are cut into batches means nothing either, and must not matter: a batch may
    have one row.
    """

    #: Whether the order of the rows of a key means nothing to it, which spares a sort on Spark.
    order_free: ClassVar[bool] = False

    @declared
    def state(self) -> Mapping[str, pa.DataType]:
        """State of each key: columns of these types, which may be null; kept until all are."""
        return {}

    def open(self, context: RuntimeContext) -> None:
        """Get ready, once in a Python worker, before the first batch."""

    @abstractmethod
    def process_batch(self, batch: RowsBatch) -> VectorResult | None:
        """Take rows; None is a `VectorResult` of nothing."""

    def on_timers(self, batch: TimersBatch) -> VectorResult | None:
        """Take timers that are due; those set here that are due too come in another call."""
        raise NotImplementedError(f"{type(self).__name__} sets timers, and has no on_timers")


@dataclass(frozen=True)
class VectorProcess(UserProcess):
    """A `VectorProcessFunction`, and the columns that it sees.

    Parameters
    ----------
    function : VectorProcessFunction
    output : pyarrow.Schema
    seen : tuple of str
        The columns that it sees.
    shown : tuple of str
        What it calls them.
    """

    function: VectorProcessFunction
    seen: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    kind = VectorProcessFunction
    in_batches = True

    def _check_state(self) -> None:
        check_state_types(self.function.state, self.name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it sees."""
        return self.seen

    @property
    def order_free(self) -> bool:
        """What the function says."""
        return self.function.order_free

    def rows(self, batch: pa.Table) -> pa.Table:
        """Return what the function sees of rows."""
        names = zip(self.shown, self.seen, strict=True)
        return pa.table({shown: batch.column(seen) for shown, seen in names})

    def checked(self, found: Any, count: int) -> CheckedResult:
        """Return what the function gave for ``count`` keys.

        Raises
        ------
        InvalidFunctionError
            If that is not what was declared.
        """
        return checked_result(found, count, self.output, self.function, self.name)
