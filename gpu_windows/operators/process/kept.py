"""What is kept under one name of state, for every key: plain, or with the time of each element.

Where state expires a value is kept with the processing time at which it was last written. Such a
value is over once its time to live has passed (Flink: ``stamp + ttl <= now``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyarrow import types

from gpu_windows.functions.keyed_state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
)
from gpu_windows.operators.keyed.values import key_part, plain_type
from gpu_windows.rules import LONG_MAX

Key = Hashable
#: What is held of a key.
Held = TypeVar("Held")

#: Columns of entries: what is kept, and when each element of it was written.
WHAT, WRITTEN = "what", "written"


class Now:
    """Processing time, and the key at hand: shared by all that is kept for keys.

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


class Kept(ABC, Generic[Held]):
    """State of one name, by key.

    Attributes
    ----------
    held : dict
        Key to what is held of it; never something empty.
    """

    def __init__(self, descriptor: StateDescriptor) -> None:
        self.dtypes = tuple(map(plain_type, descriptor.dtypes))
        self.held: dict[Key, Held] = {}

    @property
    @abstractmethod
    def fields(self) -> Mapping[str, pa.DataType]:
        """Names and types of the columns of entries."""

    @abstractmethod
    def entry(self, held: Held) -> Sequence[Any]:
        """Return what is held of a key as values of `fields`."""

    @abstractmethod
    def load(self, key: Key, entry: Sequence[Any]) -> None:
        """Take what `entry` gave for a key."""

    def expiry(self, held: Held) -> int:
        """Return the processing time at which something of it is over; LONG_MAX: never."""
        del held
        return LONG_MAX


class Single(Kept[Any]):
    """A value of each key."""

    @property
    def fields(self) -> Mapping[str, pa.DataType]:
        """The value."""
        return {WHAT: self.dtypes[0]}

    def entry(self, held: Any) -> Sequence[Any]:
        """Return the value."""
        return (held,)

    def load(self, key: Key, entry: Sequence[Any]) -> None:
        """Take a value."""
        (self.held[key],) = entry

    def get(self, key: Key) -> Any:
        """Return the value of a key; None if there is none."""
        return self.held.get(key)

    def put(self, key: Key, value: Any) -> None:
        """Keep a value."""
        self.held[key] = value


class Elements(Kept[list[Any]]):
    """A list of each key."""

    @property
    def fields(self) -> Mapping[str, pa.DataType]:
        """The elements."""
        return {WHAT: pa.list_(self.dtypes[0])}

    def entry(self, held: list[Any]) -> Sequence[Any]:
        """Return the elements."""
        return (held,)

    def load(self, key: Key, entry: Sequence[Any]) -> None:
        """Take elements."""
        (self.held[key],) = entry

    def get(self, key: Key) -> list[Any]:
        """Return the elements, in a list of their own."""
        return list(self.held.get(key, ()))

    def append(self, key: Key, values: list[Any]) -> None:
        """Add elements."""
        if values:
            self.held.setdefault(key, []).extend(values)


class Entries(Kept[dict[Any, Any]]):
    """A map of each key."""

    def __init__(self, descriptor: StateDescriptor) -> None:
        super().__init__(descriptor)
        self._is_floating = types.is_floating(self.dtypes[0])

    @property
    def fields(self) -> Mapping[str, pa.DataType]:
        """Keys and values."""
        return {WHAT: pa.map_(*self.dtypes)}

    def entry(self, held: dict[Any, Any]) -> Sequence[Any]:
        """Return the pairs."""
        return ([*held.items()],)

    def load(self, key: Key, entry: Sequence[Any]) -> None:
        """Take pairs."""
        (pairs,) = entry
        self.held[key] = dict(self._keyed(pairs))

    def _keyed(self, pairs: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
        """Return pairs whose keys a dict finds: all NaN are one."""
        return [(key_part(of), value) for of, value in pairs] if self._is_floating else pairs

    def get(self, key: Key) -> dict[Any, Any]:
        """Return the map of a key: it is not to be changed."""
        return self.held.get(key, {})

    def read(self, key: Key, of: Any, default: Any) -> Any:
        """Return the value of an entry."""
        return self.held.get(key, {}).get(of, default)

    def put(self, key: Key, of: Any, value: Any) -> None:
        """Set an entry."""
        self.held.setdefault(key, {})[of] = value

    def remove(self, key: Key, of: Any) -> None:
        """Forget an entry."""
        entries = self.held.get(key)
        if entries is not None:
            entries.pop(of, None)
            if not entries:
                del self.held[key]


# ---- the same, with times


class _Stamps:
    """The times of elements, of state that expires."""

    def __init__(self, ttl: StateTtlConfig, now: Now) -> None:
        self._lives, self._now = ttl.time_to_live, now
        self.update_on_read = ttl.update_on_read

    def is_over(self, stamp: int) -> bool:
        """Whether what was written then is over."""
        return stamp + self._lives <= self._now.time

    def ends(self, stamp: int) -> int:
        """Return when what was written then is over."""
        return min(stamp + self._lives, LONG_MAX)

    @property
    def now(self) -> int:
        """The time of what is written now."""
        return self._now.time


class _Expiring(Kept[Held]):
    """What is kept of each key, and when each element of it was written."""

    def __init__(self, descriptor: StateDescriptor, stamps: _Stamps) -> None:
        super().__init__(descriptor)
        self._stamps = stamps

    @abstractmethod
    def _written(self, held: Held) -> Iterable[int]:
        """Return when each element was written."""

    def expiry(self, held: Held) -> int:
        """Return when the first element is over."""
        return self._stamps.ends(min(self._written(held)))


class ExpiringSingle(_Expiring[Any], Single):
    """A value of each key, and when it was written."""

    @property
    def fields(self) -> Mapping[str, pa.DataType]:
        """The value and its time."""
        return {**super().fields, WRITTEN: pa.int64()}

    def entry(self, held: tuple[Any, int]) -> Sequence[Any]:
        """Return value and time."""
        return held

    def load(self, key: Key, entry: Sequence[Any]) -> None:
        """Take a value, unless it is over."""
        value, stamp = entry
        if not self._stamps.is_over(stamp):
            self.held[key] = (value, stamp)

    def _written(self, held: tuple[Any, int]) -> Iterable[int]:
        return (held[1],)

    def get(self, key: Key) -> Any:
        """Return the value of a key; None if there is none, or if it is over."""
        found = self.held.get(key)
        if found is None:
            return None
        value, stamp = found
        if self._stamps.is_over(stamp):
            del self.held[key]
            return None
        if self._stamps.update_on_read:
            self.put(key, value)
        return value

    def put(self, key: Key, value: Any) -> None:
        """Keep a value."""
        self.held[key] = (value, self._stamps.now)


class ExpiringElements(_Expiring[list[Any]], Elements):
    """A list of each key, of (element, when it was written)."""

    @property
    def fields(self) -> Mapping[str, pa.DataType]:
        """The elements and their times."""
        return {**super().fields, WRITTEN: pa.list_(pa.int64())}

    def entry(self, held: list[Any]) -> Sequence[Any]:
        """Return elements and times."""
        return [value for value, _ in held], [stamp for _, stamp in held]

    def load(self, key: Key, entry: Sequence[Any]) -> None:
        """Take those elements that are not over."""
        alive = self._alive(zip(*entry, strict=True))
        if alive:
            self.held[key] = alive

    def _written(self, held: list[Any]) -> Iterable[int]:
        return (stamp for _, stamp in held)

    def get(self, key: Key) -> list[Any]:
        """Return the elements that are not over."""
        alive = self._alive(iter(self.held.pop(key, ())))
        if self._stamps.update_on_read:
            alive = [(value, self._stamps.now) for value, _ in alive]
        if alive:
            self.held[key] = alive
        return [value for value, _ in alive]

    def append(self, key: Key, values: list[Any]) -> None:
        """Add elements."""
        super().append(key, [(value, self._stamps.now) for value in values])

    def _alive(self, elements: Iterator[tuple[Any, int]]) -> list[tuple[Any, int]]:
        return [each for each in elements if not self._stamps.is_over(each[1])]


class ExpiringEntries(_Expiring[dict[Any, Any]], Entries):
    """A map of each key, to (value, when it was written)."""

    @property
    def fields(self) -> Mapping[str, pa.DataType]:
        """Keys and values, and the times of the entries."""
        return {**super().fields, WRITTEN: pa.list_(pa.int64())}

    def entry(self, held: dict[Any, Any]) -> Sequence[Any]:
        """Return pairs and times."""
        pairs = [(of, value) for of, (value, _) in held.items()]
        return pairs, [stamp for _, stamp in held.values()]

    def load(self, key: Key, entry: Sequence[Any]) -> None:
        """Take those entries that are not over."""
        pairs, stamps = entry
        found = {of: (v, stamp) for (of, v), stamp in zip(self._keyed(pairs), stamps, strict=True)}
        self._keep(key, found)

    def _written(self, held: dict[Any, Any]) -> Iterable[int]:
        return (stamp for _, stamp in held.values())

    def get(self, key: Key) -> dict[Any, Any]:
        """Return the entries that are not over."""
        found = self._keep(key, self.held.pop(key, {}))
        if self._stamps.update_on_read:
            for of, (value, _) in found.items():
                found[of] = (value, self._stamps.now)
        return {of: value for of, (value, _) in found.items()}

    def read(self, key: Key, of: Any, default: Any) -> Any:
        """Return the value of an entry, unless it is over."""
        value, stamp = self.held.get(key, {}).get(of, (default, None))
        if stamp is None:
            return default
        if self._stamps.is_over(stamp):
            self.remove(key, of)
            return default
        if self._stamps.update_on_read:
            self.put(key, of, value)
        return value

    def put(self, key: Key, of: Any, value: Any) -> None:
        """Set an entry; one that is over leaves its place among the others."""
        former = self.held.get(key, {}).get(of)
        if former is not None and self._stamps.is_over(former[1]):
            self.remove(key, of)
        super().put(key, of, (value, self._stamps.now))

    def _keep(self, key: Key, found: dict[Any, Any]) -> dict[Any, Any]:
        """Keep those entries that are not over."""
        alive = {of: each for of, each in found.items() if not self._stamps.is_over(each[1])}
        if alive:
            self.held[key] = alive
        return alive


def kept_of(descriptor: StateDescriptor, now: Now) -> Kept[Any]:
    """Return what keeps state that was declared so."""
    plain, expiring = _KEPT.get(type(descriptor), (Single, ExpiringSingle))
    ttl = descriptor.ttl
    kept: Kept[Any] = plain(descriptor) if ttl is None else expiring(descriptor, _Stamps(ttl, now))
    return kept


#: What keeps state, and what keeps it where it expires; a value where nothing is said.
_KEPT: Mapping[type[StateDescriptor], tuple[Any, Any]] = {
    ListStateDescriptor: (Elements, ExpiringElements),
    MapStateDescriptor: (Entries, ExpiringEntries),
}
