"""A file object for Arrow that reads an object of a store, one request per range."""

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
        Name in errors.
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
        """Whether it can seek: always."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position; return it."""
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place}.get(whence, self._size)
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer, up to its size or the end of the object.

        Raises
        ------
        OSError
            Error of the store, without credentials.
        """
        count = min(len(buffer), max(self._size - self._place, 0))
        if not count:
            return 0
        with store_errors(self._name, self._options):
            found = self._store.get_range(self._key, start=self._place, length=count)
        buffer[: len(found)] = memoryview(found)
        self._place += len(found)
        return len(found)
