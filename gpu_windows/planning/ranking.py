"""What windows must be of which the first keys are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gpu_windows.errors import QueryError
from gpu_windows.functions.top import Ranking
from gpu_windows.planning.validation import check_distinct, check_reserved
from gpu_windows.vocabulary.options import show_ticks
from gpu_windows.vocabulary.windows import SlicedAssigner

if TYPE_CHECKING:
    from gpu_windows.planning.kinds.window import WindowQuery


def check_ranking(query: WindowQuery, ranking: Ranking) -> None:
    """Check a query that keeps the first keys of every window.

    Raises
    ------
    QueryError
        Unless all keys have the same windows, which fire once, and each gives one result.
    """
    if not query.function.gives_one:
        rule = "top_keys is for one result of each key: by aggregate, collect or reduce"
        raise QueryError(rule, value=query.function.describe())
    if not query.has_key:
        rule = "top_keys is for windows of keys; of all rows there is one result"
        raise QueryError(rule, value="window_all")
    if not (query.fires_once and isinstance(query.assigner, SlicedAssigner)):
        rule = "top_keys is for windows that all keys share and that fire once, at their end"
        value = f"{query.assigner.describe()}; {query.trigger.describe()}"
        raise QueryError(rule, value=value)
    if query.allowed_lateness:
        rule = "top_keys is for windows without allowed lateness: they would fire again"
        raise QueryError(rule, value=show_ticks(query.allowed_lateness))
    fields = [field.with_name(query.shown(field.name)) for field in query.result_fields]
    ranking.check(pa.schema([*query.shown_key_fields, *fields]))
    names = (*query.shown_keys, *query.window_columns, *(field.name for field in fields))
    check_distinct((*names, ranking.number), query.clash_rule)
    check_reserved([ranking.number])
