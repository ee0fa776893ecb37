"""Rows that can be read once: rows of Arrow readers, and transformations of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Lock
from weakref import WeakSet

import pyarrow as pa

from gpu_windows.errors import ReadTwiceError

#: What is wrong with a second reading, and what to do.
READ_TWICE = (
    "a reader is read once, and this would be the second time: stream its table, "
    "gw.stream(reader.read_all())"
)
#: Readers from which rows were read.
_read: WeakSet[pa.RecordBatchReader] = WeakSet()
_LOCK = Lock()


class RowStream:
    """Batches of rows that are made while they are read, from readers.

    Iterating it reads them; once any of them was read, by whatever query, that is an error.

    Parameters
    ----------
    schema : pyarrow.Schema
    batches : callable
        Returns the batches, all of this schema.
    readers : tuple of pyarrow.RecordBatchReader
        Those that ``batches`` reads.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Callable[[], Iterator[pa.RecordBatch]],
        readers: tuple[pa.RecordBatchReader, ...],
    ) -> None:
        self.schema = schema
        self.readers = readers
        self._batches = batches

    @classmethod
    def of(cls, reader: pa.RecordBatchReader) -> RowStream:
        """Return the rows of a reader."""

        def read() -> Iterator[pa.RecordBatch]:
            _begin(reader)
            yield from reader

        return cls(reader.schema, read, (reader,))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Read the batches.

        Raises
        ------
        ReadTwiceError
        """
        return self._batches()

    def map(
        self, schema: pa.Schema, make: Callable[[pa.RecordBatch], Iterable[pa.RecordBatch]]
    ) -> RowStream:
        """Return the batches that ``make`` returns for each batch, which have another schema."""
        return RowStream(
            schema, lambda: (made for each in self for made in make(each)), self.readers
        )

    def without_rows(self) -> RowStream:
        """Return the stream without rows, with the same readers."""
        return RowStream(self.schema, lambda: iter(()), self.readers)


def join_readers(data: Iterable[pa.Table | RowStream]) -> tuple[pa.RecordBatchReader, ...]:
    """Return the readers of the inputs of one query.

    Raises
    ------
    ReadTwiceError
        If two inputs read the same one.
    """
    readers: list[pa.RecordBatchReader] = []
    for each in data:
        for reader in each.readers if isinstance(each, RowStream) else ():
            if any(reader is other for other in readers):
                raise ReadTwiceError(READ_TWICE, value="two inputs of a query read one reader")
            readers.append(reader)
    return tuple(readers)


def _begin(reader: pa.RecordBatchReader) -> None:
    """Record that a reader is being read; raise if it was read before."""
    with _LOCK:
        if reader in _read:
            raise ReadTwiceError(READ_TWICE, value=f"a {type(reader).__name__} that was read")
        _read.add(reader)
