"""Column names of a table, looked up as Spark does: without regard to case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_windows.errors import did_you_mean
from gpu_windows.expressions.sql_text import sql_error

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns of a table.

    Parameters
    ----------
    names : tuple of str
    """

    names: tuple[str, ...]

    def resolve(self, column: exp.Column | exp.Identifier) -> str:
        """Return the exact name of the column that a text names in any case.

        Raises
        ------
        SqlError
            If no column matches, or several do.
        """
        wanted = column.name
        if wanted in self.names:
            return wanted
        found = [name for name in self.names if name.lower() == wanted.lower()]
        if len(found) == 1:
            return found[0]
        if found:
            raise sql_error(column, f"the name is ambiguous: {' or '.join(found)}", wanted)
        near = did_you_mean(wanted, self.names)
        rule = f"there is no such column; there are {', '.join(self.names)}{near}"
        raise sql_error(column, rule, wanted)

    def has(self, column: exp.Column) -> bool:
        """Whether a column matches, in any case."""
        return any(name.lower() == column.name.lower() for name in self.names)


def column_names(names: Iterable[str]) -> ColumnNames:
    """Return the names as `ColumnNames`."""
    return ColumnNames(tuple(names))
