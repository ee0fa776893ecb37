"""Translates a statement: the table of the kinds of SELECT, each with its reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpu_windows.sql.aggregated import is_grouped, read_group_by
from gpu_windows.sql.joins import has_join, read_join
from gpu_windows.sql.match import is_match, read_match
from gpu_windows.sql.over import has_over, is_ordered, read_ordered, read_over
from gpu_windows.sql.stages import Stages
from gpu_windows.sql.top import is_top, read_top
from gpu_windows.sql.translator import Reader, Translator
from gpu_windows.sql.window_rows import read_rows

if TYPE_CHECKING:
    from sqlglot import exp

    from gpu_windows.sql.results import Results, Settings
    from gpu_windows.sql.said import Said

#: The first that recognizes a statement reads it.
READERS = (
    Reader(is_match, read_match),
    Reader(has_join, read_join),
    Reader(is_top, read_top),
    Reader(is_grouped, read_group_by),
    Reader(has_over, read_over),
    Reader(is_ordered, read_ordered),
)


def translate(tree: exp.Expr, tables: Mapping[str, Said], settings: Settings) -> Results:
    """Return the results of a statement over tables, by their names in lower case.

    Raises
    ------
    SqlError
        With the place of what is not covered.
    """
    return Translator(READERS, read_rows, tables, settings, stages=Stages()).results(tree)
