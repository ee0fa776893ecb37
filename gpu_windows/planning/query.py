"""What every query is: a frozen, validated value that says what is computed of which rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa

from gpu_windows.aggregates.collations import check_collations
from gpu_windows.errors import QueryError, UnsupportedQueryError
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.functions.top import Ranking
from gpu_windows.functions.two_inputs import COPY, DELETED, MARKS
from gpu_windows.planning.result_times import ResultTimes
from gpu_windows.planning.validation import (
    DISTINCT,
    check_distinct,
    check_key,
    check_reserved,
    check_time,
    require_column,
)
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.rich_functions import Openable
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from gpu_windows.vocabulary.windows.row_checks import DurationCheck

#: Name of the column that says why a row was rejected or late.
REASON = "rejection_reason"

#: What a column is that carries watermarks, in words.
CARRIER = "the column of watermarks"

#: Columns of our own, which users do not see: the time of rows that have none is null, the key of
#: rows that have none is one for all, or spreads them over shards where that does not matter.
NO_TIME, NO_KEY, SPREAD = "__no_time", "__no_key", "__spread"
#: All columns of our own that rows may have where they come back.
OWN = (NO_TIME, NO_KEY, SPREAD, COPY, DELETED, *MARKS)

_TAGS = "tags of side outputs, which name folders, must differ in more than upper and lower case"


@dataclass(frozen=True, kw_only=True)
class Query(ABC):
    """What is computed of the rows of each key of one input.

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
        Columns that nothing reads, for rows that are given back.
    options : Options
    public : mapping of str to str
        Name of an expression's column to the name that the user gave it.
    ranking : Ranking, optional
        Of results of windows, which keys of a window are kept; None: all.

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
    public: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    ranking: Ranking | None = None
    #: Tells this query from others in every process, so that its functions are opened once in each.
    token: str = field(init=False, repr=False, compare=False, default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        check_time(self.schema, self.time)
        if self.watermark_column is not None:
            check_time(self.schema, self.watermark_column, CARRIER)
        if not self.keys:
            raise QueryError("key_by needs at least one column; windows of all rows: window_all")
        if self.needs_time and not self.has_time:
            rule = "rows need a time: say event_time(column, watermarks)"
            raise QueryError(rule, value=self.timed_part)
        for name in (*self.keys, *self.used_columns, *self.arrival_order):
            require_column(self.schema, name)
        for name in self.keys:
            check_key(name, self.schema.field(name).type)
        check_collations(self)
        self._check_own()
        self._check_names()
        self._check_parts()
        if self.pair_process is not None:
            _ = self.of_pairs  # which is checked, too

    def _check_names(self) -> None:
        """Refuse names of columns, and of side outputs, that clash for those who read them."""
        check_reserved({*self.schema.names} - {*OWN})
        marks = {*MARKS} if self.pair_process is None else set()  # of pairs, for a function
        check_reserved({*self.result_names} - (marks & {*self.schema.names}))
        keys = tuple(map(self.shown, self.keys))
        names = (*keys, *self.window_columns, *map(self.shown, self.result_names))
        check_distinct(names, self.clash_rule)
        check_distinct(self.declared_sides, _TAGS)
        for tag, side in self.declared_sides.items():
            rule = f"keys and columns of the side output {tag!r} must have different names"
            check_distinct((*keys, *side.names), rule)
            check_reserved(side.names)

    def _check_own(self) -> None:  # noqa: B027 - most have none
        """Refuse numbers and results that a kind of query cannot have."""

    def _check_parts(self) -> None:  # noqa: B027 - most have none
        """Refuse parts that do not go together."""

    # ---- what a kind of query says of itself

    @property
    @abstractmethod
    def used_columns(self) -> tuple[str, ...]:
        """Columns that are read besides time and keys, each once."""

    @property
    def carried_columns(self) -> frozenset[str]:
        """Columns besides time and keys of which no value is compared with another; here none."""
        return frozenset()

    @property
    def compared_fields(self) -> tuple[pa.Field, ...]:
        """What is compared: keys, orders, what is not merely carried, results that are ranked."""
        carried = self.carried_columns
        others = (name for name in self.used_columns if name not in carried)
        names = dict.fromkeys((*self.keys, *self.arrival_order, *others))
        return (*map(self.schema.field, names), *self._ranked_fields)

    @property
    def _ranked_fields(self) -> tuple[pa.Field, ...]:
        """Results by which keys of windows are ranked."""
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
        """Arrow fields of the bounds of windows (int64 ticks); none if results are of no window."""
        return ()

    def in_ticks(self, names: Iterable[str]) -> pa.Schema:
        """Return the schema of columns of the input as they are kept: times are int64 ticks."""
        fields = (
            pa.field(name, pa.int64()) if name == self.time else self.schema.field(name)
            for name in dict.fromkeys(names)
        )
        return pa.schema([field.with_nullable(True) for field in fields])

    @property
    @abstractmethod
    def usable_ticks(self) -> tuple[int, int]:
        """First and last time of a row with which all that is computed of it fits int64."""

    @property
    def row_checks(self) -> tuple[DurationCheck, ...]:
        """What values of a row must be, besides its time; a row that breaks it is given back."""
        return ()

    @property
    @abstractmethod
    def needs_time(self) -> bool:
        """Whether a row without a time has no place; elsewhere it has the first of all times."""

    @property
    @abstractmethod
    def timed_part(self) -> str:
        """What needs the time, in words."""

    def without(self, names: Container[str]) -> Query | None:
        """Return the query without some result columns; None where it has to have them."""
        del names
        return None

    def with_rows_since(self, since: Mapping[str, int]) -> Query:
        """Return the query whose results of some names have rows from a start on.

        ``since``: their names to the numbers of starts, see `gpu_windows.aggregates.partials`.
        """
        del since
        return self

    @property
    def uses_processing_time(self) -> bool:
        """Whether anything happens in processing time."""
        return False

    @property
    def reads_processing_time(self) -> bool:
        """Whether anything asks what processing time it is."""
        return self.uses_processing_time

    @property
    def pair_process(self) -> PairProcess | None:
        """What takes the pairs of a join, where a function of the user's does."""
        return None

    @property
    def of_pairs(self) -> Query:
        """What gives the pairs themselves; the query, if there are none."""
        return self

    @property
    def rich_parts(self) -> tuple[Openable, ...]:
        """What is to be opened before the first call, besides process functions."""
        return ()

    @property
    def declared_sides(self) -> Mapping[str, pa.Schema]:
        """Columns of the side outputs as functions declare them, by tag; most have none."""
        return {}

    @property
    @abstractmethod
    def ends_with_time(self) -> bool:
        """Whether nothing that is kept is of use once event time has ended."""

    @property
    def broadcasts(self) -> bool:
        """Whether the rows of one of the inputs go to every shard."""
        return False

    @property
    def is_upserted(self) -> bool:
        """Whether results have what names the row that each replaces."""
        return False

    @property
    def gives_one(self) -> bool:
        """Whether no two results of one firing have the same keys, window and number."""
        return False

    @property
    def change_column(self) -> str | None:
        """The result column that tells new rows from changed and deleted ones, if there is one."""
        return None

    @property
    def upsert_rule(self) -> str:
        """What is said where they do not."""
        return "upsert keeps one result for each key and window: these results have no windows"

    @property
    def results_in_time(self) -> ResultTimes:
        """When results happen, for a query of these.

        Raises
        ------
        UnsupportedQueryError
            If they do not happen once, at a time.
        """
        raise UnsupportedQueryError(self.no_time_rule, value=type(self).__name__)

    @property
    def no_time_rule(self) -> str:
        """What is said where results have no time."""
        return "a query goes on from results that happen once, at a time: these do not"

    @abstractmethod
    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return the parts whose result depends on the order of arrival, in words.

        ``bounded``: whether the input is, so that no row is late.
        """

    @abstractmethod
    def describe(self) -> Mapping[str, str]:
        """Return what is computed, part by part, in words."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, object]:
        """What state depends on besides time, keys and columns, by name: values, None if absent."""

    # ---- the same for all kinds

    @property
    def side_outputs(self) -> Mapping[str, pa.Schema]:
        """Arrow schemas of the side outputs by tag: the keys, and what was declared."""
        keys = [self.schema.field(name) for name in self.keys]
        return {tag: pa.schema([*keys, *side]) for tag, side in self.declared_sides.items()}

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        """The Arrow fields of the keys in results."""
        return tuple(self.schema.field(name) for name in self.keys)

    @property
    def shard_keys(self) -> tuple[str, ...]:
        """The keys whose values are in one shard together; none: all rows are."""
        return self.keys

    @property
    def shown_sides(self) -> Mapping[str, str]:
        """The side outputs in words, as a part of `describe`; nothing if there are none."""
        return {"sides": ", ".join(self.declared_sides)} if self.declared_sides else {}

    @property
    def clash_rule(self) -> str:
        """What is said where two columns of the result have one name."""
        return DISTINCT

    @property
    def has_windows(self) -> bool:
        """Whether results are of windows, which ``window_columns`` tell."""
        return bool(self.window_columns)

    @property
    def is_always_ordered(self) -> bool:
        """Whether rows are put in order of arrival even where no result depends on it."""
        return False

    @property
    def order_columns(self) -> tuple[str, ...]:
        """Columns that give the order of rows of the same time, where none are named."""
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
        """The result column that numbers the results of a key and window, if there is one."""
        return ()

    @property
    def window_columns(self) -> tuple[str, ...]:
        """Names of the result columns with the bounds of a window, if results are of windows."""
        return tuple(field.name for field in self.bound_fields)

    @property
    def has_time(self) -> bool:
        """Whether the rows were given a time."""
        return self.time != NO_TIME

    @property
    def has_key(self) -> bool:
        """Whether the rows were given a key; else all of them are together."""
        return self.keys != (NO_KEY,)

    @property
    def shown_keys(self) -> tuple[str, ...]:
        """The keys that users see, by their names for them."""
        return tuple(map(self.shown, self.keys)) if self.has_key and self.keys != (SPREAD,) else ()

    def shown(self, column: str) -> str:
        """Return what the user calls a column."""
        return self.public.get(column, column)

    def shown_fields(self, columns: Iterable[str]) -> list[pa.Field]:
        """Return the Arrow fields of columns of the input, by the user's names for them."""
        return [self.schema.field(name).with_name(self.shown(name)) for name in columns]

    @property
    def shown_key_fields(self) -> list[pa.Field]:
        """The Arrow fields of `shown_keys`."""
        return self.shown_fields(self.keys if self.has_key else ())

    @property
    def shown_time(self) -> str:
        """The time and its watermarks, in words."""
        return f"{self.time}, watermark {self.watermarks.describe()}" if self.has_time else "none"
