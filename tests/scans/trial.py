"""Tries a drawn folder: what is read of it, and what is left of that by conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from random import Random

import pyarrow as pa

from gpu_windows.errors import GpuWindowsError
from gpu_windows.runners.arrow_selection import add_columns, filter_table
from gpu_windows.runners.row_changes import AddColumns, FilterRows, RowChange
from gpu_windows.runners.scanned_rows import ScannedPart, ScannedRows
from gpu_windows.scans.listing import scan_folders
from gpu_windows.scans.splits import split_files
from tests.scans.conditions import draw_columns, draw_condition
from tests.scans.folders import draw_folder, rows_of


def read_rows(rows: ScannedRows, columns: Collection[str], size: int) -> pa.Table:
    """Return columns of what is read in splits of ``size`` bytes."""
    schema = pa.schema([field for field in rows.schema if field.name in columns])
    return pa.Table.from_batches(_batches(rows, schema, size), schema)


def _batches(rows: ScannedRows, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    for part in rows.parts:
        for split in split_files(part.scan.files, size):
            for batch in part.read(split, schema.names):
                yield batch.select(schema.names).cast(schema)


def draw_size(rng: Random) -> int:
    """Return how many bytes a split is of: less than a row group, or more than a file."""
    return rng.choice([100, 3_000, 1 << 30, 1 << 30])


def try_local(seed: int, path: Path) -> str:
    """Return "" if the folder of a seed is read as it was written, or what differs."""
    rng, folder = Random(f"local {seed}"), draw_folder(seed, path)
    rows = ScannedRows((ScannedPart(scan_folders([str(path)])),))
    names = {name.lower(): name for name in rows.schema.names}
    assert names.keys() == {name.lower() for name in folder.rows.column_names}
    expected = folder.rows.rename_columns([names[n.lower()] for n in folder.rows.column_names])
    expected = expected.select(rows.schema.names).cast(rows.schema)
    for change in _changes(rng, rows.schema.names):
        try:
            made = _apply(change, expected)
        except GpuWindowsError:
            continue  # rows that it has no value for
        rows, expected = rows.then(change), made
        some = rng.sample(rows.schema.names, rng.randint(1, len(rows.schema.names)))
        if difference := compare(read_rows(rows, some, draw_size(rng)), expected.select(some)):
            return f"{change}: {difference}"
    return ""


def _changes(rng: Random, names: Collection[str]) -> Iterator[RowChange]:
    """Yield changes, the first of which changes nothing."""
    yield FilterRows("true")
    yield FilterRows(draw_condition(rng, names))
    yield AddColumns(draw_columns(rng, names))
    yield FilterRows(draw_condition(rng, [*names, "fresh"]))


def _apply(change: RowChange, table: pa.Table) -> pa.Table:
    if isinstance(change, FilterRows):
        return filter_table(table, change.condition)
    assert isinstance(change, AddColumns)
    return add_columns(table, change.texts)


def compare(found: pa.Table, expected: pa.Table) -> str:
    """Return how rows differ from those that are expected, whatever their order."""
    names = sorted(found.column_names)
    if names != sorted(expected.column_names):
        return f"columns {names}, not {sorted(expected.column_names)}"
    one, other = rows_of(found.select(names)), rows_of(expected.select(names))
    if one == other:
        return ""
    wrong = [row for row in one if row not in other]
    missing = [row for row in other if row not in one]
    return f"{len(one)} rows, not {len(other)}: {wrong[:2]}, not {missing[:2]}"
