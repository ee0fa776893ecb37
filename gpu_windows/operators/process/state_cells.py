"""Storage of one declared state: a value, list or map per key, with or without TTL timestamps.

State that expires is stored with the processing time at which each element was last written. An
element has expired once its time to live has passed (Flink: ``stamp + ttl <= now``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import pyarrow as pa
from pyarrow import types

from gpu_windows.functions.state_descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
)
from gpu_windows.operators.keyed.values import key_part, plain_type
from gpu_windows.rules import LONG_MAX

Key = Hashable
#: Contents of the state of a key.
Contents = TypeVar("Contents")

#: Columns of entries: the contents, and when each element was written.
WHAT, WRITTEN = "what", "written"


class Now:
    """Processing time and current key, shared by all cells of a function.

    Attributes
    ----------
    key : hashable
    time : int
        Processing time in ticks.
    """

    __slots__ = ("key", "time")

    def __init__(self) -> None:
        self.key: Key = ()
        self.time = 0


class StateCell(Generic[Contents]):
    """Storage of one declared state, by key.

    Attributes
    ----------
    by_key : dict
        Key to the contents of its state, which are never empty.
    fields : mapping of str to pyarrow.DataType
        Names and types of the columns of entries.
    """

    def __init__(self, descriptor: StateDescriptor) -> None:
        self.dtypes = tuple(map(plain_type, descriptor.dtypes))
        self.fields: Mapping[str, pa.DataType] = {WHAT: self._stored_type}
        self.by_key: dict[Key, Contents] = {}

    @property
    def _stored_type(self) -> pa.DataType:
        return self.dtypes[0]

    def entry(self, contents: Contents) -> Sequence[Any]:
        """Return the contents of a key as values of `fields`."""
        return (contents,)

    def load(self, key: Key, entry: Sequence[Any]) -> None:
        """Load the `entry` of a key."""
        (self.by_key[key],) = entry

    def expiry(self, entry: Sequence[Any]) -> int:
        """Return the processing time at which the first element expires; LONG_MAX: never."""
        del entry
        return LONG_MAX


class ValueCell(StateCell[Any]):
    """A value of each key."""

    def get(self, key: Key) -> Any:
        """Return the value of a key, or None."""
        return self.by_key.get(key)

    def put(self, key: Key, value: Any) -> None:
        """Set a value."""
        self.by_key[key] = value


class ListCell(StateCell[list[Any]]):
    """A list of each key."""

    @property
    def _stored_type(self) -> pa.DataType:
        return pa.list_(self.dtypes[0])

    def get(self, key: Key) -> list[Any]:
        """Return a copy of the list of elements."""
        return list(self.by_key.get(key, ()))

    def append(self, key: Key, values: list[Any]) -> None:
        """Add elements."""
        if values:
            self.by_key.setdefault(key, []).extend(values)


class MapCell(StateCell[dict[Any, Any]]):
    """A map of each key."""

    def __init__(self, descriptor: StateDescriptor) -> None:
        super().__init__(descriptor)
        self._is_floating = types.is_floating(self.dtypes[0])

    @property
    def _stored_type(self) -> pa.DataType:
        return pa.map_(*self.dtypes)

    def entry(self, contents: dict[Any, Any]) -> Sequence[Any]:
        """Return the pairs."""
        return ([*contents.items()],)

    def load(self, key: Key, entry: Sequence[Any]) -> None:
        """Load pairs."""
        (pairs,) = entry
        self.by_key[key] = dict(self._normalize_keys(pairs))

    def _normalize_keys(self, pairs: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
        """Normalize the keys of pairs, so that a dict finds them: all NaN are one."""
        return [(key_part(of), value) for of, value in pairs] if self._is_floating else pairs

    def get(self, key: Key) -> dict[Any, Any]:
        """Return the map of a key, which must not be changed."""
        return self.by_key.get(key, {})

    def read(self, key: Key, of: Any, default: Any) -> Any:
        """Return the value of an entry."""
        return self.by_key.get(key, {}).get(of, default)

    def put(self, key: Key, of: Any, value: Any) -> None:
        """Set an entry."""
        self.by_key.setdefault(key, {})[of] = value

    def remove(self, key: Key, of: Any) -> None:
        """Remove an entry."""
        entries = self.by_key.get(key)
        if entries is not None:
            entries.pop(of, None)
            if not entries:
                del self.by_key[key]


# ---- cells with TTL timestamps


class _Expiring(StateCell[Contents]):
    """A cell whose elements have the time at which they were written."""

    #: Type of these times.
    _written: ClassVar[pa.DataType] = pa.list_(pa.int64())

    def __init__(self, descriptor: StateDescriptor, ttl: StateTtlConfig, now: Now) -> None:
        super().__init__(descriptor)
        self.fields = {**self.fields, WRITTEN: self._written}
        self._time_to_live, self._update_on_read = ttl.time_to_live, ttl.update_on_read
        self._now = now

    def _is_expired(self, stamp: int) -> bool:
        """Whether an element that was written then has expired."""
        return stamp + self._time_to_live <= self._now.time

    def _end_of(self, stamp: int) -> int:
        """Return when an element that was written then expires."""
        return min(stamp + self._time_to_live, LONG_MAX)

    def expiry(self, entry: Sequence[Any]) -> int:
        """Return when the first element expires."""
        _, written = entry
        return self._end_of(min(written))


class ExpiringValueCell(_Expiring[Any], ValueCell):
    """A value of each key, and when it was written."""

    _written = pa.int64()

    def entry(self, contents: tuple[Any, int]) -> Sequence[Any]:
        """Return value and time."""
        return contents

    def load(self, key: Key, entry: Sequence[Any]) -> None:
        """Load a value, unless it has expired."""
        value, stamp = entry
        if not self._is_expired(stamp):
            self.by_key[key] = (value, stamp)

    def expiry(self, entry: Sequence[Any]) -> int:
        """Return when the value expires."""
        _, written = entry
        return self._end_of(written)

    def get(self, key: Key) -> Any:
        """Return the value of a key; None if it is not set or has expired."""
        found = self.by_key.get(key)
        if found is None:
            return None
        value, stamp = found
        if self._is_expired(stamp):
            del self.by_key[key]
            return None
        if self._update_on_read:
            self.put(key, value)
        return value

    def put(self, key: Key, value: Any) -> None:
        """Set a value."""
        self.by_key[key] = (value, self._now.time)


class ExpiringListCell(_Expiring[list[Any]], ListCell):
    """A list of each key, of (element, when it was written)."""

    def entry(self, contents: list[Any]) -> Sequence[Any]:
        """Return elements and times."""
        return [value for value, _ in contents], [stamp for _, stamp in contents]

    def load(self, key: Key, entry: Sequence[Any]) -> None:
        """Load the elements that have not expired."""
        alive = self._drop_expired(zip(*entry, strict=True))
        if alive:
            self.by_key[key] = alive

    def get(self, key: Key) -> list[Any]:
        """Return the elements that have not expired."""
        alive = self._drop_expired(iter(self.by_key.pop(key, ())))
        if self._update_on_read:
            alive = [(value, self._now.time) for value, _ in alive]
        if alive:
            self.by_key[key] = alive
        return [value for value, _ in alive]

    def append(self, key: Key, values: list[Any]) -> None:
        """Add elements."""
        super().append(key, [(value, self._now.time) for value in values])

    def _drop_expired(self, elements: Iterator[tuple[Any, int]]) -> list[tuple[Any, int]]:
        return [each for each in elements if not self._is_expired(each[1])]


class ExpiringMapCell(_Expiring[dict[Any, Any]], MapCell):
    """A map of each key, to (value, when it was written)."""

    def entry(self, contents: dict[Any, Any]) -> Sequence[Any]:
        """Return pairs and times."""
        pairs = [(of, value) for of, (value, _) in contents.items()]
        return pairs, [stamp for _, stamp in contents.values()]

    def load(self, key: Key, entry: Sequence[Any]) -> None:
        """Load the entries that have not expired."""
        pairs, stamps = entry
        found = {
            of: (v, stamp)
            for (of, v), stamp in zip(self._normalize_keys(pairs), stamps, strict=True)
        }
        self._put_alive(key, found)

    def get(self, key: Key) -> dict[Any, Any]:
        """Return the entries that have not expired."""
        found = self._put_alive(key, self.by_key.pop(key, {}))
        if self._update_on_read:
            for of, (value, _) in found.items():
                found[of] = (value, self._now.time)
        return {of: value for of, (value, _) in found.items()}

    def read(self, key: Key, of: Any, default: Any) -> Any:
        """Return the value of an entry, unless it has expired."""
        value, stamp = self.by_key.get(key, {}).get(of, (default, None))
        if stamp is None:
            return default
        if self._is_expired(stamp):
            self.remove(key, of)
            return default
        if self._update_on_read:
            self.put(key, of, value)
        return value

    def put(self, key: Key, of: Any, value: Any) -> None:
        """Set an entry; an expired one loses its place among the others."""
        previous = self.by_key.get(key, {}).get(of)
        if previous is not None and self._is_expired(previous[1]):
            self.remove(key, of)
        super().put(key, of, (value, self._now.time))

    def _put_alive(self, key: Key, found: dict[Any, Any]) -> dict[Any, Any]:
        """Store the entries that have not expired."""
        alive = {of: each for of, each in found.items() if not self._is_expired(each[1])}
        if alive:
            self.by_key[key] = alive
        return alive


def make_cell(descriptor: StateDescriptor, now: Now) -> StateCell[Any]:
    """Return the cell of a declared state."""
    plain, expiring = _CELLS.get(type(descriptor), (ValueCell, ExpiringValueCell))
    ttl = descriptor.ttl
    cell: StateCell[Any] = plain(descriptor) if ttl is None else expiring(descriptor, ttl, now)
    return cell


#: Classes of cells without and with a time to live, by descriptor; the default is a value.
_CELLS: Mapping[type[StateDescriptor], tuple[Any, Any]] = {
    ListStateDescriptor: (ListCell, ExpiringListCell),
    MapStateDescriptor: (MapCell, ExpiringMapCell),
}
