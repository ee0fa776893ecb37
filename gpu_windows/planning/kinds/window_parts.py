"""Parts of a query over windows, and facts about them: bounds, time, firings, order of rows."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_windows.functions.base import WindowFunction
from gpu_windows.planning.kinds.grouping import GroupingSets
from gpu_windows.planning.query import Query
from gpu_windows.planning.validation import is_user_code
from gpu_windows.rules import TICKS, Grid, Units, sliding_grid
from gpu_windows.vocabulary.evictors import Evictor
from gpu_windows.vocabulary.gap_filling import GapFilling
from gpu_windows.vocabulary.triggers import EventTimeTrigger, PurgingTrigger, Trigger
from gpu_windows.vocabulary.windows import (
    GlobalWindows,
    MergingWindowAssigner,
    SlicedAssigner,
    WindowAssigner,
)
from gpu_windows.vocabulary.windows.row_checks import DurationCheck


@dataclass(frozen=True, kw_only=True)
class WindowParts(Query):
    """The parts of a `WindowQuery`. Other parameters: see `Query`.

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
        """Whether a row without a time is rejected; else it has the first of all times.

        A continuous trigger counts its intervals from the time of a row: from the first of all
        times on it would fire without end.
        """
        return self.assigner.is_event_time or self.trigger.fires_by_intervals

    @property
    def time_dependent_part(self) -> str:
        """The assigner or the trigger."""
        part = self.assigner if self.assigner.is_event_time else self.trigger
        return part.describe()

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
        """Whether the rows of a window are ordered by time instead of arrival.

        Flink does so for global windows that fire at the end of the input.
        """
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
        """Whether rows are buffered until the end of their windows, which fire then, and once.

        Before, such windows do nothing but merge.
        """
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
        parts: list[object] = [self.assigner, *self.trigger.walk()]
        if self.evictor is not None:
            parts.append(self.evictor)
        return any(is_user_code(part) for part in parts)

    @property
    def is_always_ordered(self) -> bool:
        """Whether rows are always put in order of arrival: they are."""
        return True

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return descriptions of the parts whose result depends on the order of arrival.

        ``bounded``: whether the input is bounded, so that no row is late.
        """
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
