"""Two inputs of a query as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_windows.datastream.keyed_input import KeyedInput
from gpu_windows.datastream.named import listed
from gpu_windows.errors import QueryError
from gpu_windows.functions.keyed_process import UserProcess
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.planning.kinds.process import ProcessQuery
from gpu_windows.planning.query import NO_TIME
from gpu_windows.planning.validation import check_distinct, check_reserved, require_common
from gpu_windows.runners.outputs import Outputs, Side, Source
from gpu_windows.vocabulary.options import Options, change_options
from gpu_windows.vocabulary.watermarks import WatermarkStrategy, join_watermarks

if TYPE_CHECKING:
    from gpu_windows.annotations import Column

#: Columns of a side: names, which get a prefix, or names in the result to columns.
Selection = Sequence["str | Column"] | Mapping[str, "str | Column"]
Prefixes = tuple[str, str]
#: Names as a function sees them, with those of columns.
Names = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Marked:
    """Columns of a side, and one more of it.

    Parameters
    ----------
    chosen : Selection or Marked
    name, column : str
        The result name of the other one, and the column.
    """

    chosen: Selection | Marked
    name: str
    column: str


def of_each(left: Selection, right: Selection, prefixes: Prefixes) -> tuple[Selection, Selection]:
    """Return what a function sees of each side, alone: names of a mapping get the prefix too."""
    return _prefixed(left, prefixes[0]), _prefixed(right, prefixes[1])


def _prefixed(chosen: Selection, prefix: str) -> Selection:
    if not isinstance(chosen, Mapping):
        return chosen
    return {f"{prefix}{name}": column for name, column in chosen.items()}


def check_chosen(*sides: Selection) -> None:
    """Raise `NameClashError` for results that are called like columns of our own."""
    for chosen in sides:
        check_reserved(chosen if isinstance(chosen, Mapping) else ())


PREFIXES = ("left_", "right_")


def _without(prefix: str, names: Sequence[str]) -> Names:
    return tuple((name.removeprefix(prefix), name) for name in names)


@dataclass(frozen=True)
class Tagged:
    """Two inputs as one.

    Parameters
    ----------
    source : Source
    watermarks : WatermarkStrategy
    keys : tuple of str
        Key columns, by the left side's names.
    left, right : tuple of str
        The columns that were chosen of each side.
    order : tuple of str
        Those of the order of arrival.
    """

    source: Source
    watermarks: WatermarkStrategy
    keys: tuple[str, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    order: tuple[str, ...]

    def seen(self, prefixes: Prefixes) -> tuple[Names, Names]:
        """Return for each side what a function calls its columns, and what they are called here."""
        return _without(prefixes[0], self.left), _without(prefixes[1], self.right)

    def outputs(self, process: UserProcess, options: Mapping[str, Any]) -> Outputs:
        """Return the outputs of a function over the rows of both."""
        query = ProcessQuery(
            schema=self.source.schema,
            time=TIME,
            watermarks=self.watermarks,
            keys=self.keys,
            process=process,
            arrival_order=self.order,
            options=change_options(Options(), options),
        )
        return with_times(self.source, query)


def with_times(source: Source, query: ProcessQuery) -> Outputs:
    """Return the outputs of a function, which can be made with the time of each result, too."""
    outputs = source.outputs(query)
    if query.needs_time and not query.process.in_batches:
        outputs.in_time = lambda: source.outputs(replace(query, gives_times=True))
    return outputs


@dataclass(frozen=True)
class TwoInputs:
    """Two keyed streams.

    Parameters
    ----------
    left, right : KeyedInput

    Raises
    ------
    QueryError
        If their keys do not fit.
    """

    left: KeyedInput
    right: KeyedInput

    def __post_init__(self) -> None:
        if not isinstance(self.right, KeyedInput):
            rule = "a stream is joined with a keyed one: gw.stream(...).event_time(...).key_by(...)"
            raise QueryError(rule, value=type(self.right).__name__)
        self._check_keys()
        self._common_type(self.left.time, self.right.time, "event time")

    def _check_keys(self) -> None:
        ours, its = self.left.keys, self.right.keys
        if len(ours) != len(its):
            rule = "both inputs have keys of as many columns"
            raise QueryError(rule, value=f"{', '.join(ours)} and {', '.join(its)}")
        for pair in zip(ours, its, strict=True):
            self._common_type(*pair, "a key")

    @property
    def _right_keys(self) -> tuple[str | None, ...]:
        """The key columns of the right side; None where it has none."""
        return self.right.keys

    @property
    def is_timed(self) -> bool:
        """Whether the rows of both sides have a time."""
        return NO_TIME not in (self.left.time, self.right.time)

    def check_timed(self) -> None:
        """Raise `QueryError` if the rows of a side have no time."""
        for role, side in (("left", self.left), ("right", self.right)):
            if side.time == NO_TIME:
                rule = (
                    "the rows of both sides need a time: say event_time(column, watermarks), "
                    "or ingestion_time() for the clock's"
                )
                raise QueryError(rule, value=f"none on the {role} side")

    def with_constant(self, name: str) -> TwoInputs:
        """Return both with a column that is true in every row."""
        sides = (self.left, self.right)
        left, right = (
            replace(side, source=side.source.constant(name, pa.scalar(value=True)))
            for side in sides
        )
        return TwoInputs(left, right)

    def _common_type(self, left: str, right: str | None, role: str) -> pa.DataType:
        """Return the type that columns of both sides have together."""
        ours = self.left.source.schema.field(left).type
        if right is None:
            return ours
        its = self.right.source.schema.field(right)
        return require_common(ours, its, f"{role} has the same type in both inputs")

    def _fields(self, names: Sequence[str], shared: Sequence[str]) -> list[pa.Field]:
        """Return keys and what is seen of both sides, in the types that both have together."""
        its_keys = (*self._right_keys, *shared)
        roles = ("a key",) * len(self.left.keys) + ("what is seen of both sides",) * len(shared)
        fields = map(self.left.source.schema.field, (*self.left.keys, *shared))
        return [
            field.with_name(name).with_type(self._common_type(field.name, right, role))
            for name, field, right, role in zip(names, fields, its_keys, roles, strict=True)
        ]

    def tagged(
        self,
        left: Selection | Marked,
        right: Selection | Marked,
        prefixes: Prefixes,
        order: Sequence[str | Column] = (),
        seen: Sequence[str] = (),
    ) -> Tagged:
        """Return both as one: `SIDE`, keys, shared columns, `TIME`, the chosen ones of each side.

        Shared are those of the order and those that triggers, evictors and gaps see.
        """
        for name in order:
            if not isinstance(name, str):
                rule = "arrival_order of two inputs takes names of columns that both have"
                raise QueryError(rule, value=type(name).__name__)
        shared = (*map(str, order), *seen)
        left_source, left_columns = _chosen(self.left.source, left, prefixes[0])
        right_source, right_columns = _chosen(self.right.source, right, prefixes[1])
        one, other = self.left, self.right
        ours_keys, its_keys = (*one.keys, *shared), (*self._right_keys, *shared)
        ours = Side(left_source, one.time, one.watermarks, ours_keys, left_columns)
        its = Side(right_source, other.time, other.watermarks, its_keys, right_columns)
        for source, name in product((left_source, right_source), shared):
            source.name(name, None)  # it is there
        keys = tuple(left_source.public_name(name) for name in self.left.keys)
        orders = tuple(f"__order_{i}" for i in range(len(order)))
        names = (SIDE, TIME, *keys, *seen, *ours.columns, *its.columns)
        check_distinct(names)
        fields = self._fields((*keys, *orders, *seen), shared)
        source = left_source.tagged(fields, ours, its)
        watermarks = join_watermarks(one.watermarks, other.watermarks)
        return Tagged(source, watermarks, keys, (*ours.columns,), (*its.columns,), orders)


def _chosen(
    source: Source, chosen: Selection | Marked, prefix: str
) -> tuple[Source, dict[str, str]]:
    """Return the source with the chosen columns in it, and result names to its columns."""
    columns: dict[str, str] = {}
    for wanted, column in _wanted(chosen):
        source, name = source.name(column, wanted)
        shown = wanted or f"{prefix}{source.public_name(name)}"
        if shown in columns:
            check_distinct((shown, shown))
        columns[shown] = name
    return source, columns


def _wanted(chosen: Selection | Marked) -> Iterator[tuple[str | None, str | Column]]:
    if isinstance(chosen, Marked):
        yield from _wanted(chosen.chosen)
        yield chosen.name, chosen.column
    elif isinstance(chosen, Mapping):
        yield from chosen.items()
    else:
        yield from ((None, column) for column in listed(chosen))
