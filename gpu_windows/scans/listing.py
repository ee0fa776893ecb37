"""Lists the files of a folder without Spark, as Spark would."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from gpu_windows.errors import ScanError
from gpu_windows.scans.files import is_object, list_files, list_objects, root_of
from gpu_windows.scans.parquet import ParquetFile
from gpu_windows.scans.partitions import find_values, partition_names
from gpu_windows.scans.scan import FileScan
from gpu_windows.scans.splits import Split

#: What Spark's own sink of streams leaves in its folder: not all files there are results.
_SINK_LOG = "_spark_metadata"
#: Types that values of partitions have, if all are of them, in this order; else they are texts.
_PARTITION_TYPES = (pa.int32(), pa.int64(), pa.float64(), pa.date32())
_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def scan_folders(paths: Sequence[str]) -> FileScan:
    """Return the scan of files and folders, with the columns of their first file.

    Parameters
    ----------
    paths : sequence of str
        Of files and folders, on disks or in a store of objects.

    Raises
    ------
    ScanError
        If there is no file, or it is no Parquet file.
    """
    roots = [root_of(path) for path in paths]
    found = [file for root in roots for file in _walk(root)]
    names = partition_names(found, roots)
    files = list_files(found, find_values(names, roots))
    if not files:
        raise ScanError("a scan is of one file at least that has rows", value=", ".join(roots))
    first = files[0]
    own = ParquetFile(Split(first, 0, first.length)).declared
    partitions = [
        pa.field(name, _partition_type([file.values[place] for file in files]))
        for place, name in enumerate(names)
    ]
    data = [field for field in own if field.name not in names]
    return FileScan(pa.schema([*data, *partitions]), names, files)


def _walk(root: str) -> Iterator[str]:
    """Yield the files of a folder, in the order of their names, or the one file that it is."""
    if is_object(root):
        every = list_objects(root)
        yield from (path for path in every if not _is_hidden(path.removeprefix(root)))
        return
    if Path(root).is_file():
        yield root
        return
    if not Path(root).is_dir():
        raise ScanError("a scan is of files and folders that exist", value=root)
    if Path(root, _SINK_LOG).exists():
        rule = "a folder of Spark's own sink is read by Spark: its log says which files count"
        raise ScanError(rule, value=root)
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if not _is_hidden(name))
        yield from (str(Path(folder, name)) for name in sorted(names) if not _is_hidden(name))


def _is_hidden(path: str) -> bool:
    """Whether Spark takes no notice of a file or folder."""
    return any(
        name.startswith(".") or (name.startswith("_") and "=" not in name)
        for name in path.split("/")
        if name
    )


def _partition_type(texts: Sequence[str | None]) -> pa.DataType:
    values = pa.array([None if text == _DEFAULT_PARTITION else text for text in texts], pa.string())
    for dtype in _PARTITION_TYPES:
        try:
            values.cast(dtype)
        except pa.ArrowException:
            continue
        return pa.string() if values.null_count == len(values) else dtype
    return pa.string()
