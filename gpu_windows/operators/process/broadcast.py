"""Broadcast process functions, called with rows of a keyed and of a broadcast stream.

Every shard gets all broadcast rows. Only one shard emits the results of a broadcast row; the row is
marked as a copy in all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.errors import InvalidFunctionError, StateError
from gpu_windows.functions.broadcast import KeyedBroadcastProcess
from gpu_windows.functions.checked_results import as_rows
from gpu_windows.functions.failures import describe_row
from gpu_windows.functions.two_inputs import COPY, SIDE
from gpu_windows.operators.base import Emission
from gpu_windows.operators.counters import Counters, Rejected
from gpu_windows.operators.keyed.stored import StoredKeyedState
from gpu_windows.operators.process.broadcast_state import (
    BROADCAST,
    BroadcastHandles,
    BroadcastState,
)
from gpu_windows.operators.process.context import Context
from gpu_windows.operators.process.keyed_state import KeyedState
from gpu_windows.operators.process.open_function import OpenedFunction
from gpu_windows.operators.process.operator import ProcessOperator
from gpu_windows.operators.process.output import ELEMENT, ProcessOutput
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.kinds.process import ProcessPlan, ProcessQuery


class OpenedBroadcastFunction(OpenedFunction):
    """An opened function, with handles of keyed and of broadcast state.

    Attributes
    ----------
    broadcast : BroadcastHandles
    """

    def __init__(self, query: ProcessQuery) -> None:
        assert isinstance(query.process, KeyedBroadcastProcess)
        self.broadcast = BroadcastHandles(query.process.broadcast_state, query.process.name)
        super().__init__(query)

    def close(self) -> None:
        """Close the function; its handles then read empty state."""
        self.broadcast.unbind()
        super().close()


class BroadcastOperator(ProcessOperator):
    """Calls a user function with rows of both sides and due timers.

    Parameters
    ----------
    plan : ProcessPlan
    trace : bool
        Whether results carry `gpu_windows.operators.results.TRACE`.

    Notes
    -----
    Source: org.apache.flink.streaming.api.operators.co.CoBroadcastWithKeyedOperator.
    """

    _opens: ClassVar[type[OpenedFunction]] = OpenedBroadcastFunction

    def __init__(self, plan: ProcessPlan, *, trace: bool = False) -> None:
        super().__init__(plan, trace=trace)
        function = self._function
        assert isinstance(function, OpenedBroadcastFunction)
        assert isinstance(function.process, KeyedBroadcastProcess)
        self._process, self._handles = function.process, function.broadcast
        self._broadcast = BroadcastState(self._process.broadcast_state)
        self._context.broadcast_state = self._handles.read_only
        self._aside = _BroadcastSide(
            self._process.name, self._keyed, self._output, self._handles.writable
        )
        self._no_state = dict.fromkeys(function.cells, _NoCurrentKey(self._process.name))

    def process(self, batch: pa.Table) -> Iterator[Emission]:
        """Process rows of both sides in order of arrival; see `Operator.process`. To be drained."""
        if self._plan.query.needs_time:  # only the original goes to the late output
            no_time = pc.is_null(batch.column(self._plan.query.time))
            batch = batch.filter(pc.invert(pc.and_(batch.column(COPY), no_time)))
        yield from super().process(batch)

    def state_size(self) -> dict[str, int]:
        """Return the number of entries of each kind, including broadcast state."""
        return super().state_size() | {BROADCAST: len(self._broadcast)}

    def _restore_state(self, log: StateLog) -> StoredKeyedState:
        stored = super()._restore_state(log)
        self._broadcast.restore(log)
        return stored

    def _save(self, stored: StoredKeyedState) -> None:
        self._broadcast.save()
        super()._save(stored)

    def _count_rows(self, batch: pa.Table, rejected: Rejected) -> Counters:
        """Count rows without copies."""
        counted = super()._count_rows(batch, rejected)
        return replace(counted, rows=counted.rows - pc.sum(batch.column(COPY), min_count=0).as_py())

    def _process_rows(self, batch: pa.Table) -> Iterator[Emission]:
        of_keys = batch.column(SIDE).to_numpy()
        edges = np.flatnonzero(np.diff(of_keys)) + 1
        for begin, end in pairwise([0, *edges.tolist(), len(batch)]):
            some = batch.slice(begin, end - begin)
            if len(some) and of_keys[begin]:
                yield from super()._process_rows(some)
            else:
                yield from self._broadcast_rows(some)
        yield from self._output.rest()

    def _broadcast_rows(self, batch: pa.Table) -> Iterator[Emission]:
        output, context = self._output, self._aside
        times = batch.column(self._plan.query.time).cast(pa.int64()).to_pylist()
        copies = batch.column(COPY).to_pylist()
        no_key = (None,) * len(self._plan.query.keys)
        handled = self._process.broadcast_rows(batch)
        self._unbind_state()
        for context.timestamp, context.is_copy, (handler, row) in zip(
            times, copies, handled, strict=True
        ):
            output.origin = no_key, context.timestamp, handler, ELEMENT
            try:
                for given in as_rows(handler(row, context)):
                    context.emit(given)
            except StateError:
                raise
            except Exception as error:
                time = context.timestamp if self._plan.query.needs_time else None
                place = describe_row(row, time)
                raise self._failure(error, handler, place) from error
            if output.is_full:
                yield output.take()
                self._unbind_state()
        self._bind_state()

    def _bind_state(self) -> None:
        super()._bind_state()
        self._handles.bind(self._broadcast)

    def _unbind_state(self) -> None:
        """Unset the current key, also for state handles that a function got in `open`."""
        self._function.bind(self._no_state, self._keyed.processing_time)
        self._handles.bind(self._broadcast)


#: Further members of a context of the keyed side.
_OF_KEYS = frozenset(
    ("key", "state", "after", "register_event_time_timer", "delete_event_time_timer",
     "register_processing_time_timer", "delete_processing_time_timer")
)  # fmt: skip


class _BroadcastSide(Context):
    """A `gpu_windows.functions.broadcast.BroadcastContext`.

    Attributes
    ----------
    is_copy : bool
        Whether the current row is a copy: another shard emits its results.
    """

    def __init__(
        self,
        owner: str,
        keyed: KeyedState,
        output: ProcessOutput,
        writable: Callable[[str], Any],
    ) -> None:
        super().__init__(owner, keyed, output)
        self.broadcast_state = writable
        self.is_copy = False

    def __getattr__(self, name: str) -> NoReturn:
        if name in _OF_KEYS:
            raise _no_key(self._owner, name)
        raise AttributeError(name)

    def emit(self, row: Mapping[str, object]) -> None:
        """Add a result."""
        if not self.is_copy:
            self._output.emit(self._output.origin, row)

    def output(self, tag: str, row: Mapping[str, object]) -> None:
        """Add a row to a side output."""
        if not self.is_copy:
            self._output.emit_aside(tag, row)

    def count(self, counter: str, by: int = 1) -> None:
        """Add to a counter of the user's."""
        if not self.is_copy:
            super().count(counter, by)


class _NoCurrentKey(dict[Any, Any]):
    """State while there is no current key: every access is an error."""

    def __init__(self, owner: str) -> None:
        super().__init__()
        self._owner = owner

    def _refuse(self, *_: object) -> NoReturn:
        raise _no_key(self._owner, "state")

    get = pop = setdefault = __getitem__ = __setitem__ = __delitem__ = _refuse


def _no_key(owner: str, asked: str) -> InvalidFunctionError:
    rule = f"{owner}.process_broadcast_element has no current key: no keyed state and no timers"
    return InvalidFunctionError(rule, value=asked)
