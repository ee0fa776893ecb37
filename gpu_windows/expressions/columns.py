"""Names of columns, as Spark tells them apart: not by upper and lower case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_windows.expressions.places import refused

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Names:
    """Names of the columns of a table.

    Parameters
    ----------
    known : tuple of str
    """

    known: tuple[str, ...]

    def of(self, column: exp.Column | exp.Identifier) -> str:
        """Return the name of a column that a text calls by any case.

        Raises
        ------
        SqlError
            If there is none, or there are several.
        """
        wanted = column.name
        if wanted in self.known:
            return wanted
        found = [name for name in self.known if name.lower() == wanted.lower()]
        if len(found) == 1:
            return found[0]
        if found:
            raise refused(column, f"this may be {' or '.join(found)}", wanted)
        rule = f"there is no such column; there are {', '.join(self.known)}"
        raise refused(column, rule, wanted)

    def has(self, column: exp.Column) -> bool:
        """Whether there is such a column."""
        return any(name.lower() == column.name.lower() for name in self.known)


def names_of(names: Iterable[str]) -> Names:
    """Return names that users see: those of our own begin with two underscores."""
    return Names(tuple(names))
