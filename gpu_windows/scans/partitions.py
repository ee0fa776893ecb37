"""Columns whose values are in the paths of files: Hive's partitions, ``day=2024-01-01/``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import unquote


def partition_names(
    paths: Sequence[str], roots: Sequence[str], columns: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the names of partition columns, in the order of folders.

    Parameters
    ----------
    paths : sequence of str
        Of the files.
    roots : sequence of str
        Of the folders that are scanned.
    columns : sequence of str, optional
        Of the scan, which calls partitions by its own names. Default: names are those of folders.
    """
    found = [name for path in paths[:1] for name in values_in_path(path, roots)]
    if columns is None:
        return tuple(found)
    by_lower = {name.lower(): name for name in columns}
    return tuple(by_lower[name.lower()] for name in found if name.lower() in by_lower)


def find_values(
    names: Sequence[str], roots: Sequence[str]
) -> Callable[[str], tuple[str | None, ...]]:
    """Return what finds the values of partition columns in the path of a file."""

    def find(path: str) -> tuple[str | None, ...]:
        values = {name.lower(): value for name, value in values_in_path(path, roots).items()}
        return tuple(values.get(name.lower()) for name in names)

    return find


def values_in_path(path: str, roots: Sequence[str]) -> dict[str, str]:
    """Return names and values of the folders between a root and a file."""
    above = [root for root in roots if f"{path}/".startswith(f"{root.rstrip('/')}/")]
    inner = path.removeprefix(max(above, key=len)) if above else ""
    pairs = (folder.partition("=") for folder in inner.strip("/").split("/")[:-1])
    return {unquote(name): unquote(value) for name, separator, value in pairs if separator}
