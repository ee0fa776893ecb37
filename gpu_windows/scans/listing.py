"""Lists the files of a folder without Spark, as Spark would."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from gpu_windows.errors import ScanError
from gpu_windows.scans.files import is_object, list_files, list_objects, root_of
from gpu_windows.scans.parquet import ParquetFile
from gpu_windows.scans.partitions import (
    find_values,
    partition_names,
    partition_type,
    values_in_path,
)
from gpu_windows.scans.scan import FileScan
from gpu_windows.scans.splits import Split
from gpu_windows.scans.table_formats import check_no_table

#: Folder of Spark's own file sink: its log lists the files that are results.
_SINK_LOG = "_spark_metadata"
#: Suffix of files that Hadoop is copying.
_COPYING = "._COPYING_"


def scan_folders(paths: Sequence[str]) -> FileScan:
    """Return the scan of files and folders, with the columns of their first file.

    Parameters
    ----------
    paths : sequence of str
        Of files and folders, on disks or in a store of objects.

    Raises
    ------
    ScanError
        If there is no Parquet file; if folders are not as Spark would read them.
    """
    roots = [root_of(path) for path in paths]
    for root in roots:
        check_no_table(root)
    found = [file for root in roots for file in _walk(root)]
    names = partition_names(found, roots)
    files = list_files(found, find_values(names, roots))
    if not files:
        raise ScanError("a scan needs at least one file with rows", value=", ".join(roots))
    first = files[0]
    partitions = {
        name: pa.field(name, partition_type(name, {file.values[place] for file in files}))
        for place, name in enumerate(names)
    }
    own = ParquetFile(Split(first, 0, first.length)).declared_schema
    return FileScan(_with_partitions(own, partitions), names, files)


def _with_partitions(own: pa.Schema, partitions: Mapping[str, pa.Field]) -> pa.Schema:
    """Return the columns of files with those of partitions: in their places, or else appended."""
    by_lower = {name.lower(): field for name, field in partitions.items()}
    fields = [by_lower.pop(field.name.lower(), field) for field in own]
    return pa.schema([*fields, *by_lower.values()])


def _walk(root: str) -> Iterator[str]:
    """Yield the files of a folder, in order of names, or the one file at the path."""
    if not is_object(root) and Path(root).is_file():
        yield root
        return
    for path in _objects(root) if is_object(root) else _files(root):
        inner = path.removeprefix(root).strip("/")
        if "/" in inner and not values_in_path(path, [root]):
            rule = "folders within a scanned one are partitions (name=value): scan them each"
            raise ScanError(rule, value=path)
        yield path


def _objects(root: str) -> Iterator[str]:
    every = list_objects(root)
    yield from (path for path in every if not _is_hidden(path.removeprefix(root)))


def _files(root: str) -> Iterator[str]:
    if not Path(root).is_dir():
        raise ScanError("files and folders of a scan must exist", value=root)
    if Path(root, _SINK_LOG).exists():
        rule = "a folder of Spark's own sink is read by Spark: its log says which files count"
        raise ScanError(rule, value=root)
    for folder, inner, names in os.walk(root, onerror=_refuse, followlinks=True):
        above = (each for each in Path(folder).parents if each.is_relative_to(root))
        if os.path.realpath(folder) in map(os.path.realpath, above):
            raise ScanError(
                "a folder of a scan must not link to one that contains it", value=folder
            )
        inner[:] = sorted(name for name in inner if not _is_hidden(name))
        yield from (str(Path(folder, name)) for name in sorted(names) if not _is_hidden(name))


def _refuse(error: OSError) -> NoReturn:
    raise ScanError("the folders of a scan must be readable", value=str(error)) from error


def _is_hidden(path: str) -> bool:
    """Whether Spark ignores a file or folder."""
    return any(
        name.startswith(".")
        or name.endswith(_COPYING)
        or (name.startswith("_") and "=" not in name)
        for name in path.split("/")
        if name
    )
