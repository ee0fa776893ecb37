"""Less frequent garbage collection of cycles while user functions process many rows."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

#: Number of new objects between two collections: those of many rows.
_OBJECTS = 100_000


class _Collections:
    """Frequency of collections, which is global to the process."""

    def __init__(self) -> None:
        self._lock = RLock()  # a collection may close a generator that is within `few`
        self._users = 0
        self._before = gc.get_threshold()

    @contextmanager
    def few(self) -> Iterator[None]:
        """Collect less often until the last user has left the context.

        Operators are generators: those of several queries may take turns, and end in any order.
        """
        with self._lock:
            if self._users == 0:
                self._before = first, *rest = gc.get_threshold()
                gc.set_threshold(max(first, _OBJECTS) if first else 0, *rest)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    gc.set_threshold(*self._before)


few_collections = _Collections().few
