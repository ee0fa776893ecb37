"""Lists of times in a store, in order: which keys wait for which, read up to a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.store import Contents, Store, to_blob
from gpu_windows.rules import LONG_MAX

Ints = NDArray[np.int64]

#: Times of a blob.
_BLOCK = 4_096


@dataclass(frozen=True)
class TimerList:
    """Times that keys wait for, in blobs.

    Parameters
    ----------
    kind : str
        What the store calls the blobs.
    first : int
        The number of the first one.
    least : tuple of int
        The first time in each.
    bytes : tuple of int
        How large each is.
    next : int
        The first time that nobody has asked for; LONG_MAX if there is none.
    """

    kind: str
    first: int
    least: tuple[int, ...]
    bytes: tuple[int, ...]
    next: int

    @classmethod
    def write(cls, store: Store, kind: str, first: int, times: Ints, keys: Ints) -> TimerList:
        """Put times into a store, from the blob ``first`` on; LONG_MAX is none."""
        some = np.flatnonzero(times != LONG_MAX)
        order = some[np.argsort(times[some], kind="stable")]
        times, keys = times[order], keys[order]
        sizes = []
        for number, begin in enumerate(range(0, len(times), _BLOCK)):
            part = slice(begin, begin + _BLOCK)
            blob = to_blob(pa.table({"time": times[part], "key": keys[part]}))
            store.write(kind, first + number, blob, held=0)
            sizes.append(len(blob))
        least = tuple(times[::_BLOCK].tolist())
        return cls(kind, first, least, tuple(sizes), least[0] if least else LONG_MAX)

    def due(self, store: Store, until: int) -> tuple[Ints, TimerList]:
        """Return the keys whose times up to ``until`` nobody has asked for, and what is left."""
        keys, rest = [np.empty(0, np.int64)], LONG_MAX
        for number, least in enumerate(self.least):
            if least > until:
                rest = min(rest, least)
                break
            if number + 1 < len(self.least) and self.least[number + 1] < self.next:
                continue  # all of its times were asked for
            times, of = _content(store.load_listed(self.kind, self.first + number))
            keys.append(of[(times >= self.next) & (times <= until)])
            rest = min(rest, int(times[times > until].min(initial=LONG_MAX)))
        return np.concatenate(keys), replace(self, next=rest)

    def remove(self, store: Store) -> None:
        """Forget all of it; it is read, so that a part that is missing shows."""
        for number, size in enumerate(self.bytes):
            store.load_listed(self.kind, self.first + number)
            store.remove(self.kind, self.first + number, held=size)


def _content(table: pa.Table) -> tuple[Ints, Ints]:
    return table["time"].to_numpy(), table["key"].to_numpy()


def timer_contents(table: pa.Table) -> Contents:
    """Tell what a blob holds; some of its times are over, or waited for no more."""
    return Contents({"times": len(table)})
