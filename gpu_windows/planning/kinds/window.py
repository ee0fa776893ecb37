"""A query over windows."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from gpu_windows.errors import InvalidDurationError, QueryError, UnsupportedQueryError
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.functions.side_outputs import check_side_outputs
from gpu_windows.functions.top import Top
from gpu_windows.planning.kinds.firing_columns import (
    CHANGE,
    FIRING,
    NEEDS_CHANGES,
    NO_TIME_OF_CHANGES,
    NO_TIME_OF_GLOBAL,
    as_changes,
)
from gpu_windows.planning.kinds.grouping import GROUPING_ID
from gpu_windows.planning.kinds.window_parts import WindowParts
from gpu_windows.planning.result_times import WINDOW_TIME, ResultTimes
from gpu_windows.planning.validation import check_distinct, check_parts
from gpu_windows.vocabulary.options import show_ticks
from gpu_windows.vocabulary.rich_functions import Openable, RichFunction, opens

#: Names of the window's bounds in every result.
WINDOW_START, WINDOW_END = "window_start", "window_end"


@dataclass(frozen=True, kw_only=True)
class WindowQuery(WindowParts):
    """The rows of every key in windows. Parameters: see `WindowParts`."""

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
        return tuple(part for part in (*self._with_sides, *self.trigger.walk()) if opens(part))

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

    @property
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
