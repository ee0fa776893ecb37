"""CREATE TABLE, as far as its columns say which rows a table may have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

_COMMENT = re.compile(r"'(?:[^']|'')*'|`[^`]*`|--[^\n]*|/\*.*?\*/", re.S)
_NAME = r"(`[^`]+`|[\w.]+)"
_TABLE = re.compile(
    rf"\bCREATE\s+(?:TEMPORARY\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}\s*\(", re.I
)
_TARGET = re.compile(rf"\bINSERT\s+(?:INTO|OVERWRITE)\s+{_NAME}", re.I)
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400}
_SIMPLE = {
    "STRING": pa.string(),
    "VARCHAR": pa.string(),
    "CHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
}


@dataclass(frozen=True)
class Column:
    """A column that rows of a table have: physical, or metadata of its connector."""

    name: str
    type: pa.DataType
    is_nullable: bool = True
    metadata: str | None = None
    """Its key, if it is a column of the connector's metadata."""


@dataclass(frozen=True)
class Table:
    """A table, as CREATE TABLE names its columns.

    Parameters
    ----------
    name : str
    columns : tuple of Column
        Computed columns are left out.
    time : str, optional
        The column of WATERMARK FOR; the one that it is computed from, if it is computed.
    time_unit : str
        What numbers of a computed time count: ``ms`` or ``s``.
    delay_ms : int
        How far the watermark is behind.
    key : tuple of str
        The columns of PRIMARY KEY.
    """

    name: str
    columns: tuple[Column, ...]
    time: str | None = None
    time_unit: str = "ms"
    delay_ms: int = 0
    key: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow types of its columns; times without a zone are TIMESTAMP(p)."""
        return pa.schema([(column.name, column.type) for column in self.columns])


def without_comments(text: str) -> str:
    """Return a text with spaces in place of comments."""
    return _COMMENT.sub(lambda m: m[0] if m[0][0] in "'`" else " ", text)


def insert_targets(text: str) -> list[str]:
    """Return the tables that a script writes, in the order of its INSERTs."""
    text = re.sub(r"'(?:[^']|'')*'", "''", without_comments(text))
    return list(dict.fromkeys(_name(m[1]) for m in _TARGET.finditer(text)))


def read_tables(text: str) -> list[Table]:
    """Return the tables that a text creates."""
    text = without_comments(text)
    return [_table(_name(m[1]), _in_brackets(text, m.end())) for m in _TABLE.finditer(text)]


def _name(text: str) -> str:
    return text.replace("`", "").rsplit(".", 1)[-1]


def _in_brackets(text: str, start: int) -> str:
    depth, end = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[start : end - 1]


def _items(body: str) -> Iterator[str]:
    """Split at commas that are in no brackets."""
    depth, start = 0, 0
    for place, letter in enumerate(body):
        typed = letter == "<" and re.search(r"(ARRAY|MAP|ROW|MULTISET)\s*$", body[:place], re.I)
        if letter == "(" or typed:
            depth += 1
        elif letter == ")" or (letter == ">" and depth):
            depth -= 1
        elif letter == "," and not depth:
            yield body[start:place].strip()
            start = place + 1
    yield body[start:].strip()


def _table(name: str, body: str) -> Table:
    columns: list[Column] = []
    computed: dict[str, str] = {}
    time, delay = None, 0
    key: tuple[str, ...] = ()
    for item in _items(body):
        if found := re.match(rf"WATERMARK\s+FOR\s+{_NAME}\s+AS\s+(.*)", item, re.I | re.S):
            time, delay = _name(found[1]), _delay_ms(found[2])
        elif found := re.search(r"PRIMARY\s+KEY\s*\(([^)]*)\)", item, re.I):
            key = tuple(_name(column.strip()) for column in found[1].split(","))
        elif found := re.match(rf"{_NAME}\s+AS\s+(.*)", item, re.I | re.S):
            computed[_name(found[1])] = found[2]
        elif item:
            columns.append(_column(item))
    unit, names = "ms", {column.name for column in columns}
    while time is not None and time not in names:
        source = computed[time]
        unit = "s" if re.search("FROM_UNIXTIME", source, re.I) and "1000" not in source else unit
        words = re.findall(r"[`\w]+", re.sub(r"'[^']*'", "", source))
        time = next(w for w in map(_name, words) if w in names | computed.keys())
    return Table(name, tuple(columns), time, unit, delay, key)


def _delay_ms(expression: str) -> int:
    found = re.search(r"-\s*INTERVAL\s+'([\d.]+)'\s+(\w+)", expression, re.I)
    if found is None:
        return 0
    return int(float(found[1]) * 1000) * _SECONDS[found[2].upper().removesuffix("S")]


def _column(item: str) -> Column:
    name, rest = re.match(r"(`[^`]+`|\w+)\s+(.*)", item, re.S).groups()  # type: ignore[union-attr]
    kind, end = _type(rest)
    tail = rest[end:]
    metadata = re.match(r"\s*METADATA(?:\s+FROM\s+'([^']*)')?", tail, re.I)
    key = None if metadata is None else metadata[1] or _name(name)
    return Column(_name(name), kind, "NOT NULL" not in tail.upper(), key)


def _type(text: str) -> tuple[pa.DataType, int]:
    """Return the type that a text begins with, and where it ends."""
    found = re.match(
        r"\s*(\w+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?(\s+WITH(?:OUT)?\s+(?:LOCAL\s+)?TIME\s+ZONE)?",
        text,
        re.I,
    )
    assert found is not None, text
    word, end = found[1].upper(), found.end()
    if word in ("ARRAY", "MAP", "ROW"):
        return _nested_type(word, text, end)
    if word in ("DECIMAL", "NUMERIC"):
        return pa.decimal128(int(found[2] or 10), int(found[3] or 0)), end
    if word == "TIMESTAMP_LTZ" or (word == "TIMESTAMP" and "LOCAL" in (found[4] or "").upper()):
        return pa.timestamp("ms", "UTC"), end
    if word == "TIMESTAMP":
        return pa.timestamp("ms"), end
    return _SIMPLE[word], end


def _nested_type(word: str, text: str, start: int) -> tuple[pa.DataType, int]:
    begin = text.index("<", start) + 1
    depth, end = 1, begin
    while depth:
        depth += {"<": 1, ">": -1}.get(text[end], 0)
        end += 1
    parts = list(_items(text[begin : end - 1]))
    if word == "ARRAY":
        return pa.list_(_type(parts[0])[0]), end
    if word == "MAP":
        return pa.map_(_type(parts[0])[0], _type(parts[1])[0]), end
    fields = [_column(part) for part in parts]
    return pa.struct([(field.name, field.type) for field in fields]), end
