"""Random schemas, and rows of them: logical types, in any form that Arrow has for them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gpu_windows.column_types.logical import logical_table, logical_type

INSTANT = pa.timestamp("us", "UTC")
#: Times of rows lie in so many seconds from here.
START, SECONDS = datetime(2024, 2, 29, 23, 58, tzinfo=UTC), 240
_WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_SIMPLE = (
    *_WHOLE,
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    INSTANT,
)
_NESTED = (
    pa.list_(pa.int32()),
    pa.struct([("x", pa.int32()), ("y", pa.string())]),
    pa.map_(pa.string(), pa.int32()),
)
#: Forms of a logical type; of those with narrower values, rows have only such.
_FORMS: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.string(): (
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
        pa.run_end_encoded(pa.int32(), pa.string()),
    ),
    pa.binary(): (pa.large_binary(), pa.binary_view()),
    pa.int16(): (pa.uint8(),),
    pa.int32(): (pa.uint16(), pa.dictionary(pa.int16(), pa.int32())),
    pa.int64(): (pa.uint32(), pa.run_end_encoded(pa.int32(), pa.int64())),
    pa.float32(): (pa.float16(),),
    pa.date32(): (pa.date64(),),
    INSTANT: (
        pa.timestamp("s", "UTC"),
        pa.timestamp("ms", "UTC"),
        pa.timestamp("us", "Asia/Tokyo"),
    ),
    pa.list_(pa.int32()): (pa.large_list(pa.int32()), pa.list_view(pa.int32())),
}
_TEXTS = (
    "",
    "a",
    "A",
    "aa",
    "ab",
    " a",
    "é",
    "e\u0301",
    "\U0001f600",
    "\uffff",
    "z" * 40,
    "0",
    "NaN",
)
_FLOATS = (0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), float("-inf"), 0.1, 3.0, 1e-30)


@dataclass(frozen=True)
class Schema:
    """A random schema and rows of it.

    Parameters
    ----------
    table : pyarrow.Table
        ``ts`` (event time), ``i`` (the order of rows), then ``k0``, ... and ``v0``, ...
    keys, values : tuple of str
        Columns.
    """

    table: pa.Table
    keys: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def logical(self) -> pa.Table:
        """The same rows in logical types."""
        return logical_table(self.table)

    @property
    def key_types(self) -> list[pa.DataType]:
        """The logical types of keys."""
        return [logical_type(self.table.schema.field(name).type) for name in self.keys]

    def __str__(self) -> str:
        columns = (f"{field.name} {field.type}" for field in self.table.schema)
        return f"{len(self.table)} rows of {', '.join(columns)}"


def random_decimal(rng: random.Random) -> pa.DataType:
    """Return a type of decimals: of one word, of two, and what the package's own sums have."""
    precision = rng.choice((2, 9, 18, 19, 20, 27, 28, 38))
    return pa.decimal128(precision, rng.randint(0, min(precision, 10)))


def random_type(rng: random.Random, *, is_key: bool = False) -> pa.DataType:
    """Return a logical type; keys may be structs, but no lists or maps."""
    choice = rng.random()
    if choice < 0.25:
        return random_decimal(rng)
    if choice < 0.9:
        return rng.choice(_SIMPLE)
    return _NESTED[1] if is_key else rng.choice(_NESTED)


def random_form(rng: random.Random, dtype: pa.DataType) -> pa.DataType:
    """Return a type whose values become those of a logical type."""
    forms = _FORMS.get(dtype, ())
    return rng.choice((dtype, *forms))


def random_value(rng: random.Random, dtype: pa.DataType) -> Any:
    """Return a value of a type that is not null."""
    if pa.types.is_dictionary(dtype) or pa.types.is_run_end_encoded(dtype):
        return random_value(rng, dtype.value_type)
    if pa.types.is_integer(dtype):
        return _random_integer(rng, dtype)
    if pa.types.is_floating(dtype):
        return rng.choice(_FLOATS)
    if pa.types.is_decimal(dtype):
        most = 10 ** (dtype.precision - rng.choice((0, 1, dtype.precision - 1))) - 1
        digits = rng.choice((0, 1, -1, most, -most, rng.randint(-most, most)))
        return Decimal(f"{digits}e-{dtype.scale}")
    if pa.types.is_boolean(dtype):
        return rng.random() < 0.5
    if pa.types.is_date(dtype):
        return date(1970, 1, 1) + timedelta(days=rng.choice((0, -1, 1, 19_782, -25_567, 47_482)))
    if pa.types.is_timestamp(dtype):
        return START + timedelta(seconds=rng.choice((0, 1, -(10**9), rng.randint(-99, 99))))
    return _random_long(rng, dtype)


def _random_long(rng: random.Random, dtype: pa.DataType) -> Any:
    if pa.types.is_struct(dtype):
        return {"x": rng.choice((None, 1, 2)), "y": rng.choice((None, "a", "b"))}
    if pa.types.is_map(dtype):
        return [(key, rng.choice((None, 1, 2))) for key in "abc"[: rng.randint(0, 3)]]
    if pa.types.is_nested(dtype):
        return [rng.choice((None, 1, -1)) for _ in range(rng.randint(0, 3))]
    text = rng.choice(_TEXTS)
    return text.encode() if dtype in (pa.binary(), *_FORMS[pa.binary()]) else text


def _random_integer(rng: random.Random, dtype: pa.DataType) -> int:
    """Return a whole number; no sum of those of a window is beyond BIGINT."""
    bits = min(dtype.bit_width, 52)
    if pa.types.is_unsigned_integer(dtype):
        return rng.choice((0, 1, 2**bits - 1, rng.randrange(2**bits)))
    most = 2 ** (bits - 1)
    return rng.choice((0, 1, -1, most - 1, -most, rng.randint(-most, most - 1), 7))


def random_column(rng: random.Random, form: pa.DataType, length: int, several: int) -> pa.Array:
    """Return values of a form, of which there are several, and nulls."""
    pool = [random_value(rng, form) for _ in range(several)]
    nulls = rng.choice((0.0, 0.0, 0.2, 0.9, 1.0))
    values = [None if rng.random() < nulls else rng.choice(pool) for _ in range(length)]
    if pa.types.is_run_end_encoded(form):
        return pc.run_end_encode(pa.array(values, form.value_type))
    if pa.types.is_float16(form):
        return pa.array(values, pa.float32()).cast(form)
    if pa.types.is_timestamp(form):
        return pa.array(values, INSTANT).cast(form)
    return pa.array(values, form)


def random_times(rng: random.Random, length: int) -> pa.Array:
    """Return different times in order, for frames over rows have one order then."""
    micros = sorted(rng.sample(range(SECONDS * 1_000_000), length))
    return pa.array([START + timedelta(microseconds=at) for at in micros], INSTANT)


def random_schema(rng: random.Random, key_types: Sequence[pa.DataType] | None = None) -> Schema:
    """Return a schema with some keys and values, and rows of it: none, one, or many."""
    length = rng.choice((0, 1, 2, 9, 40, 160))
    if key_types is None:
        key_types = [random_type(rng, is_key=True) for _ in range(rng.randint(0, 3))]
    value_types = [random_type(rng) for _ in range(rng.randint(1, 3))]
    columns: dict[str, Any] = {"ts": random_times(rng, length), "i": _places(length)}
    for at, dtype in enumerate(key_types):
        several = rng.choice((1, 2, 3))
        columns[f"k{at}"] = random_column(rng, random_form(rng, dtype), length, several)
    for at, dtype in enumerate(value_types):
        several = rng.choice((1, 4, 50))
        columns[f"v{at}"] = random_column(rng, random_form(rng, dtype), length, several)
    keys, values = ([name for name in columns if name.startswith(kind)] for kind in "kv")
    return Schema(pa.table(columns), tuple(keys), tuple(values))


def _places(length: int) -> pa.Array:
    return pa.array([*range(length)], pa.int64())
