"""Translates a statement: the table of the kinds of SELECT, each with its reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpu_windows.sql.kinds.group_by import is_grouped, read_group_by
from gpu_windows.sql.kinds.joins import has_join, read_join
from gpu_windows.sql.kinds.lookup import has_lookup, read_lookup
from gpu_windows.sql.kinds.match import is_match, read_match
from gpu_windows.sql.kinds.nested_joins import has_several_joins, read_nested_join
from gpu_windows.sql.kinds.over import has_over, read_ordered, read_over
from gpu_windows.sql.kinds.pairs import read_pairs, takes_pairs
from gpu_windows.sql.kinds.semi_joins import has_subquery, read_semi_join
from gpu_windows.sql.kinds.top import is_top, read_top
from gpu_windows.sql.kinds.unnest import has_unnest, read_unnest
from gpu_windows.sql.kinds.window_rows import read_rows
from gpu_windows.sql.tables.stages import Stages
from gpu_windows.sql.translator import Reader, Translator, View

if TYPE_CHECKING:
    from sqlglot import exp

    from gpu_windows.sql.tables.inputs import Input
    from gpu_windows.sql.tables.results import Results, Settings

#: The first that recognizes a statement reads it.
READERS = (
    Reader(is_match, read_match),
    Reader(has_unnest, read_unnest),
    Reader(has_lookup, read_lookup),
    Reader(has_subquery, read_semi_join),
    Reader(has_several_joins, read_nested_join),
    Reader(takes_pairs, read_pairs),
    Reader(has_join, read_join),
    Reader(is_top, read_top),
    Reader(is_grouped, read_group_by),
    Reader(has_over, read_over),
)


def translate(
    tree: exp.Expr,
    tables: Mapping[str, Input],
    settings: Settings,
    views: Mapping[str, View] | None = None,
    stages: Stages | None = None,
) -> Results:
    """Return the results of a statement over tables and views, by their names in lower case.

    ``stages``: has the names that stages of other statements have.

    Raises
    ------
    SqlError
        With the position of what is not covered.
    """
    return Translator(
        READERS, read_rows, read_ordered, tables, settings, views or {}, stages or Stages()
    ).results(tree)
