"""Windows of several groupings of the keys at once (SQL: GROUPING SETS)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import pyarrow as pa

from gpu_windows.errors import ColumnNotFoundError, QueryError

#: The result column that identifies the grouping of a result (SQL: GROUPING_ID): a bit for each
#: key, the lowest for the last key, set if the grouping leaves the key out.
GROUPING_ID = pa.field("grouping_id", pa.int64(), nullable=False)
#: Maximum number of keys of a cube, which has 4,096 sets then.
MAX_CUBE_KEYS = 12


@dataclass(frozen=True)
class GroupingSets:
    """Groupings of the keys, each of which has windows of its own.

    Parameters
    ----------
    sets : tuple of tuple of int
        The indices of the keys of each, ascending.
    """

    sets: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, keys: Sequence[str], sets: Sequence[Sequence[str]]) -> GroupingSets:
        """Return groupings by the names of keys, or those of ``"rollup"`` or ``"cube"``.

        Raises
        ------
        QueryError
            If there is no set, a set comes twice, or a name is not that of a key.
        """
        if sets in (("rollup",), ("cube",)):
            return cls.rollup(keys) if sets == ("rollup",) else cls.cube(keys)
        groupings: list[tuple[int, ...]] = []
        for some in sets:
            if not isinstance(some, list | tuple):
                rule = "grouping_sets takes a list of keys for each set; or rollup or cube, alone"
                raise QueryError(rule, value=repr(some))
            for name in some:
                if isinstance(name, list | tuple):
                    rule = "each grouping set is an argument: grouping_sets(['a', 'b'], ['a'], [])"
                    raise QueryError(rule, value=repr(some))
                if not isinstance(name, str):
                    rule = "grouping sets are of keys by their names, or those of alias()"
                    raise QueryError(rule, value=type(name).__name__)
                if name not in keys:
                    rule = f"grouping sets are of keys: {', '.join(keys)}"
                    raise ColumnNotFoundError(rule, value=str(name))
            groupings.append(tuple(i for i, key in enumerate(keys) if key in some))
        if not groupings:
            raise QueryError("grouping_sets takes at least one set of keys", value="none")
        for indices in groupings:
            if groupings.count(indices) > 1:
                names = ", ".join(keys[i] for i in indices) or "no key"
                raise QueryError("each grouping set comes once", value=names)
        return cls(tuple(groupings))

    @classmethod
    def rollup(cls, keys: Sequence[str]) -> GroupingSets:
        """Return all keys, all but the last, and so on down to no key."""
        return cls(tuple(tuple(range(count)) for count in range(len(keys), -1, -1)))

    @classmethod
    def cube(cls, keys: Sequence[str]) -> GroupingSets:
        """Return all subsets of the keys.

        Raises
        ------
        QueryError
            If there are more than `MAX_CUBE_KEYS` keys, each of which doubles the sets.
        """
        if len(keys) > MAX_CUBE_KEYS:
            rule = f"a cube is of at most {MAX_CUBE_KEYS} keys: name the grouping sets"
            raise QueryError(rule, value=len(keys))
        indices, counts = range(len(keys)), range(len(keys), -1, -1)
        return cls(tuple(some for count in counts for some in combinations(indices, count)))

    @property
    def shared_keys(self) -> tuple[int, ...]:
        """Indices of the keys in all groupings: rows that differ in them are never combined."""
        first, *others = self.sets
        return tuple(i for i in first if all(i in some for some in others))

    @staticmethod
    def id_of(some: tuple[int, ...], keys: int) -> int:
        """Return the `GROUPING_ID` of a grouping; ``keys``: how many keys there are."""
        return sum(1 << (keys - 1 - i) for i in range(keys) if i not in some)

    def describe(self, keys: Sequence[str]) -> str:
        """Return the groupings with the names of keys."""
        return ", ".join(f"({', '.join(keys[i] for i in some)})" for some in self.sets)
