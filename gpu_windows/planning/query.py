"""The base of all queries: a frozen, validated value that says what to compute of which rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar
from uuid import uuid4

import pyarrow as pa

from gpu_windows.errors import QueryError, UnsupportedQueryError
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.functions.top import Ranking
from gpu_windows.functions.two_inputs import MARKS
from gpu_windows.planning.own_columns import CARRIER, NO_KEY, NO_TIME, OWN, SPREAD, ResultTimes
from gpu_windows.planning.validation import (
    DISTINCT,
    check_collations,
    check_distinct,
    check_key,
    check_reserved,
    check_time,
    require_column,
)
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.rich_functions import Openable
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from gpu_windows.vocabulary.windows.base import DurationCheck

_TAGS = "tags of side outputs, which name folders, must differ in more than upper and lower case"


@dataclass(frozen=True, kw_only=True)
class Query(ABC):
    """A computation over the rows of each key of one input.

    Parameters
    ----------
    schema : pyarrow.Schema
        Columns of the input. The time column is int64 ticks or a timestamp with a time zone.
    time : str
        The event time column.
    watermarks : WatermarkStrategy
    keys : tuple of str
        Key columns, in order.
    arrival_order : tuple of str
        Columns that give the order of arrival where a shuffle loses it.
    carried : tuple of str
        Columns that nothing reads, but that rejected and late rows have.
    options : Options
    display_names : mapping of str to str
        Internal name of an expression's column to the name that the user gave it.
    ranking : Ranking, optional
        Which keys of a window have results, by these; None: all.

    Raises
    ------
    QueryError
        A subclass names the rule, the value and the column.
    """

    schema: pa.Schema
    time: str
    watermarks: WatermarkStrategy
    keys: tuple[str, ...]
    arrival_order: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    options: Options = Options()  # noqa: RUF009 - frozen
    display_names: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    ranking: Ranking | None = None
    #: Error message for two result columns of one name.
    clash_message: ClassVar[str] = DISTINCT
    #: Error message for a query over results without `results_in_time`.
    no_time_message: ClassVar[str] = (
        "a later stage needs final results with an event time: these have none"
    )
    #: Whether rows are put in order of arrival even where no result depends on it.
    is_always_ordered: ClassVar[bool] = False
    #: Identifies this query in every process, so that its functions are opened once in each.
    token: str = field(init=False, repr=False, compare=False, default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        check_time(self.schema, self.time)
        if self.watermark_column is not None:
            check_time(self.schema, self.watermark_column, CARRIER)
        if not self.keys:
            raise QueryError("key_by needs at least one column; windows of all rows: window_all")
        if self.needs_time and not self.has_time:
            rule = "rows need a time: call event_time(column, watermarks)"
            raise QueryError(rule, value=self.time_dependent_part)
        for name in (*self.keys, *self.used_columns, *self.arrival_order):
            require_column(self.schema, name)
        for name in self.keys:
            check_key(name, self.schema.field(name).type)
        check_collations(self.compared_fields, self.display_name)
        self._check_own()
        self._check_names()
        self._check_parts()
        if self.pair_process is not None:
            _ = self.without_process  # which is checked, too

    def _check_names(self) -> None:
        """Refuse names of columns, and of side outputs, that clash in results."""
        check_reserved({*self.schema.names} - {*OWN})
        marks = {*MARKS} if self.pair_process is None else set()  # of pairs, for a function
        results = self.result_names
        check_reserved({*results} - (marks & {*self.schema.names}))
        keys = tuple(map(self.display_name, self.keys))
        names = (*keys, *self.window_columns, *map(self.display_name, results))
        check_distinct(names, self.clash_message)
        sides = self.declared_sides
        check_distinct(sides, _TAGS)
        for tag, side in sides.items():
            rule = f"keys and columns of the side output {tag!r} must have different names"
            check_distinct((*keys, *side.names), rule)
            check_reserved(side.names)

    def _check_own(self) -> None:  # noqa: B027 - most have none
        """Refuse parameters and results that this kind of query cannot have."""

    def _check_parts(self) -> None:  # noqa: B027 - most have none
        """Refuse parts that do not fit together."""

    @property
    def time_type(self) -> pa.DataType:
        """The type of event times, which bounds of windows have too."""
        return self.schema.field(self.time).type

    @property
    def window_types(self) -> dict[str, pa.DataType]:
        """The types of the result columns with bounds of windows."""
        return dict.fromkeys(self.window_columns, self.time_type)

    # ---- different for each kind of query

    @property
    @abstractmethod
    def used_columns(self) -> tuple[str, ...]:
        """Columns that are read in addition to time and keys, each once."""

    @property
    def carried_columns(self) -> frozenset[str]:
        """The `used_columns` whose values are passed on, never compared; by default none."""
        return frozenset()

    @property
    def compared_fields(self) -> tuple[pa.Field, ...]:
        """Fields whose values are compared: keys, orders, arguments, results that rank keys."""
        carried = self.carried_columns
        others = (name for name in self.used_columns if name not in carried)
        names = dict.fromkeys((*self.keys, *self.arrival_order, *others))
        return (*map(self.schema.field, names), *self._ranked_fields)

    @property
    def _ranked_fields(self) -> tuple[pa.Field, ...]:
        """Fields of the results by which keys of windows are ranked."""
        if self.ranking is None:
            return ()
        names = (*self.ranking.per, *(name for name, _ in self.ranking.by))
        return tuple(field for field in self.result_fields if field.name in names)

    @property
    @abstractmethod
    def result_fields(self) -> tuple[pa.Field, ...]:
        """Arrow fields of the result columns after the keys and the bounds of windows."""

    @property
    def bound_fields(self) -> tuple[pa.Field, ...]:
        """Arrow fields of the bounds of windows (int64 ticks); none if results have no windows."""
        return ()

    def in_ticks(self, names: Iterable[str]) -> pa.Schema:
        """Return the schema of input columns as state stores them: event time as int64 ticks."""
        fields = (
            pa.field(name, pa.int64()) if name == self.time else self.schema.field(name)
            for name in dict.fromkeys(names)
        )
        return pa.schema([field.with_nullable(True) for field in fields])

    @property
    @abstractmethod
    def usable_ticks(self) -> tuple[int, int]:
        """First and last event time of a row for which all computed times fit int64 ticks."""

    @property
    def row_checks(self) -> tuple[DurationCheck, ...]:
        """Conditions on values of a row other than its time; rows that break one are rejected."""
        return ()

    @property
    @abstractmethod
    def needs_time(self) -> bool:
        """Whether a row without a time is rejected; else it has the first of all times."""

    @property
    def time_dependent_part(self) -> str:
        """Description of the part that needs event time; by default of the first part."""
        return next(iter(self.describe().values()))

    def without(self, names: Container[str]) -> Query | None:
        """Return the query without some result columns; None if it cannot do without them."""
        del names
        return None

    def with_rows_since(self, since: Mapping[str, int]) -> Query:
        """Return the query whose results of some names cover only rows since a start.

        ``since``: their names to the numbers of starts, see `gpu_windows.planning.added_results`.
        """
        del since
        return self

    @property
    def uses_processing_time(self) -> bool:
        """Whether anything happens in processing time."""
        return False

    @property
    def reads_processing_time(self) -> bool:
        """Whether anything reads the current processing time."""
        return self.uses_processing_time

    @property
    def pair_process(self) -> PairProcess | None:
        """The user's function that the pairs of a join go to, if there is one."""
        return None

    @property
    def without_process(self) -> Query:
        """The same query with the pairs of a join as results, not those of a function of them."""
        return self

    @property
    def rich_parts(self) -> tuple[Openable, ...]:
        """User functions to open before the first call, other than process functions."""
        return ()

    @property
    def declared_sides(self) -> Mapping[str, pa.Schema]:
        """Columns of side outputs, as functions declare them, by tag."""
        return {}

    @property
    @abstractmethod
    def ends_with_time(self) -> bool:
        """Whether all state may be dropped once event time has ended."""

    @property
    def broadcasts(self) -> bool:
        """Whether the rows of one of the inputs go to every shard."""
        return False

    @property
    def is_upserted(self) -> bool:
        """Whether results identify the row that each replaces, as upsert needs."""
        return False

    @property
    def is_unique_per_firing(self) -> bool:
        """Whether keys, window and number identify a result within its firing."""
        return False

    @property
    def change_column(self) -> str | None:
        """The result column with the kind of change (insert, update, delete), if there is one."""
        return None

    @property
    def upsert_message(self) -> str:
        """Error message for upsert of results that are not `is_upserted`."""
        return "upsert keeps one result for each key and window: these results have no windows"

    @property
    def results_in_time(self) -> ResultTimes:
        """The event time of results, for a query over these.

        Raises
        ------
        UnsupportedQueryError
            If results have no event time, or are replaced later.
        """
        raise UnsupportedQueryError(self.no_time_message, value=type(self).__name__)

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return descriptions of the parts whose result depends on the order of arrival.

        By default none. ``bounded``: whether the input is bounded, so that no row is late.
        """
        del bounded
        return ()

    @abstractmethod
    def describe(self) -> Mapping[str, str]:
        """Return a description of each part, by its name."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, object]:
        """Parts that state depends on other than time, keys and columns, by name; or None."""

    # ---- the same for all kinds

    @property
    def side_outputs(self) -> Mapping[str, pa.Schema]:
        """Arrow schemas of the side outputs by tag: the keys, then the declared columns."""
        keys = [self.schema.field(name) for name in self.keys]
        return {tag: pa.schema([*keys, *side]) for tag, side in self.declared_sides.items()}

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        """The Arrow fields of the keys in results."""
        return tuple(self.schema.field(name) for name in self.keys)

    @property
    def passed_columns(self) -> Mapping[str, str]:
        """Results with the values of an input column, as they are, by name: the keys."""
        return {name: name for name in self.keys}

    @property
    def shard_keys(self) -> tuple[str, ...]:
        """The keys by whose values rows are sharded; none: all rows go to one shard."""
        return self.keys

    @property
    def sides_description(self) -> Mapping[str, str]:
        """The part of `describe` about side outputs; empty if there are none."""
        return {"sides": ", ".join(self.declared_sides)} if self.declared_sides else {}

    @property
    def has_windows(self) -> bool:
        """Whether results are of windows, with their bounds in ``window_columns``."""
        return bool(self.window_columns)

    @property
    def order_columns(self) -> tuple[str, ...]:
        """Columns that order rows of the same time, if ``arrival_order`` names none."""
        return self.used_columns

    @property
    def watermark_column(self) -> str | None:
        """The column that carries watermarks, if one does."""
        column = self.watermarks.column
        return None if column is None else str(column)

    @property
    def result_names(self) -> tuple[str, ...]:
        """Names of the result columns after the keys and the bounds of windows."""
        return tuple(field.name for field in self.result_fields)

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The result column that numbers the results of a key and window, as a tuple of 0 or 1."""
        return ()

    @property
    def window_columns(self) -> tuple[str, ...]:
        """Names of the result columns with the bounds of a window; empty without windows."""
        return tuple(field.name for field in self.bound_fields)

    @property
    def has_time(self) -> bool:
        """Whether rows have an event time."""
        return self.time != NO_TIME

    @property
    def has_key(self) -> bool:
        """Whether rows have a key; else all of them are in one group."""
        return self.keys != (NO_KEY,)

    @property
    def display_keys(self) -> tuple[str, ...]:
        """The users' names of the keys; empty if rows have no key."""
        is_named = self.has_key and self.keys != (SPREAD,)
        return tuple(map(self.display_name, self.keys)) if is_named else ()

    def display_name(self, column: str) -> str:
        """Return the user's name of a column."""
        return self.display_names.get(column, column)

    def display_fields(self, columns: Iterable[str]) -> list[pa.Field]:
        """Return the Arrow fields of input columns, with the user's names."""
        return [self.schema.field(name).with_name(self.display_name(name)) for name in columns]

    @property
    def display_key_fields(self) -> list[pa.Field]:
        """The Arrow fields of `display_keys`."""
        return self.display_fields(self.keys if self.has_key else ())

    @property
    def time_description(self) -> str:
        """Description of the event time and its watermarks."""
        return f"{self.time}, watermark {self.watermarks.describe()}" if self.has_time else "none"
