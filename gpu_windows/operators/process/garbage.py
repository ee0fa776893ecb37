"""Python looks for cycles of garbage less often while functions of users take many rows."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

#: Objects that are made until Python looks for cycles of garbage again: those of many rows.
_OBJECTS = 100_000


class _Collections:
    """How often Python looks, which is of the whole process."""

    def __init__(self) -> None:
        self._lock = RLock()  # whoever is in a generator may be let go of by a collection
        self._users = 0
        self._before = gc.get_threshold()

    @contextmanager
    def few(self) -> Iterator[None]:
        """Have Python look less often, until the last one who asked for it is done.

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
