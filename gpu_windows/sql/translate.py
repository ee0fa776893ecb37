"""Translates a statement: the table of the kinds of SELECT, each with its reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpu_windows.sql.kinds.group_by import is_grouped, read_group_by
from gpu_windows.sql.kinds.joins import read_join
from gpu_windows.sql.kinds.lookup import has_lookup, look_up
from gpu_windows.sql.kinds.match import read_match
from gpu_windows.sql.kinds.numbering import find_numbering
from gpu_windows.sql.kinds.over import read_ordered, read_over
from gpu_windows.sql.kinds.pairs import nest_first_join, stage_pairs, takes_pairs
from gpu_windows.sql.kinds.rows import read_rows
from gpu_windows.sql.kinds.semi_joins import has_subquery, join_subquery
from gpu_windows.sql.kinds.top import read_top
from gpu_windows.sql.kinds.unnest import explode_rows, has_unnest
from gpu_windows.sql.tables.stages import Stages
from gpu_windows.sql.translator import Reader, Translator, View

if TYPE_CHECKING:
    from sqlglot import exp

    from gpu_windows.sql.tables.inputs import Input
    from gpu_windows.sql.tables.results import Results, Settings

#: The first that recognizes a statement reads it.
READERS = (
    Reader(lambda statement, _: bool(statement.select.args.get("match")), read_match),
    Reader(lambda statement, _: has_unnest(statement), explode_rows),
    Reader(has_lookup, look_up),
    Reader(lambda statement, _: has_subquery(statement), join_subquery),
    Reader(lambda statement, _: len(statement.joins) > 1, nest_first_join),
    Reader(lambda statement, _: takes_pairs(statement), stage_pairs),
    Reader(lambda statement, _: bool(statement.joins), read_join),
    Reader(lambda statement, translator: bool(find_numbering(statement, translator)), read_top),
    Reader(lambda statement, _: is_grouped(statement), read_group_by),
    Reader(lambda statement, _: bool(statement.over), read_over),
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
