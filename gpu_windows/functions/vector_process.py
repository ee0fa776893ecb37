"""Users' functions over the rows and timers of many keys at once, as columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.functions.declarations import ProcessDeclarations, check_state_types
from gpu_windows.functions.keyed_process import UserProcess
from gpu_windows.functions.vector_results import CheckedResult, VectorResult, checked_result
from gpu_windows.user_values import as_read_only, make_read_only
from gpu_windows.vocabulary.rich_functions import RuntimeContext, declaration

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class KeysBatch:
    """A batch of keys with their state. Times are ticks (microseconds).

    Arrays are read only: writing into one raises `ValueError`. Copy those that you want to change.

    Parameters
    ----------
    keys : pyarrow.Table
        n rows: the key columns.
    state : pyarrow.Table
        n rows: the columns that the function declares, null where nothing is stored. A table
        without columns has no length: take that of the batch.
    offsets : int64[n + 1]
        The rows or timers of key i are ``[offsets[i]:offsets[i + 1]]``; each key has at least one.
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
        make_read_only(self)

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
        The selected columns, one key after the other, rows of a key in order of arrival.
    timestamps : int64[rows], optional
        Their event times; None if rows have no event time.

    Examples
    --------
    >>> class Sizes(gw.functions.VectorProcessFunction):
    ...     def process_batch(self, batch: gw.typing.RowsBatch):
    ...         return gw.functions.VectorResult(rows=pa.table({"rows": batch.counts}))
    >>> users = gw.stream(pa.table({"user": ["ann", "bob", "ann"]})).key_by("user")
    >>> users.process(Sizes(), output="rows BIGINT").to_pylist()
    [{'user': 'ann', 'rows': 2}, {'user': 'bob', 'rows': 1}]
    """

    rows: pa.Table
    timestamps: Ints | None


@dataclass(frozen=True)
class TimersBatch(KeysBatch):
    """The due timers of some keys. Other parameters: see `KeysBatch`.

    Parameters
    ----------
    times : int64[timers]
        One key after the other, timers of a key in order of time. They are no longer set.
    time_domain : {"event_time", "processing_time"}

    Examples
    --------
    >>> class Later(gw.functions.VectorProcessFunction):
    ...     def process_batch(self, batch):
    ...         timers = (batch.places, batch.timestamps + 1_000_000)
    ...         return gw.functions.VectorResult(event_timers=timers)
    ...
    ...     def on_timers(self, batch: gw.typing.TimersBatch):
    ...         rows = pa.table({"at": batch.times}), batch.places
    ...         return gw.functions.VectorResult(rows=rows)
    >>> clicks = gw.stream(pa.table({"user": ["ann"], "ts": [5]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> timed.key_by("user").process(Later(), output="at BIGINT").to_pylist()
    [{'user': 'ann', 'at': 1000005}]
    """

    times: Ints
    time_domain: Literal["event_time", "processing_time"]


class VectorProcessFunction(ProcessDeclarations, ABC):
    """Processes the rows of many keys at once, as Arrow, with state of each key and timers.

    It is called once for the rows that arrive together and once for the timers that are due
    together, so Python's own speed does not matter. The keys of a batch come in arbitrary order.
    Results must not depend on how rows are cut into batches, which may have one row.

    Examples
    --------
    >>> import numpy as np
    >>> class Totals(gw.functions.VectorProcessFunction):
    ...     state = {"total": pa.int64()}
    ...
    ...     def process_batch(self, batch):
    ...         before = batch.state["total"].fill_null(0).to_numpy()
    ...         sums = np.add.reduceat(batch.rows["amount"].to_numpy(), batch.offsets[:-1])
    ...         total = pa.table({"total": before + sums})
    ...         return gw.functions.VectorResult(rows=total, state=total)
    >>> sales = gw.stream(pa.table({"shop": ["a", "a", "b"], "amount": [1, 4, 9]})).key_by("shop")
    >>> sales.process(Totals(), ["amount"], output="total BIGINT").to_pylist()
    [{'shop': 'a', 'total': 5}, {'shop': 'b', 'total': 9}]
    """

    #: Whether results do not depend on the order of rows of a key, which spares a sort on Spark.
    order_free: ClassVar[bool] = False

    @declaration
    def state(self) -> Mapping[str, pa.DataType]:
        """State of each key: nullable columns of these types; removed once all are null."""
        return {}

    def open(self, context: RuntimeContext) -> None:
        """Get ready, once in a Python worker, before the first batch."""

    @abstractmethod
    def process_batch(self, batch: RowsBatch) -> VectorResult | None:
        """Process rows; None is an empty `VectorResult`."""

    def on_timers(self, batch: TimersBatch) -> VectorResult | None:
        """Handle due timers; those set here that are due, too, come in another call."""
        raise NotImplementedError(f"{type(self).__name__} sets timers, and has no on_timers")


@dataclass(frozen=True)
class VectorProcess(UserProcess):
    """A `VectorProcessFunction`, and the columns that it is given.

    Parameters
    ----------
    function : VectorProcessFunction
    output : pyarrow.Schema
    seen : tuple of str
        The columns that it is given.
    display_names : tuple of str
        The names by which it is given them.
    """

    function: VectorProcessFunction
    seen: tuple[str, ...] = ()
    display_names: tuple[str, ...] = ()
    kind = VectorProcessFunction
    in_batches = True

    def _check_state(self) -> None:
        check_state_types(self.function.state, self.name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is given."""
        return self.seen

    @property
    def order_free(self) -> bool:
        """Whether the function declares it."""
        return self.function.order_free

    def rows(self, batch: pa.Table) -> pa.Table:
        """Return the columns that the function is given, with its names."""
        names = zip(self.display_names, self.seen, strict=True)
        return pa.table({name: batch.column(column) for name, column in names})

    def check_result(self, returned: Any, count: int) -> CheckedResult:
        """Return the checked result of the function for ``count`` keys.

        Raises
        ------
        InvalidFunctionError
            If it is not as declared.
        """
        return checked_result(returned, count, self.output, self.function, self.name)
