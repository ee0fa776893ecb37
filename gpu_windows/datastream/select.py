"""The function of `TimedStream.select`: rows as results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from gpu_windows.planning.kinds.select import SelectQuery
from gpu_windows.planning.own_columns import NO_KEY, NO_TIME, OWN
from gpu_windows.planning.validation import check_distinct, check_reserved, require_column
from gpu_windows.runners.outputs import Input, Outputs, Source
from gpu_windows.runners.selection import selected_columns

_STAYS = "columns have different names, also from the event time, which stays"


@dataclass(frozen=True)
class _Columns:
    """A source, and its columns that are results, by the names of these; expressions, too."""

    source: Source
    columns: Mapping[str, str]
    expressions: Mapping[str, str]


def select(
    rows: Input,
    columns: Sequence[str | Mapping[str, str]],
    expressions: Mapping[str, str],
) -> Outputs:
    """Return the outputs of `TimedStream.select`, of rows that are filtered already."""
    source = rows.source
    selected = selected_columns(columns, expressions)
    if not selected:
        selected = {name: name for name in source.user_columns}
    unchanged = {each for each in columns if isinstance(each, str)} or (
        set() if columns or expressions else {*selected}
    )
    for name in unchanged:
        require_column(source.schema, name)
    selection = _compute(source, selected, unchanged)
    outputs = _outputs(rows, selection)
    if rows.time not in (NO_TIME, *selection.columns.values()):
        columns_in_time = {**selection.columns, rows.time: rows.time}
        outputs.in_time = partial(_outputs, rows, replace(selection, columns=columns_in_time))
    return outputs


def project(
    source: Source,
    columns: Sequence[str | Mapping[str, str]],
    renamed: Mapping[str, str],
    needed: Sequence[str] = (),
) -> tuple[Source, dict[str, str]]:
    """Return a source with some of its columns alone, and their new names by the old ones.

    ``needed``: columns that stay, under their own names if they are not among the others.
    """
    names = selected_columns(columns, renamed)
    for column in names.values():
        require_column(source.schema, column)
    after = {old: new for new, old in reversed(names.items())}
    stay = {name: name for name in needed if name not in after}
    check_distinct([*names, *stay], _STAYS)
    after |= stay
    check_reserved({*names} - {*OWN})
    return source.project({**names, **{new: old for old, new in stay.items()}}), after


def _compute(source: Source, selected: Mapping[str, str], unchanged: set[str]) -> _Columns:
    """Return a source with a column for each expression, under a name that was free."""
    used = {name.lower() for name in (*source.schema.names, *selected)}
    columns, added = {}, {}
    for name, text in selected.items():
        if name in unchanged:
            columns[name] = name
            continue
        fresh = name
        if name.lower() in (other.lower() for other in source.schema.names):
            numbered = (f"{name}_{i}" for i in range(2, len(used) + 3))
            fresh = next(each for each in numbered if each.lower() not in used)
            used.add(fresh.lower())
        columns[name], added[fresh] = fresh, text
    texts = {name: text for name, text in selected.items() if name not in unchanged}
    return _Columns(source.add_columns(added) if added else source, columns, texts)


def _outputs(rows: Input, selection: _Columns) -> Outputs:
    source = selection.source.add_constant(NO_KEY, pa.scalar(value=True))
    query = SelectQuery(
        schema=source.schema,
        time=rows.time,
        watermarks=rows.watermarks,
        keys=(NO_KEY,),
        columns=selection.columns,
        expressions=selection.expressions,
    )
    return source.outputs(query)
