"""Windows of several groupings of the keys at once (SQL: GROUPING SETS)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import pyarrow as pa

from gpu_windows.errors import ColumnNotFoundError, QueryError

#: The result column that tells of which grouping a result is: a bit a key, that of the last key
#: least, set where the key is left out.
GROUPING_ID = pa.field("grouping_id", pa.int64(), nullable=False)


@dataclass(frozen=True)
class GroupingSets:
    """Groupings of the keys, each of which has windows of its own.

    Parameters
    ----------
    sets : tuple of tuple of int
        The keys of each, by their places, ascending.
    """

    sets: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, keys: Sequence[str], sets: Sequence[Sequence[str]]) -> GroupingSets:
        """Return groupings by the names of keys, or ``"rollup"`` or ``"cube"`` of all keys.

        Raises
        ------
        QueryError
            If there is none, one comes twice, or names no key.
        """
        if sets in (("rollup",), ("cube",)):
            return cls.rollup(keys) if sets == ("rollup",) else cls.cube(keys)
        found: list[tuple[int, ...]] = []
        for some in sets:
            if not isinstance(some, list | tuple):
                rule = "grouping_sets takes a list of keys for each set; or rollup or cube, alone"
                raise QueryError(rule, value=repr(some))
            for name in some:
                if not isinstance(name, str):
                    rule = "grouping sets are of keys by their names, or those of alias()"
                    raise QueryError(rule, value=type(name).__name__)
                if name not in keys:
                    rule = f"grouping sets are of keys: {', '.join(keys)}"
                    raise ColumnNotFoundError(rule, value=str(name))
            found.append(tuple(place for place, key in enumerate(keys) if key in some))
        if not found:
            raise QueryError("grouping_sets takes at least one set of keys", value="none")
        for places in found:
            if found.count(places) > 1:
                shown = ", ".join(keys[place] for place in places) or "no key"
                raise QueryError("each grouping set comes once", value=shown)
        return cls(tuple(found))

    @classmethod
    def rollup(cls, keys: Sequence[str]) -> GroupingSets:
        """Return all keys, all but the last, and so on: the last is no key."""
        return cls(tuple(tuple(range(count)) for count in range(len(keys), -1, -1)))

    @classmethod
    def cube(cls, keys: Sequence[str]) -> GroupingSets:
        """Return all sets that there are of keys."""
        places, counts = range(len(keys)), range(len(keys), -1, -1)
        return cls(tuple(some for count in counts for some in combinations(places, count)))

    @property
    def shared(self) -> tuple[int, ...]:
        """The keys that all groupings have: rows that differ in them never meet."""
        first, *others = self.sets
        return tuple(place for place in first if all(place in some for some in others))

    @staticmethod
    def id_of(some: tuple[int, ...], keys: int) -> int:
        """Return what `GROUPING_ID` is for a grouping of so many keys."""
        return sum(1 << (keys - 1 - place) for place in range(keys) if place not in some)

    def describe(self, keys: Sequence[str]) -> str:
        """Return the groupings by the names of keys."""
        return ", ".join(f"({', '.join(keys[place] for place in some)})" for some in self.sets)
