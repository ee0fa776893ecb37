"""Partition columns, whose values are in the paths of files: ``day=2024-01-01/``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import ScanError

#: Value of a path for null.
_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_DECIMAL, _FLOAT = re.compile(_NUMBER), re.compile(rf"{_NUMBER}[fFdD]?|[+-]?(NaN|Infinity)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
#: Numbers of Java that are refused here: in hexadecimal digits, and in digits of other scripts.
_ODD = re.compile(r"[+-]?0[xX][0-9a-fA-F.]+[pP].*|[+-]?\d+")
#: Digits of a decimal of Spark.
_DIGITS = 38
#: Sets of kinds of values, and the type of a column with such values; others are strings.
_TYPES: tuple[tuple[set[str], pa.DataType], ...] = (
    ({"int"}, pa.int32()),
    ({"int", "long"}, pa.int64()),
    ({"int", "double"}, pa.float64()),
    ({"date"}, pa.date32()),
)
_READ_BY_SPARK: tuple[set[str], ...] = ({"int", "long", "decimal"}, {"date", "time"})


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

    Raises
    ------
    ScanError
        If the files are not all in partitions of the same names.
    """
    found: dict[tuple[str, ...], str] = {}
    for path in paths:
        names = (name for name, _ in values_in_path(path, roots))
        key = tuple(names if columns is None else (name.lower() for name in names))
        found.setdefault(key, path)
    if len(found) > 1:
        rule = "all files of a scan are in partitions of the same names"
        raise ScanError(rule, value=" and ".join([*found.values()][:2]))
    every = next(iter(found), ())
    if len({name.lower() for name in every}) < len(every):
        raise ScanError("partitions have names of their own", value=", ".join(every))
    if columns is None:
        return every
    by_lower = {name.lower(): name for name in columns}
    return tuple(by_lower[name] for name in every if name in by_lower)


def find_values(
    names: Sequence[str], roots: Sequence[str]
) -> Callable[[str], tuple[str | None, ...]]:
    """Return a function that finds the values of partition columns in the path of a file."""

    def find(path: str) -> tuple[str | None, ...]:
        values = {name.lower(): value for name, value in values_in_path(path, roots)}
        return tuple(values.get(name.lower()) for name in names)

    return find


def values_in_path(path: str, roots: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return names and values of the partitions between a root and a file, as Spark does.

    They are the innermost adjacent folders with ``=``; None is a null.

    Raises
    ------
    ScanError
        If a name or a value is empty.
    """
    above = [root for root in roots if f"{path}/".startswith(f"{root.rstrip('/')}/")]
    inner = path.removeprefix(max(above, key=len)) if above else ""
    found: list[tuple[str, str | None]] = []
    for folder in reversed(inner.strip("/").split("/")[:-1]):
        name, separator, value = folder.partition("=")
        if separator and not (name and value):
            raise ScanError("a partition has a name and a value", value=path)
        if separator:
            found.append((_unescape(name), None if value == _NULL else _unescape(value)))
        elif found:
            break
    return found[::-1]


def _unescape(text: str) -> str:
    """Return a part of a path with escapes such as ``%41`` replaced."""
    return unquote(text, "latin-1")


def partition_type(name: str, texts: Iterable[str | None]) -> pa.DataType:
    """Return the type of a partition column, as Spark infers it from all values.

    Raises
    ------
    ScanError
        If Spark would infer decimals, or times in the zone of its session.
    """
    kinds = {_kind(text) for text in texts if text is not None}
    for accepted, dtype in _TYPES:
        if kinds and kinds <= accepted:
            return dtype
    if kinds and any(kinds <= refused for refused in _READ_BY_SPARK):
        rule = "partitions of decimals and of times are read with a session"
        raise ScanError(rule, value=", ".join(sorted(kinds)), column=name)
    return pa.string()


def _kind(text: str) -> str:
    """Return the kind of a partition's value, as Spark infers it.

    Raises
    ------
    ScanError
        If it is a number of Java that is refused here.
    """
    if _INTEGER.fullmatch(text):
        bits = (int(text) if int(text) >= 0 else -int(text) - 1).bit_length()
        if bits < 64:
            return "int" if bits < 32 else "long"
    if _DECIMAL.fullmatch(text):
        _, digits, exponent = Decimal(text).as_tuple()
        is_whole = isinstance(exponent, int) and exponent >= 0
        return "decimal" if is_whole and len(digits) + int(exponent) <= _DIGITS else "double"
    if _FLOAT.fullmatch(text):
        return "double"
    bare = text.strip()
    if _ODD.fullmatch(bare) or _FLOAT.fullmatch(bare):
        rule = "the value of a partition is a number in ASCII without spaces, or a text"
        raise ScanError(rule, value=repr(text))
    if _TIME.fullmatch(text):
        return "time"
    return "date" if _is_date(text) else "text"


def partition_values(
    names: Sequence[str], values: Sequence[str | None], schema: pa.Schema, path: str
) -> Mapping[str, pa.Scalar]:
    """Return the values of partition columns in their declared types.

    Raises
    ------
    ScanError
        If the path has a value that is not of the type.
    """
    scalars = {}
    for name, text in zip(names, values, strict=True):
        dtype = schema.field(name).type
        try:
            scalars[name] = _value(text, dtype)
        except (ValueError, pa.ArrowException) as error:
            rule = f"the value of a partition is of the type that the scan declares ({dtype})"
            raise ScanError(rule, value=f"{name}={text} in {path}", column=name) from error
    return scalars


def _value(text: str | None, dtype: pa.DataType) -> pa.Scalar:
    if text is None:
        return pa.scalar(None, dtype)
    if types.is_integer(dtype) and _INTEGER.fullmatch(text):
        return pa.scalar(int(text), dtype)
    if types.is_floating(dtype) and _FLOAT.fullmatch(text):
        return pa.scalar(float(text.rstrip("fFdD")), dtype)
    if types.is_integer(dtype) or types.is_floating(dtype):
        raise ValueError(text)
    return pa.scalar(text).cast(dtype)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return _DATE.fullmatch(text) is not None
