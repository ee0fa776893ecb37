"""Files of a scan, with the columns that it declares."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from gpu_windows.checkpointing.object_stores import Options
from gpu_windows.scans.files import ScannedFile
from gpu_windows.scans.parquet import ParquetFile, Pruning
from gpu_windows.scans.partitions import partition_values
from gpu_windows.scans.splits import Split


@dataclass(frozen=True)
class FileScan:
    """Files of one folder, as tables of the same columns.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns, those of partitions too.
    partitions : tuple of str
        Names of the columns whose values are in the paths of files.
    files : tuple of ScannedFile
    options : Options
        Of the store of objects that the files are in.
    """

    schema: pa.Schema
    partitions: tuple[str, ...] = ()
    files: tuple[ScannedFile, ...] = ()
    options: Options = field(default=(), repr=False)

    def check(self) -> None:
        """Raise `ScanError` if the first file or the paths do not fit the declared columns."""
        for file in self.files[:1]:
            wanted = [self.schema.field(name) for name in self._in_files(self.schema.names)]
            ParquetFile(Split(file, 0, file.length), self.options).check(wanted)
        paths = {file.values: file.path for file in self.files}
        for values, path in paths.items():
            partition_values(self.partitions, values, self.schema, path)

    def read(
        self,
        split: Split,
        columns: Collection[str],
        pruning: Pruning | None = None,
        *,
        threads: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split; see `ParquetFile.batches`.

        Parameters
        ----------
        split : Split
        columns : collection of str
            Those that are read, one at least, in the order of the schema.
        pruning : Pruning, optional
        threads : bool
        """
        schema = self.select_schema(columns)
        assert schema.names, "a batch without columns has no rows"
        wanted = [schema.field(name) for name in self._in_files(schema.names)]
        file = split.file
        values = partition_values(self.partitions, file.values, self.schema, file.path)
        found = ParquetFile(split, self.options)
        for rows, arrays in found.batches(wanted, pruning, threads=threads):
            made = dict(zip((field.name for field in wanted), arrays, strict=True))
            for name in schema.names:
                if name in values:
                    made[name] = pa.repeat(values[name], rows)
            yield pa.record_batch([made[name] for name in schema.names], schema=schema)

    def select_schema(self, columns: Collection[str]) -> pa.Schema:
        """Return the schema of some of the columns."""
        return pa.schema([each for each in self.schema if each.name in columns])

    def _in_files(self, names: Collection[str]) -> list[str]:
        return [name for name in names if name not in self.partitions]
