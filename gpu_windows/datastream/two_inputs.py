"""Two inputs of a query as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_windows.datastream.columns import as_list
from gpu_windows.errors import QueryError
from gpu_windows.functions.keyed_process import UserProcess
from gpu_windows.functions.two_inputs import SIDE, TIME
from gpu_windows.planning.kinds.process import ProcessQuery
from gpu_windows.planning.own_columns import NO_TIME
from gpu_windows.planning.validation import check_distinct, check_reserved, require_common
from gpu_windows.runners.outputs import InputSide, KeyedInput, Outputs, Source
from gpu_windows.vocabulary.options import Options, change_options
from gpu_windows.vocabulary.watermarks import join_watermarks

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
    selection : Selection or Marked
    name, column : str
        The result name of the other one, and the column.
    """

    selection: Selection | Marked
    name: str
    column: str


def prefix_names(
    left: Selection, right: Selection, prefixes: Prefixes
) -> tuple[Selection, Selection]:
    """Return what a function sees of each side, alone: names of a mapping get the prefix too."""
    return _with_prefix(left, prefixes[0]), _with_prefix(right, prefixes[1])


def _with_prefix(selection: Selection, prefix: str) -> Selection:
    if not isinstance(selection, Mapping):
        return selection
    return {f"{prefix}{name}": column for name, column in selection.items()}


def check_result_names(*sides: Selection) -> None:
    """Raise `NameClashError` for results that are called like columns of our own."""
    for selection in sides:
        check_reserved(selection if isinstance(selection, Mapping) else ())


PREFIXES = ("left_", "right_")


def _without(prefix: str, names: Sequence[str]) -> Names:
    return tuple((name.removeprefix(prefix), name) for name in names)


@dataclass(frozen=True)
class MergedInputs(KeyedInput):
    """Two inputs as one; keys have the left side's names. Other parameters: see `KeyedInput`.

    Parameters
    ----------
    left, right : tuple of str
        The columns that were selection of each side.
    order : tuple of str
        Those of the order of arrival.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    order: tuple[str, ...]

    def names_of_sides(self, prefixes: Prefixes) -> tuple[Names, Names]:
        """Return for each side what a function calls its columns, and what they are called here."""
        return _without(prefixes[0], self.left), _without(prefixes[1], self.right)


def function_outputs(
    rows: KeyedInput,
    process: UserProcess,
    options: Mapping[str, Any],
    order: tuple[str, ...] = (),
) -> Outputs:
    """Return the outputs of a function, which can be made with the time of each result, too."""
    query = ProcessQuery(
        schema=rows.source.schema,
        time=rows.time,
        watermarks=rows.watermarks,
        keys=rows.keys,
        process=process,
        arrival_order=order,
        options=change_options(Options(), options),
    )
    outputs = rows.source.outputs(query)
    if query.needs_time and not process.in_batches:
        outputs.in_time = lambda: rows.source.outputs(replace(query, gives_times=True))
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
        left_keys, right_keys = self.left.keys, self.right.keys
        if len(left_keys) != len(right_keys):
            rule = "both inputs have keys of as many columns"
            raise QueryError(rule, value=f"{', '.join(left_keys)} and {', '.join(right_keys)}")
        for pair in zip(left_keys, right_keys, strict=True):
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
            replace(side, source=side.source.add_constant(name, pa.scalar(value=True)))
            for side in sides
        )
        return TwoInputs(left, right)

    def _common_type(self, left: str, right: str | None, role: str) -> pa.DataType:
        """Return the type that columns of both sides have together."""
        left_type = self.left.source.schema.field(left).type
        if right is None:
            return left_type
        right_field = self.right.source.schema.field(right)
        return require_common(left_type, right_field, f"{role} has the same type in both inputs")

    def _fields(self, names: Sequence[str], shared: Sequence[str]) -> list[pa.Field]:
        """Return keys and what is seen of both sides, in the types that both have together."""
        right_keys = (*self._right_keys, *shared)
        roles = ("a key",) * len(self.left.keys) + ("what is seen of both sides",) * len(shared)
        fields = map(self.left.source.schema.field, (*self.left.keys, *shared))
        return [
            field.with_name(name).with_type(self._common_type(field.name, right, role))
            for name, field, right, role in zip(names, fields, right_keys, roles, strict=True)
        ]

    def merge(
        self,
        left: Selection | Marked,
        right: Selection | Marked,
        prefixes: Prefixes,
        order: Sequence[str | Column] = (),
        seen: Sequence[str] = (),
    ) -> MergedInputs:
        """Return both as one: `SIDE`, keys, shared columns, `TIME`, the selected ones of each.

        Shared are those of the order and those that triggers, evictors and gaps see.
        """
        for name in order:
            if not isinstance(name, str):
                rule = "arrival_order of two inputs takes names of columns that both have"
                raise QueryError(rule, value=type(name).__name__)
        shared = (*map(str, order), *seen)
        left_source, left_columns = _add_columns(self.left.source, left, prefixes[0])
        right_source, right_columns = _add_columns(self.right.source, right, prefixes[1])
        one, other = self.left, self.right
        left_keys, right_keys = (*one.keys, *shared), (*self._right_keys, *shared)
        left_side = InputSide(left_source, one.time, one.watermarks, left_keys, left_columns)
        right_side = InputSide(
            right_source, other.time, other.watermarks, right_keys, right_columns
        )
        for source, name in product((left_source, right_source), shared):
            source.bind_column(name, None)  # it is there
        keys = tuple(left_source.display_name(name) for name in self.left.keys)
        orders = tuple(f"__order_{i}" for i in range(len(order)))
        names = (SIDE, TIME, *keys, *seen, *left_side.columns, *right_side.columns)
        check_distinct(names)
        fields = self._fields((*keys, *orders, *seen), shared)
        source = left_source.tag_sides(fields, left_side, right_side)
        watermarks = join_watermarks(one.watermarks, other.watermarks)
        columns = (*left_side.columns,), (*right_side.columns,)
        return MergedInputs(source, TIME, watermarks, keys, *columns, orders)


def _add_columns(
    source: Source, selection: Selection | Marked, prefix: str
) -> tuple[Source, dict[str, str]]:
    """Return the source with the selection columns in it, and result names to its columns."""
    columns: dict[str, str] = {}
    for wanted, column in _selected_columns(selection):
        source, name = source.bind_column(column, wanted)
        result_name = wanted or f"{prefix}{source.display_name(name)}"
        if result_name in columns:
            check_distinct((result_name, result_name))
        columns[result_name] = name
    return source, columns


def _selected_columns(selection: Selection | Marked) -> Iterator[tuple[str | None, str | Column]]:
    if isinstance(selection, Marked):
        yield from _selected_columns(selection.selection)
        yield selection.name, selection.column
    elif isinstance(selection, Mapping):
        yield from selection.items()
    else:
        yield from ((None, column) for column in as_list(selection))
