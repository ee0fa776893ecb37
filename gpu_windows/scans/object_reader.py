"""An object of a store as a file that Arrow reads from, a request for each range."""

from __future__ import annotations

import io
from typing import Any

from gpu_windows.checkpointing.object_stores import ObjectStore, Options, store_errors


class ObjectReader(io.RawIOBase):
    """The bytes of an object, to read and to seek in.

    Parameters
    ----------
    store : ObjectStore
    key : str
    size : int
        Bytes of the object.
    name : str
        What errors call it.
    options : Options
        Those that the store was opened with.
    """

    def __init__(
        self, store: ObjectStore, key: str, size: int, name: str, options: Options = ()
    ) -> None:
        super().__init__()
        self._store, self._key, self._size = store, key, size
        self._name, self._options = name, options
        self._place = 0

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def seekable(self) -> bool:
        """Whether a place can be sought: always."""
        return True

    def tell(self) -> int:
        """Return the place that is read next."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; return it."""
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place}.get(whence, self._size)
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Read as many bytes as there are, and as a buffer holds.

        Raises
        ------
        OSError
            What the store says, without credentials.
        """
        count = min(len(buffer), max(self._size - self._place, 0))
        if not count:
            return 0
        with store_errors(self._name, self._options):
            found = self._store.get_range(self._key, start=self._place, length=count)
        buffer[: len(found)] = memoryview(found)
        self._place += len(found)
        return len(found)
