"""A query over windows."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from gpu_windows.errors import InvalidDurationError, QueryError, UnsupportedQueryError
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.functions.side_outputs import check_side_outputs
from gpu_windows.functions.top import Top
from gpu_windows.functions.window import WindowFunction
from gpu_windows.planning.kinds.grouping import GROUPING_ID, GroupingSets
from gpu_windows.planning.own_columns import (
    CHANGE,
    FIRING,
    NEEDS_CHANGES,
    NO_TIME_OF_CHANGES,
    NO_TIME_OF_GLOBAL,
    WINDOW_TIME,
    ResultTimes,
    as_changes,
)
from gpu_windows.planning.query import Query
from gpu_windows.planning.validation import check_distinct, check_parts, is_user_code
from gpu_windows.rules import TICKS, Grid, Units, sliding_grid
from gpu_windows.vocabulary.evictors import Evictor
from gpu_windows.vocabulary.gap_filling import GapFilling
from gpu_windows.vocabulary.options import show_ticks
from gpu_windows.vocabulary.rich_functions import Openable, RichFunction, opens
from gpu_windows.vocabulary.triggers import EventTimeTrigger, PurgingTrigger, Trigger
from gpu_windows.vocabulary.windows import (
    GlobalWindows,
    MergingWindowAssigner,
    SlicedAssigner,
    WindowAssigner,
)
from gpu_windows.vocabulary.windows.base import DurationCheck

#: Names of the window's bounds in every result.
WINDOW_START, WINDOW_END = "window_start", "window_end"


@dataclass(frozen=True, kw_only=True)
class WindowQuery(Query):
    """The rows of every key in windows. Other parameters: see `Query`.

    Parameters
    ----------
    assigner : WindowAssigner
    function : WindowFunction
    trigger : Trigger
    evictor : Evictor, optional
    allowed_lateness : int
        In ticks.
    firing_columns : bool
        Whether results carry `FIRING`.
    changes : bool
        Whether results carry `FIRING` and `CHANGE`, and windows that merged are taken back.
    changed_only : bool
        Whether windows fire only if a row is in their last slide.
    grouping : GroupingSets, optional
        Which of the keys windows are of; default: of all.
    gaps : GapFilling, optional
        How windows without rows are filled; default: they have no results.
    """

    assigner: WindowAssigner
    function: WindowFunction
    trigger: Trigger = EventTimeTrigger()  # noqa: RUF009 - frozen
    evictor: Evictor | None = None
    allowed_lateness: int = 0
    firing_columns: bool = False
    changes: bool = False
    changed_only: bool = False
    grouping: GroupingSets | None = None
    gaps: GapFilling | None = None
    is_always_ordered = True

    def _check_own(self) -> None:
        if self.allowed_lateness < 0:
            rule = "allowed lateness must not be negative"
            raise InvalidDurationError(rule, value=show_ticks(self.allowed_lateness))
        tags: list[str] = []
        for part in self._with_sides:
            check_side_outputs(part.side_outputs, type(part).__name__)
            tags += part.side_outputs
        check_distinct(tags, "side outputs of function and evictor must have different tags")
        if not self.result_names:
            rule = "windows need at least one result column, such as aggregate(n=gw.count())"
            raise QueryError(rule)

    def _check_parts(self) -> None:
        check_parts(self.schema, self.assigner, self.trigger, self.evictor, self.function)

    @property
    def _with_sides(self) -> tuple[RichFunction, ...]:
        """The user's function and the evictor, which may have side outputs."""
        parts = (self.function.user_function, self.evictor)
        return tuple(part for part in parts if part is not None)

    def without(self, names: Container[str]) -> WindowQuery | None:
        """Return the query without some results; None if no result is left."""
        if self.gaps is not None and any(name in names for name in self.gaps.carried_results):
            return None
        rest = self.function.without(names)
        return replace(self, function=rest) if rest and rest.output_fields(self.schema) else None

    def with_rows_since(self, since: Mapping[str, int]) -> WindowQuery:
        """Return the query whose aggregates of some names cover only rows since a start."""
        return replace(self, function=self.function.with_rows_since(since))

    @property
    def pair_process(self) -> PairProcess | None:
        """The user's function that the pairs of a window join go to, if there is one."""
        return self.function.pair_process

    @property
    def without_process(self) -> WindowQuery:
        """The join without the user's function."""
        return replace(self, function=self.function.without_process)

    @property
    def rich_parts(self) -> tuple[Openable, ...]:
        """The function, the evictor and the triggers, if they are to be opened."""
        return tuple(p for p in (*self._with_sides, *self.trigger.walk()) if opens(p))

    @property
    def declared_sides(self) -> Mapping[str, pa.Schema]:
        """Side outputs of the function, then those of the evictor."""
        return {tag: side for part in self._with_sides for tag, side in part.side_outputs.items()}

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Columns that function, assigner, trigger and evictor read, each once."""
        return tuple(dict.fromkeys((*self.function.read_columns, *self.part_columns)))

    @property
    def carried_columns(self) -> frozenset[str]:
        """Columns that the function passes on without comparing their values."""
        return frozenset(self.function.read_columns) - {*self.function.compared_columns}

    @property
    def part_columns(self) -> tuple[str, ...]:
        """Columns that assigner, trigger and evictor read, each once."""
        evictor = () if self.evictor is None else self.evictor.columns
        names = (*self.assigner.columns, *self.trigger.columns, *evictor)
        return tuple(dict.fromkeys(names))

    @cached_property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """Arrow fields of the result columns after the keys and the window's bounds."""
        fields = self.function.output_fields(self.schema)
        grouping = () if self.grouping is None else (GROUPING_ID,)
        if self.changes:
            return as_changes(fields)
        return (*fields, *grouping, *(FIRING if self.firing_columns else ()))

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        """The keys; null where a grouping leaves them out."""
        fields = super().key_fields
        if self.grouping is None:
            return fields
        return tuple(field.with_nullable(True) for field in fields)

    @property
    def shard_keys(self) -> tuple[str, ...]:
        """The keys that all groupings have."""
        if self.grouping is None:
            return self.keys
        return tuple(self.keys[i] for i in self.grouping.shared_keys)

    @property
    def bound_fields(self) -> tuple[pa.Field, ...]:
        """Start and end; null for windows without bounds."""
        nullable = not self.assigner.has_bounds
        names = (WINDOW_START, WINDOW_END)
        return tuple(pa.field(name, pa.int64(), nullable=nullable) for name in names)

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The column with the rank of a row in its window, or with the id of its grouping."""
        if self.grouping is not None:
            return (GROUPING_ID.name,)
        return (self.function.number,) if isinstance(self.function, Top) else ()

    @property
    def results_in_time(self) -> ResultTimes:
        """The last tick of the window of a result."""
        if self.changes:
            raise UnsupportedQueryError(NO_TIME_OF_CHANGES, value=CHANGE.name)
        if self.is_global:
            raise UnsupportedQueryError(NO_TIME_OF_GLOBAL, value=self.assigner.describe())
        own = self.function.result_time
        if own is not None:
            return ResultTimes(own)
        behind = 0 if self.gaps is None else self.gaps.delay(self.assigner.longest_slide)
        return ResultTimes(WINDOW_TIME, end=WINDOW_END, behind=behind)

    @property
    def is_upserted(self) -> bool:
        """Whether firing columns or changes identify the row that each result replaces."""
        return self.changes or (self.firing_columns and not self.grows)

    @property
    def change_column(self) -> str | None:
        """`CHANGE`, if results are changes."""
        return CHANGE.name if self.changes else None

    @property
    def is_unique_per_firing(self) -> bool:
        """Whether the function gives one row for a window, or numbers several."""
        return self.changes or self.function.has_one_result or isinstance(self.function, Top)

    @property
    def upsert_message(self) -> str:
        """Error message for upsert of results that are not `is_upserted`."""
        if self.grows:
            return NEEDS_CHANGES
        return "upsert needs the column firing: ask for it by with_firing_columns()"

    def describe(self) -> Mapping[str, str]:
        """Return a description of each part, by its name."""
        parts = {
            "window": self.assigner.describe(),
            "time": self.time_description,
            "key": ", ".join(self.display_keys) or "none: all rows together",
            "trigger": self.trigger.describe(),
            "function": self.function.describe(),
        }
        if self.evictor is not None:
            parts["evictor"] = self.evictor.describe()
        if self.allowed_lateness:
            parts["lateness"] = show_ticks(self.allowed_lateness)
        if self.ranking is not None:
            parts["ranking"] = self.ranking.describe()
        if self.grouping is not None:
            parts["groupings"] = self.grouping.describe(self.display_keys)
        if self.gaps is not None:
            parts["gaps"] = self.gaps.describe()
        if self.changes:
            parts["changes"] = "a column; rows of windows that merged are deleted"
        if self.changed_only:
            parts["fires"] = "for keys with a row in the last slide"
        return {**parts, **self.sides_description}

    @property
    def parts(self) -> Mapping[str, object]:
        """Assigner, trigger, evictor, function and the options of firings."""
        return {
            "window": self.assigner,
            "trigger": self.trigger,
            "evictor": self.evictor,
            "function": self.function,
            "lateness": self.allowed_lateness,
            "firing columns": self.firing_columns,
            **({"changes": True} if self.changes else {}),
            **({} if self.ranking is None else {"ranking": self.ranking}),
            **({"changed only": True} if self.changed_only else {}),
            **({} if self.grouping is None else {"grouping sets": self.grouping}),
            **({} if self.gaps is None else {"gaps": self.gaps.facts}),
        }

    # ---- bounds, time, firings, order of rows

    @property
    def units(self) -> Units:
        """Units that the slices of windows count."""
        return self.assigner.units if isinstance(self.assigner, SlicedAssigner) else TICKS

    @property
    def last_slides(self) -> Grid:
        """The slides of sliding windows, as windows: a window ends with one of these."""
        assert isinstance(self.assigner, SlicedAssigner), "only sliding windows have slides"
        grid = self.assigner.grid()
        return sliding_grid(grid.slide, grid.slide, grid.offset)

    @property
    def merges(self) -> bool:
        """Whether windows may be merged."""
        return isinstance(self.assigner, MergingWindowAssigner)

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last time of a row with which all that is computed of it fits int64."""
        return self.assigner.usable_ticks

    @property
    def row_checks(self) -> tuple[DurationCheck, ...]:
        """Conditions of the assigner on values of a row."""
        return self.assigner.row_checks

    @property
    def is_global(self) -> bool:
        """Whether a key has one window without bounds."""
        return isinstance(self.assigner, GlobalWindows)

    @property
    def uses_processing_time(self) -> bool:
        """Whether windows end in processing time or a trigger waits for it."""
        return self.assigner.in_processing_time or self.trigger.uses_processing_time

    @property
    def needs_time(self) -> bool:
        """Whether a row without a time is rejected; else it has the first of all times."""
        # From the first of all times on, a continuous trigger would fire without end.
        return self.assigner.is_event_time or self.trigger.fires_by_intervals

    @property
    def time_dependent_part(self) -> str:
        """The assigner or the trigger."""
        return (self.assigner if self.assigner.is_event_time else self.trigger).describe()

    @property
    def grows(self) -> bool:
        """Whether a window that has fired may become part of another one, with other bounds."""
        return self.merges and not (self.fires_once and self.allowed_lateness == 0)

    @property
    def ends_with_time(self) -> bool:
        """Whether all state of a window may be dropped once event time has ended."""
        return self.assigner.is_event_time or self.trigger.ends_with_input

    @property
    def fires_without_end(self) -> bool:
        """Whether the trigger would fire for ever at the end of time, which a bounded input has."""
        return self.is_global and self.trigger.fires_by_intervals

    @property
    def rows_in_time_order(self) -> bool:
        """Whether rows are ordered by time, not arrival: in global windows that fire at the end."""
        return isinstance(self.assigner, GlobalWindows) and self.assigner.at_end

    @property
    def keeps_rows(self) -> bool:
        """Whether the rows of a window are needed when it fires, not only partials."""
        evicted = self.evictor is not None or self.rows_in_time_order
        return evicted or self.function.keeps_rows

    @property
    def why_rows(self) -> str | None:
        """Reason why kernels need the rows of a window; None if partials are enough."""
        if self.evictor is not None:
            return f"the evictor ({self.evictor.describe()}) needs the rows"
        if self.rows_in_time_order:
            return "the rows are ordered by time"
        if self.function.keeps_rows:
            return self.function.why_rows
        bound = self.function.built_in
        picks = [each.describe() for each in bound if each.definition.order_dependent]
        if self.merges and picks:
            return f"{', '.join(picks)}: of sessions that a row joins, Flink puts one's rows first"
        return None

    @property
    def buffers_until_end(self) -> bool:
        """Whether rows are buffered until the end of their windows, which only merge before."""
        if not self.fires_once or self.allowed_lateness:
            return False
        if self.merges:  # the order of merging shows where the function picks rows
            return self.keeps_rows or any(self.function.ordered_parts)
        return isinstance(self.assigner, SlicedAssigner) and self.keeps_rows

    @property
    def fires_once(self) -> bool:
        """Whether windows of event time fire at their end, and after that only for late rows."""
        trigger = self.trigger
        while isinstance(trigger, PurgingTrigger):
            trigger = trigger.inner
        return isinstance(trigger, EventTimeTrigger) and self.assigner.is_event_time

    @property
    def has_user_parts(self) -> bool:
        """Whether assigner, trigger or evictor is user code."""
        parts = (self.assigner, *self.trigger.walk(), self.evictor)
        return any(part is not None and is_user_code(part) for part in parts)

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return descriptions of the parts whose result depends on the order of arrival."""
        parts = [*self.function.ordered_parts]
        at_end = isinstance(self.trigger, EventTimeTrigger) and self.assigner.is_event_time
        if not at_end:  # a continuous trigger begins with the time of the first row
            parts.append(f"the trigger ({self.trigger.describe()})")
        if self.evictor is not None:
            parts.append(f"the evictor ({self.evictor.describe()})")
        if self.merges and is_user_code(self.assigner):
            parts.append(f"what is merged ({self.assigner.describe()})")
        if not bounded and self.assigner.is_event_time:
            if self.merges:  # a late row that finds a session open makes it reach further
                parts.append("which rows are late for their session")
            if self.allowed_lateness > 0:
                parts.append("the firings of late rows")
        return tuple(parts)
