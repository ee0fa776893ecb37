"""Folders of Parquet files, drawn from seeds, and the rows that are in them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

#: Types of columns, and those of which each value is one of theirs: what a file may have instead.
TYPES: dict[str, tuple[pa.DataType, ...]] = {
    "ts": (pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC")),
    "i": (pa.int64(), pa.int32(), pa.int16()),
    "n": (pa.int32(), pa.int16(), pa.int8()),
    "f": (pa.float64(), pa.float32()),
    "d": (pa.decimal128(18, 3), pa.decimal128(9, 3)),
    "t": (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())),
    "b": (pa.binary(), pa.large_binary()),
    "day": (pa.date32(),),
    "flag": (pa.bool_(),),
    "clock": (pa.timestamp("us"),),
    "some": (pa.list_(pa.int32()), pa.list_(pa.int16())),
    "both": (pa.struct([("a", pa.int32()), ("t", pa.string())]),),
}
_NAMES = ("a b", "c%20d", "e+f", "g#h", "ü é", "q;r=s", "x&y", "plain")
_HIDDEN = ("_x.parquet", ".x.parquet", "_temporary/0/x.parquet", "x.parquet._COPYING_", ".h/x")
_TEXTS = ("a b", "a/b", "%41", "ü", "+", "a#b", "a=b", "A", "10x", "..")
_EPOCH = datetime(2024, 1, 1, tzinfo=UTC)

Draw = Callable[[Random], Any]
_DRAWS: dict[str, Draw] = {
    "ts": lambda rng: _EPOCH + timedelta(milliseconds=rng.randint(-(10**7), 10**7)),
    "i": lambda rng: rng.choice([0, 1, -1, 7, rng.randint(-30_000, 30_000)]),
    "n": lambda rng: rng.randint(-100, 100),
    "f": lambda rng: rng.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 0.5, -2.25, 1e30]),
    "d": lambda rng: Decimal(rng.randint(-5_000, 5_000)) / 1000,
    "t": lambda rng: rng.choice(["", "a", "b", "B", "é", "a" * 70, "a" * 69 + "b", "\x00"]),
    "b": lambda rng: rng.choice([b"", b"\xff", b"a", bytes(range(80))]),
    "day": lambda rng: date(2024, 1, 1) + timedelta(days=rng.randint(-40_000, 9)),
    "flag": lambda rng: rng.random() < 0.5,
    "clock": lambda rng: datetime(2024, 1, 1) + timedelta(microseconds=rng.randint(-9, 9)),
    "some": lambda rng: [rng.choice([None, 1, -1]) for _ in range(rng.randint(0, 3))],
    "both": lambda rng: {"a": rng.choice([None, 3]), "t": rng.choice([None, "x"])},
}


@dataclass(frozen=True)
class Folder:
    """A folder of files.

    Parameters
    ----------
    path : Path
    rows : pyarrow.Table
        What is in it, as its first file declares it.
    """

    path: Path
    rows: pa.Table


def draw_folder(seed: int, path: Path) -> Folder:
    """Write the folder of a seed, and return it."""
    rng = Random(seed)
    names = ["ts", "i", *(name for name in [*TYPES][2:] if rng.random() < 0.5)]
    schema = pa.schema([(name, TYPES[name][0]) for name in names])
    partitions = _draw_partitions(rng)
    kinds = [(name, value.type) for name, value in partitions[0].items()]
    whole = pa.schema([*schema, *(pa.field(name, dtype) for name, dtype in kinds)])
    files = {}
    for number in range(rng.randint(1, 5)):
        values = rng.choice(partitions)
        folder = path.joinpath(*(_folder(name, value) for name, value in values.items()))
        files[folder / f"{number}{rng.choice(_NAMES)}.parquet"] = values
    tables = []
    for number, file in enumerate(sorted(files, key=lambda file: file.parts)):
        rows = _draw_rows(rng, schema)
        written = rows if number == 0 else _other(rng, rows)
        file.parent.mkdir(parents=True, exist_ok=True)
        _write(rng, written, file)
        tables.append(_as_whole(rows, written, files[file], whole))
    _add_others(rng, path)
    return Folder(path, pa.concat_tables(tables))


def rows_of(table: pa.Table) -> list[str]:
    """Return the rows of a table in words, sorted; not a number is one value, -0.0 not 0.0."""
    return sorted(map(repr, table.to_pylist()))


def _draw_partitions(rng: Random) -> list[dict[str, pa.Scalar]]:
    """Return the values of some partitions, of the same names; one without any at times."""
    kind = rng.choice(["none", "none", "int", "text", "day", "two"])
    texts = rng.sample([None, *_TEXTS], 3)
    if kind == "int":
        return [{"Part": pa.scalar(n, pa.int32())} for n in (None, -1, 7)]
    if kind == "text":
        return [{"part": pa.scalar(text, pa.string())} for text in texts]
    if kind == "day":
        return [{"part": pa.scalar(date(2024, 1, day), pa.date32())} for day in (1, 29)]
    if kind == "two":
        numbers = (pa.scalar(n, pa.int64()) for n in (1 << 40, 5, None))
        return [
            {"one": number, "two": pa.scalar(text, pa.string())}
            for number, text in zip(numbers, texts, strict=True)
        ]
    return [{}]


def _folder(name: str, value: pa.Scalar) -> str:
    """Return what Spark calls the folder of a partition."""
    text = "__HIVE_DEFAULT_PARTITION__" if value.as_py() is None else str(value.as_py())
    plain = (c if c.isalnum() or c in " +_" or c > "\x7f" else f"%{ord(c):02X}" for c in text)
    return f"{name}={''.join(plain)}"


def _draw_rows(rng: Random, schema: pa.Schema) -> pa.Table:
    count = rng.choice([0, 1, 2, rng.randint(3, 40)])
    nulls = {field.name: rng.choice([0, 0, 0.3, 1]) for field in schema}
    steady = {field.name: _DRAWS[field.name](rng) for field in schema if rng.random() < 0.2}
    columns = []
    for field in schema:
        values = [
            None
            if rng.random() < nulls[field.name]
            else steady.get(field.name, _DRAWS[field.name](rng))
            for _ in range(count)
        ]
        columns.append(pa.array(values, field.type))
    return pa.table(columns, schema=schema)


def _other(rng: Random, rows: pa.Table) -> pa.Table:
    """Return rows as another file may have them: fewer columns, narrower ones, in other words."""
    names = [name for name in rows.column_names if name == "ts" or rng.random() < 0.8]
    if rng.random() < 0.4:
        rng.shuffle(names)
    columns = {name: rows.column(name) for name in names}
    for name, column in columns.items():
        if rng.random() < 0.3:
            columns[name] = _cast(column, rng.choice(TYPES[name]))
    rename: Callable[[str], str] = rng.choice([str.lower, str.lower, str.upper, str.title])
    return pa.table({rename(name): column for name, column in columns.items()})


def _cast(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray:
    """Return values as another type, or as they are if they are none of its."""
    try:
        made = column.cast(dtype)
    except pa.ArrowException:
        return column
    return (
        made if rows_of(pa.table([made], ["v"])) == rows_of(pa.table([column], ["v"])) else column
    )


def _as_whole(
    rows: pa.Table, written: pa.Table, values: dict[str, pa.Scalar], whole: pa.Schema
) -> pa.Table:
    """Return the rows of a file with all columns of the folder."""
    there = {name.lower() for name in written.column_names}
    columns = []
    for field in whole:
        if field.name in values:
            columns.append(pa.repeat(values[field.name], len(rows)))
        elif field.name in there:
            columns.append(rows.column(field.name))
        else:
            columns.append(pa.nulls(len(rows), field.type))
    return pa.table(columns, schema=whole)


def _write(rng: Random, rows: pa.Table, path: Path) -> None:
    texts = [name for name in rows.column_names if name.lower() in ("t", "b")]
    pq.write_table(
        rows,
        path,
        row_group_size=rng.choice([1, 3, 10, 1000]),
        compression=rng.choice(["none", "snappy", "zstd", "gzip"]),
        use_dictionary=rng.choice([True, False, texts]),
        write_statistics=rng.random() < 0.8,
        data_page_version=rng.choice(["1.0", "2.0"]),
        use_deprecated_int96_timestamps="clock" not in map(str.lower, rows.column_names)
        and rng.random() < 0.2,
        store_schema=rng.random() < 0.7,
        write_page_index=rng.random() < 0.3,
    )


def _add_others(rng: Random, path: Path) -> None:
    """Write files that are none of the folder's."""
    for name in _HIDDEN:
        if rng.random() < 0.3:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"ts": [1]}), path / name)
    files = sorted(path.rglob("*plain.parquet"))
    if files and rng.random() < 0.3:
        files[-1].with_name("zz.parquet").touch()
