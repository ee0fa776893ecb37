"""A query that gives rows to a user's function, with state and timers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.functions.keyed_process import UserProcess
from gpu_windows.planning.own_columns import RESULT_TIME, ResultTimes
from gpu_windows.planning.plan import (
    BATCHES_PER_SCAN,
    Execution,
    QueryPlan,
    Strategy,
    build_plan,
    check_partials_option,
)
from gpu_windows.planning.query import Query


@dataclass(frozen=True, kw_only=True)
class ProcessQuery(Query):
    """Rows of one input, or of two united ones, for a process function of the user's.

    It has no windows: its results come with its rows and timers. Other parameters: see `Query`.

    Parameters
    ----------
    process : UserProcess
    gives_times : bool
        Whether results have a column with the time of their row, or of their timer.
    """

    process: UserProcess
    gives_times: bool = False
    has_windows = False
    #: The function may read it.
    reads_processing_time = True
    #: State stays.
    ends_with_time = False

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Columns that the function is given."""
        return tuple(dict.fromkeys(self.process.columns))

    @property
    def carried_columns(self) -> frozenset[str]:
        """All columns: the function is given them as they are."""
        return frozenset(self.used_columns)

    @property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """The columns that the function declares."""
        return tuple(self.process.output)

    @property
    def bound_fields(self) -> tuple[pa.Field, ...]:
        """The time of a result, if results have it."""
        return (pa.field(RESULT_TIME, pa.int64()),) if self.gives_times else ()

    @property
    def results_in_time(self) -> ResultTimes:
        """The time of the row or timer of a result, or a time column of its own."""
        if self.process.result_time is not None:
            return ResultTimes(self.process.result_time)
        if self.process.in_batches:
            rule = (
                "a function of many rows at once does not say which row a result belongs to: a "
                "later stage needs a KeyedProcessFunction"
            )
            raise UnsupportedQueryError(rule, value=self.process.name)
        if not self.needs_time:
            rule = "results need a time: call event_time(column, watermarks) before key_by"
            raise UnsupportedQueryError(rule, value=self.process.name)
        return ResultTimes(RESULT_TIME)

    @property
    def declared_sides(self) -> Mapping[str, pa.Schema]:
        """Side outputs of the function."""
        return self.process.function.side_outputs

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """The times that the function accepts."""
        return self.process.usable_ticks

    @property
    def needs_time(self) -> bool:
        """Whether a row needs a time: if the input has one, and the function reads it."""
        return self.has_time and self.process.is_timed

    @property
    def broadcasts(self) -> bool:
        """Whether the function has a broadcast side."""
        return self.process.broadcasts

    @property
    def time_dependent_part(self) -> str:
        """The function."""
        return self.process.name

    @property
    def uses_processing_time(self) -> bool:
        """Whether the function sets timers of processing time."""
        return bool(self.process.function.uses_processing_time)

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return the function, unless it declares ``order_free``."""
        del bounded
        return () if self.process.order_free else ("the process function",)

    def describe(self) -> Mapping[str, str]:
        """Return a description of each part, by its name."""
        function = self.process.function
        parts = {"function": self.process.describe()}
        if function.state:
            parts["state"] = ", ".join(function.state)
        return {
            **parts,
            **self.sides_description,
            "time": self.time_description,
            "key": ", ".join(self.display_keys) or "none",
        }

    @property
    def parts(self) -> Mapping[str, object]:
        """The function."""
        return {"process": self.process}


#: How rows are given to a function of the user's.
ProcessPlan: TypeAlias = QueryPlan[ProcessQuery]

_TO_FUNCTION = "row at a time, in Python: rows and timers go to the function in order"
_TO_VECTOR_FUNCTION = "rows and timers go to the function as columns, those of many keys at once"
_BROADCAST = (
    "the broadcast rows of a micro-batch go to all shards, before its other rows; each shard has "
    "broadcast state of its own"
)


def plan_process(query: ProcessQuery, execution: Execution) -> ProcessPlan:
    """Plan calls of a function; one that takes many rows at once is given more of them."""
    in_batches = query.process.in_batches
    why = _TO_VECTOR_FUNCTION if in_batches else _TO_FUNCTION
    check_partials_option(query, why, execution)
    if query.options.device == "cuda":
        rule = f"device='cuda' is not possible: no kernel of a device runs it ({why})"
        raise UnsupportedQueryError(rule, value=query.process.describe())
    reasons = [why, *([_BROADCAST] if query.broadcasts else ())]
    plan = build_plan(query, Strategy.PROCESS, reasons, execution)
    return replace(plan, batches_per_call=BATCHES_PER_SCAN) if in_batches else plan
