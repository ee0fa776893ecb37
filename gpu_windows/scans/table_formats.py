"""Detects folders of Delta, Iceberg and Hudi tables, which scans refuse."""

from __future__ import annotations

from pathlib import Path

from gpu_windows.checkpointing.object_stores import Options
from gpu_windows.errors import ScanError
from gpu_windows.scans.files import has_objects, is_object

#: Formats to the folder of their log, and the ending of names in it.
_LOGS = {
    "delta": ("_delta_log", ".json"),
    "iceberg": ("metadata", ".metadata.json"),
    "hudi": (".hoodie", ".properties"),
}


def check_no_table(root: str, options: Options = ()) -> None:
    """Raise `ScanError` for the folder of a Delta, Iceberg or Hudi table.

    Some of its files are no longer of the table, and rows of others are deleted, as its log says.

    Parameters
    ----------
    root : str
        See `gpu_windows.scans.files.root_of`.
    options : Options
        Of the store of objects.
    """
    if (name := find_format(root, options)) is not None:
        rule = (
            f"a folder of a table ({name}) has files that are no longer its own: read it by "
            f"spark.read.format('{name}').load(path), or spark.table(name)"
        )
        raise ScanError(rule, value=root)


def find_format(root: str, options: Options = ()) -> str | None:
    """Return the format of the table whose folder this is; None if it is not a table's."""
    for name, (folder, ending) in _LOGS.items():
        log = f"{root.rstrip('/')}/{folder}"
        if has_objects(log, ending, options) if is_object(root) else _has_files(log, ending):
            return name
    return None


def _has_files(folder: str, ending: str) -> bool:
    return any(Path(folder).glob(f"*{ending}"))
