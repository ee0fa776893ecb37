"""Base classes of sources and outputs, of which each runner has its own; inputs of queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.functions.two_inputs import HERE
from gpu_windows.planning.own_columns import OWN
from gpu_windows.planning.query import Query
from gpu_windows.runners.explosion import Explosion
from gpu_windows.runners.lookup import Lookup
from gpu_windows.runners.query_results import QueryResults
from gpu_windows.runners.stages import Stage
from gpu_windows.vocabulary.watermarks import WatermarkStrategy

if TYPE_CHECKING:
    from gpu_windows.annotations import Column

_NO_ARRIVAL = "the time of arrival has no meaning on a bounded input: all rows arrive at once"


class Outputs(QueryResults):
    """The outputs of one query.

    Examples
    --------
    >>> users = gw.stream(pa.table({"user": ["ann", "ann", "bob"]})).key_by("user")
    >>> outputs = users.count_window(2).with_outputs().aggregate(n=gw.count())
    >>> outputs.result().select(["user", "n"]).to_pylist()
    [{'user': 'ann', 'n': 2}]
    >>> outputs.late().num_rows, outputs.metrics()["rows"].to_pylist()
    (0, [3])
    """

    #: Makes the same outputs, with the time of each result among its columns, where they lack it.
    in_time: Callable[[], Outputs] | None = None

    @abstractmethod
    def rows(self, stage: Stage) -> Source:
        """Return the results as the rows of another query, as they were selected, and their time.

        Parameters
        ----------
        stage : Stage
            What this query is called there.
        """

    @property
    def stages_before(self) -> int:
        """Number of earlier stages whose results this query reads."""
        return 0


@dataclass(frozen=True)
class Input:
    """An input of a query: rows with a time.

    Parameters
    ----------
    source : Source
    time : str
        The event time column; `gpu_windows.planning.own_columns.NO_TIME` if rows have none.
    watermarks : WatermarkStrategy
    """

    source: Source
    time: str
    watermarks: WatermarkStrategy


@dataclass(frozen=True)
class KeyedInput(Input):
    """Rows with a time and a key. Other parameters: see `Input`.

    Parameters
    ----------
    keys : tuple of str
        Key columns, in order; none for a side that is broadcast.
    """

    keys: tuple[str, ...]


@dataclass(frozen=True)
class InputSide(Input):
    """One of two inputs that are joined. Other parameters: see `Input`.

    Parameters
    ----------
    keys : tuple of str or None
        Its key columns, in order; None where it has none, and its rows null: it is broadcast.
    columns : dict of str to str
        What is taken of it: names in the result to its columns.
    """

    keys: tuple[str | None, ...]
    columns: Mapping[str, str]

    @property
    def is_broadcast(self) -> bool:
        """Whether its rows go to every shard, before those of the other side."""
        return None in self.keys

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Its columns that are used, each once."""
        keys = (name for name in self.keys if name is not None)
        return tuple(dict.fromkeys((*keys, self.time, *self.columns.values())))

    @property
    def carrier(self) -> str | None:
        """Its column of watermarks, if one carries them."""
        column = self.watermarks.column
        return None if column is None else str(column)

    @property
    def marker_columns(self) -> tuple[str, ...]:
        """Columns that are all null in a row that only carries a watermark."""
        carrier = None if self.carrier == self.time else self.carrier
        return tuple(n for n in self.used_columns if n not in (carrier, HERE))


class Source(ABC):
    """Where rows come from."""

    #: Whether Spark computes expressions over rows; it has more of them than Arrow.
    is_of_spark = False
    #: Whether rows arrive over time, without an end.
    is_streaming = False

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns."""

    @property
    def user_columns(self) -> tuple[str, ...]:
        """Names of the columns that the user's rows came with."""
        return tuple(name for name in self.schema.names if name not in OWN)

    def display_zone(self, column: str) -> str | None:
        """Return the zone in which SQL shows times of a column; None if they have none."""
        dtype = self.schema.field(column).type
        return dtype.tz if pa.types.is_timestamp(dtype) else None

    @abstractmethod
    def bind_column(self, column: str | Column, fallback: str | None) -> tuple[Source, str]:
        """Return this source with the column in it, and the column's name.

        An expression gets its own name (its alias), or ``fallback`` where one is given.
        """

    def with_input_name(self, name: str) -> Source:
        """Return this source with a name for its input, if it has one input without a name.

        Names tell the inputs of a streaming query apart when it starts again.
        """
        del name
        return self

    def with_shared_rows(self) -> Source:
        """Return a source whose rows are read once by all queries that run as one."""
        return self

    @abstractmethod
    def convert_time(self, column: str, role: str) -> Source:
        """Return this source with a column of times in microseconds.

        ``role``: what the column is, for messages.
        """

    @abstractmethod
    def add_last_ticks(self, column: str, name: str) -> Source:
        """Return this source with a column of the last ticks before the times of another.

        Raises
        ------
        NameClashError
            If there is a column of this name.
        """

    @abstractmethod
    def convert_local_time(self, column: str, zone: str) -> Source:
        """Return this source with instants in place of times without a zone.

        See `gpu_windows.column_types.local_times.instants_of`.

        Raises
        ------
        ColumnTypeError
            If the column has no such times.
        """

    @abstractmethod
    def filter_rows(self, condition: str) -> Source:
        """Return this source with only the rows for which a condition in SQL is true.

        Raises
        ------
        QueryError
            If it is not a condition over these columns.
        """

    @abstractmethod
    def add_columns(self, columns: Mapping[str, str]) -> Source:
        """Return this source with more columns, or others of these names: expressions in SQL.

        Raises
        ------
        QueryError
            If one is not an expression over the columns of this source.
        """

    @abstractmethod
    def project(self, columns: Mapping[str, str]) -> Source:
        """Return this source with some of its columns, by their new names, and internal ones.

        Parameters
        ----------
        columns : mapping of str to str
            New names to columns that exist.
        """

    @abstractmethod
    def explode(self, explosion: Explosion) -> Source:
        """Return the rows of the elements of a list or map.

        Raises
        ------
        QueryError
            See `Explosion.check`.
        UnsupportedQueryError
            If rows are those of an earlier stage of a stream.
        """

    @abstractmethod
    def look_up(self, table: Source, lookup: Lookup) -> Source:
        """Return the rows with columns of the rows of a table that have their key.

        Raises
        ------
        QueryError
            See `Lookup.check`.
        UnsupportedQueryError
            If rows are those of an earlier stage of a stream, or the table is a stream.
        """

    @abstractmethod
    def add_constant(self, name: str, value: pa.Scalar) -> Source:
        """Return this source with an internal column that has one value, or is null.

        Raises
        ------
        NameClashError
            If there is a column of this name.
        """

    @property
    def readers(self) -> tuple[object, ...]:
        """Readers that the rows come from, each of which can be read once."""
        return ()

    def without_rows(self) -> Source:
        """Return the same columns without rows; sources that have no rows yet return themselves."""
        return self

    def add_spread(self, name: str, column: str) -> Source:
        """Return this source with an internal column that spreads rows over shards.

        Rows with equal values in ``column`` get the same value, out of a few thousand; all rows get
        one value where there are no shards.
        """
        del column
        return self.add_constant(name, pa.scalar(0, pa.int64()))

    def check_arrival(self) -> None:
        """Raise `UnsupportedQueryError` unless rows arrive over time."""
        raise UnsupportedQueryError(_NO_ARRIVAL)

    def add_arrival_time(self) -> tuple[Source, str]:
        """Return this source with the time of arrival in it, and that column's name.

        Raises
        ------
        UnsupportedQueryError
            Unless rows arrive over time.
        """
        raise UnsupportedQueryError(_NO_ARRIVAL)

    @abstractmethod
    def union(self, inputs: Sequence[Input]) -> Source:
        """Return the rows of several sources with the columns of the first, which is this one.

        Raises
        ------
        QueryError
            If columns differ in name or type.
        """

    def display_name(self, column: str) -> str:
        """Return what the user calls a column."""
        return column

    @abstractmethod
    def tag_sides(self, keys: Sequence[pa.Field], left: InputSide, right: InputSide) -> Source:
        """Return the rows of two inputs with `SIDE`, ``keys``, `TIME` and the columns of both.

        Keys have the common type of both sides. In a row the columns of the other side are null.

        Raises
        ------
        QueryError
            If one is a stream, and the other is not.
        """

    @abstractmethod
    def outputs(self, query: Query) -> Outputs:
        """Plan a query over this source."""
