"""Ownership of a table of results by one query, stored in the table's properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from gpu_windows.commits.records import is_identity
from gpu_windows.errors import OutputError
from gpu_windows.sinks.tables.statements import properties

if TYPE_CHECKING:
    from gpu_windows.annotations import SparkSession

#: The property of a table that names its owner.
OWNER = "gpu_windows.owner"


@dataclass(frozen=True)
class TableOwner:
    """A query that may write to a table.

    Parameters
    ----------
    generation : int
        Number of earlier owners.
    query : str
        Identity of its checkpoint.
    """

    generation: int
    query: str

    @property
    def text(self) -> str:
        """Value of the property."""
        return f"{self.generation}:{self.query}"

    @classmethod
    def of(cls, session: SparkSession, identifier: str) -> Self | None:
        """Return the owner of an existing table; None if it has none.

        Raises
        ------
        OutputError
            If the property has another form.
        """
        text = properties(session, identifier).get(OWNER)
        if text is None:
            return None
        generation, _, query = text.partition(":")
        if not (generation.isdecimal() and is_identity(query)):
            rule = f"the property {OWNER} of {identifier} is GENERATION:QUERY, 32 hex digits"
            raise OutputError(rule, value=text)
        return cls(int(generation), query)

    @classmethod
    def next(cls, session: SparkSession, identifier: str, query: str, *, takes_over: bool) -> Self:
        """Return a query as the owner of an existing table to which it may write.

        Raises
        ------
        OutputError
            If the table belongs to another one.
        """
        last = cls.of(session, identifier)
        if last is None:
            return cls(0, query)
        if last.query == query:
            return last
        if not takes_over:
            rule = (
                "the table holds results of a query with another checkpoint: write to another "
                "table, or take it over with takes_over=True, after which that query may not"
            )
            raise OutputError(rule, value=identifier)
        return cls(last.generation + 1, query)

    def check(self, session: SparkSession, identifier: str) -> None:
        """Raise `OutputError` if the table is another query's now."""
        found = TableOwner.of(session, identifier)
        if found != self:
            rule = "a query of another checkpoint has taken over the table, or it was created again"
            raise OutputError(rule, value=identifier)
