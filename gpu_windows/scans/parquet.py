"""Reads Parquet files by Arrow: the row groups of a split that may meet a condition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import types

from gpu_windows.checkpointing.object_stores import Options
from gpu_windows.column_types.logical import logical_type
from gpu_windows.errors import ScanError
from gpu_windows.scans.declared_columns import cast_to_declared, find_columns, why_not
from gpu_windows.scans.files import check_file, open_file
from gpu_windows.scans.splits import Split

#: Rows of a batch at most.
_BATCH_ROWS = 1 << 17
#: Bytes of a row group above which its columns are read in pages.
_LARGE_GROUP = 64 << 20
_INT96 = "INT96"
_VERSION = b"org.apache.spark.version"
#: Spark's metadata of files with days of the Julian calendar, and the versions since which it is
#: written: for other times, and for INT96.
_LEGACY = {
    False: (b"org.apache.spark.legacyDateTime", (3, 0)),
    True: (b"org.apache.spark.legacyINT96", (3, 1)),
}
#: Before these days calendars, or local times of towns, differ.
_FIRST_DAY = pa.scalar(date(1582, 10, 15))
_FIRST_INSTANT = datetime(1900, 1, 1, tzinfo=UTC)

#: Readers of other formats, by the endings of their names.
_READERS = {
    ".csv": "pyarrow.csv.open_csv(path) or spark.read.csv(path)",
    ".json": "pyarrow.json.open_json(path) or spark.read.json(path)",
    ".orc": "spark.read.orc(path)",
    ".avro": "spark.read.format('avro').load(path)",
}


def _remedy(path: str) -> str:
    """Return the reader for a file of another format, if its name has a known ending."""
    name = path.lower().removesuffix(".gz").replace(".jsonl", ".json").replace(".ndjson", ".json")
    readers = (reader for ending, reader in _READERS.items() if name.endswith(ending))
    return "".join(f": gw.stream({reader}) takes this one" for reader in readers)


class ParquetFile:
    """A file of a scan, opened for one of its splits.

    Parameters
    ----------
    split : Split
    options : Options
        Of the store of objects.

    Raises
    ------
    ScanError
        If it is missing, has changed, is encrypted or is not a Parquet file.
    """

    def __init__(self, split: Split, options: Options = ()) -> None:
        self._split = split
        self._path = split.file.path
        self._options = options
        self._source = open_file(split.file, options)
        try:
            self._file = pq.ParquetFile(self._source, coerce_int96_timestamp_unit="us")
        except (pa.ArrowException, OSError) as error:
            rule = f"files of a scan must be Parquet files without encryption{_remedy(self._path)}"
            raise ScanError(rule, value=f"{self._path}: {error}") from error

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns of the file."""
        return self._file.schema_arrow

    @property
    def declared_schema(self) -> pa.Schema:
        """The schema with logical types, as a scan declares it; INT96 are instants.

        Raises
        ------
        ScanError
            If names are equal, or differ by case alone.
        """
        find_columns(self.schema.names, self.schema.names, self._path)
        return pa.schema(
            [pa.field(field.name, self._declared_type(field)) for field in self.schema]
        )

    def _declared_type(self, field: pa.Field) -> pa.DataType:
        dtype = logical_type(field.type)
        return _instants(dtype) if self._has_int96(field.name) else dtype

    def check(self, wanted: Sequence[pa.Field]) -> None:
        """Raise `ScanError` if a column of the file cannot be cast to its declared type."""
        names = find_columns(self.schema.names, [field.name for field in wanted], self._path)
        for field in wanted:
            if field.name in names:
                found = self.schema.field(names[field.name]).type
                is_instant = self._has_int96(names[field.name])
                if (reason := why_not(found, field.type, is_instant=is_instant)) is not None:
                    rule = f"a column has the type that the scan declares ({field.type}): {reason}"
                    raise ScanError(rule, value=self._path, column=field.name)

    def batches(
        self, wanted: Sequence[pa.Field], pruning: Pruning | None, *, threads: bool
    ) -> Iterator[tuple[int, list[pa.Array]]]:
        """Yield batches of the split: their number of rows and their wanted columns.

        Parameters
        ----------
        wanted : sequence of pyarrow.Field
            Columns that the file lacks are null.
        pruning : Pruning, optional
            Row groups without a matching row, by their statistics, are skipped.
        threads : bool
            Whether columns are decoded by several threads.

        Raises
        ------
        ScanError
            If a column cannot be cast to its declared type, or the file is damaged or has changed.
        """
        names = find_columns(self.schema.names, [field.name for field in wanted], self._path)
        for group in self._groups(pruning):
            if not names:
                yield from self._nulls(group, wanted)
                continue
            for batch in self._read(group, [*names.values()], threads=threads):
                columns = [
                    self._column(batch, names[field.name], field)
                    if field.name in names
                    else pa.nulls(batch.num_rows, field.type)
                    for field in wanted
                ]
                yield batch.num_rows, columns
        check_file(self._split.file, self._options)

    def _groups(self, pruning: Pruning | None) -> list[int]:
        """Return the row groups of the split that may have matching rows."""
        metadata = self._file.metadata
        edges = [_begin(metadata.row_group(number)) for number in range(metadata.num_row_groups)]
        ends = [*edges, self._split.file.length][1:]
        own = [
            number
            for number, (begin, end) in enumerate(zip(edges, ends, strict=True))
            if self._split.has_middle(begin, end - begin)
        ]
        if pruning is None or not own or not pruning.suits(self.schema):
            return own
        fragment = ds.ParquetFileFormat().make_fragment(self._source, row_groups=own)
        try:
            left = fragment.subset(pruning.condition, schema=self.schema)
        except pa.ArrowException:  # such as a division by a column that is always zero
            return own
        return [group.id for group in left.row_groups]

    def _read(self, group: int, names: list[str], *, threads: bool) -> Iterator[pa.RecordBatch]:
        """Yield batches of a row group, with at most some megabytes in memory."""
        metadata = self._file.metadata.row_group(group)
        size = metadata.total_byte_size
        file = self._buffered_file if size > _LARGE_GROUP else self._file
        max_rows = max(1, _LARGE_GROUP * metadata.num_rows // max(size, 1))
        try:
            yield from file.iter_batches(
                min(_BATCH_ROWS, max_rows), row_groups=[group], columns=names, use_threads=threads
            )
        except (pa.ArrowException, OSError) as error:
            rule = "a file of a scan must be complete and not encrypted"
            raise ScanError(rule, value=f"{self._path}: {error}") from error

    @property
    def _buffered_file(self) -> pq.ParquetFile:
        """The file, opened so that only a few pages of each column are in memory."""
        return pq.ParquetFile(
            self._source,
            metadata=self._file.metadata,
            coerce_int96_timestamp_unit="us",
            buffer_size=1 << 20,
            pre_buffer=False,
        )

    def _nulls(
        self, group: int, wanted: Sequence[pa.Field]
    ) -> Iterator[tuple[int, list[pa.Array]]]:
        """Yield rows if the file has none of the columns."""
        rows = self._file.metadata.row_group(group).num_rows
        for begin, end in pairwise([*range(0, rows, _BATCH_ROWS), rows]):
            yield end - begin, [pa.nulls(end - begin, field.type) for field in wanted]

    def _column(self, batch: pa.RecordBatch, name: str, field: pa.Field) -> pa.Array:
        is_instant = self._has_int96(name)
        column = cast_to_declared(batch.column(name), field, self._path, is_instant=is_instant)
        self._check_calendar(column, field, is_int96=is_instant)
        return column

    def _has_int96(self, name: str) -> bool:
        """Whether times of a column, or within it, are Spark's INT96."""
        return any(path == name or path.startswith(f"{name}.") for path in self._int96)

    @cached_property
    def _int96(self) -> tuple[str, ...]:
        columns = self._file.schema
        every = (columns.column(n) for n in range(len(columns)))
        return tuple(each.path for each in every if each.physical_type == _INT96)

    def _check_calendar(self, column: pa.Array, field: pa.Field, *, is_int96: bool) -> None:
        """Raise `ScanError` for days of the Julian calendar, which Spark would convert."""
        if not _has_days(field.type) or not self._is_legacy(is_int96=is_int96):
            return
        first: Any = _FIRST_DAY
        if types.is_timestamp(field.type):
            zoned = pa.scalar(_FIRST_INSTANT, pa.timestamp("us", "UTC"))
            first = zoned.cast(field.type)
        old = types.is_nested(field.type) or pc.any(pc.less(column, first)).as_py()
        if old:
            rule = "days before 1582 or 1900 by the Julian calendar are read by spark.read.parquet"
            raise ScanError(rule, value=self._path, column=field.name)

    def _is_legacy(self, *, is_int96: bool) -> bool:
        notes = self._file.metadata.metadata or {}
        key, since = _LEGACY[is_int96]
        version = notes.get(_VERSION)
        if version is None:
            return False
        numbers = tuple(int(part) for part in version.decode().split(".")[:2])
        return key in notes or numbers < since


@dataclass(frozen=True)
class Pruning:
    """A condition that all used rows of a scan meet.

    Parameters
    ----------
    condition : pyarrow.compute.Expression
    columns : tuple of pyarrow.Field
        Those in the condition, with their types in it.
    """

    condition: pc.Expression
    columns: tuple[pa.Field, ...]

    def suits(self, schema: pa.Schema) -> bool:
        """Whether the columns of a file have the types of the condition."""
        return all(
            schema.names.count(field.name) == 1
            and logical_type(schema.field(field.name).type) == field.type
            for field in self.columns
        )


def _instants(dtype: pa.DataType) -> pa.DataType:
    """Return a type with instants in place of times without a zone."""
    if types.is_timestamp(dtype) and dtype.tz is None:
        return pa.timestamp(dtype.unit, "UTC")
    if types.is_struct(dtype):
        return pa.struct([field.with_type(_instants(field.type)) for field in dtype])
    if types.is_map(dtype):
        return pa.map_(_instants(dtype.key_type), _instants(dtype.item_type))
    if types.is_list(dtype):
        return pa.list_(dtype.value_field.with_type(_instants(dtype.value_type)))
    return dtype


def _begin(group: Any) -> int:
    """Return the offset of a row group in its file."""
    if not group.num_columns:
        return 0
    first = group.column(0)
    if first.dictionary_page_offset is None:
        return int(first.data_page_offset)
    return int(min(first.dictionary_page_offset, first.data_page_offset))


def _has_days(dtype: pa.DataType) -> bool:
    if types.is_nested(dtype):
        return any(_has_days(dtype.field(n).type) for n in range(dtype.num_fields))
    return bool(types.is_date(dtype) or types.is_timestamp(dtype))
