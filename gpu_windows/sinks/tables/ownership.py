"""A table of results belongs to one query, which its properties tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from gpu_windows.errors import OutputError
from gpu_windows.sinks.tables.statements import properties, set_property

if TYPE_CHECKING:
    from gpu_windows.annotations import SparkSession

#: The property of a table that names its owner.
OWNER = "gpu_windows.owner"
#: Properties of a table whose history forgets: the first micro-batch that its owner wrote; and,
#: set by people where the history no longer tells, the last one.
FIRST, LAST = "gpu_windows.first_micro_batch", "gpu_windows.last_micro_batch"


@dataclass(frozen=True)
class TableOwner:
    """A query that may write to a table.

    Parameters
    ----------
    generation : int
        How many queries wrote there before.
    query : str
        What tells its checkpoint from others.
    """

    generation: int
    query: str

    @property
    def text(self) -> str:
        """What the property says."""
        return f"{self.generation}:{self.query}"

    @classmethod
    def of(cls, session: SparkSession, identifier: str) -> Self | None:
        """Return the owner of a table that is there; None if nobody has written there.

        Raises
        ------
        OutputError
            If the property says something else.
        """
        text = properties(session, identifier).get(OWNER)
        if text is None:
            return None
        generation, _, query = text.partition(":")
        if not (generation.isdecimal() and query):
            rule = f"the property {OWNER} of {identifier} is GENERATION:QUERY"
            raise OutputError(rule, value=text)
        return cls(int(generation), query)

    @classmethod
    def next(
        cls, session: SparkSession, identifier: str, query: str | None, *, takes_over: bool
    ) -> int:
        """Return the generation in which a query may write to a table that is there.

        ``query``: None if it is new.

        Raises
        ------
        OutputError
            If the table belongs to another one.
        """
        last = cls.of(session, identifier)
        if last is None:
            return 0
        if last.query == query:
            return last.generation
        if not takes_over:
            rule = (
                "the table holds results of a query with another checkpoint: write to another "
                "table, or go on there with takes_over=True, after which that query may not"
            )
            raise OutputError(rule, value=identifier)
        return last.generation + 1

    def check(self, session: SparkSession, identifier: str) -> None:
        """Raise `OutputError` if the table is another query's now."""
        found = TableOwner.of(session, identifier)
        if found != self:
            rule = "a query of another checkpoint has taken over the table, or it was made anew"
            raise OutputError(rule, value=identifier)

    def last_written(
        self, session: SparkSession, identifier: str, in_history: int | None, number: int
    ) -> int | None:
        """Return the last micro-batch in a table whose history forgets; None if there is none.

        Parameters
        ----------
        session : SparkSession
        identifier : str
        in_history : int, optional
            The last one that the history tells of.
        number : int
            The micro-batch that is to be written.

        Raises
        ------
        OutputError
            If it may be there or not.
        """
        if in_history is not None:
            return in_history
        said = properties(session, identifier)
        last, first = (self._number(said.get(name)) for name in (LAST, FIRST))
        if last is not None:
            return last
        if first is None:
            set_property(session, identifier, FIRST, f"{self.query}:{number}")
        elif first < number:
            rule = (
                f"the history of {identifier} no longer tells of this query: set the property "
                f"{LAST} to {self.query}:{number} if the table holds its micro-batch {number}, "
                f"to {self.query}:{number - 1} if not, and start it again"
            )
            raise OutputError(rule, value=identifier)
        return None

    def _number(self, text: str | None) -> int | None:
        """Read QUERY:NUMBER, if it is of this query."""
        query, _, number = (text or "").rpartition(":")
        return int(number) if query == self.query and number.isdecimal() else None
