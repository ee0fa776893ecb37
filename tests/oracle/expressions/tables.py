"""Tables of edge values, with the expressions that read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.oracle.expressions.numbers import numbers
from tests.oracle.expressions.others import conversions, json_texts, nested_values, urls
from tests.oracle.expressions.texts import texts
from tests.oracle.expressions.times import times

_Rows: TypeAlias = list[list[Any]]
ZONES = ("UTC", "America/New_York", "Asia/Kathmandu")


@dataclass(frozen=True)
class Table:
    """Rows and expressions over them.

    Parameters
    ----------
    columns : mapping of str to str
        Flink's type of each column.
    rows : sequence of sequence
        Values as strings that Java parses, lists and dictionaries.
    expressions : sequence of str
    zones : sequence of str
        Values of ``table.local-time-zone``.
    """

    columns: dict[str, str]
    rows: Sequence[Sequence[Any]]
    expressions: Sequence[str]
    zones: Sequence[str] = ("UTC",)

    @property
    def question(self) -> dict[str, Any]:
        """The input of the oracle."""
        columns = [[name, dtype] for name, dtype in self.columns.items()]
        expressions = list(
            dict.fromkeys([*(f"`{name}`" for name in self.columns), *self.expressions])
        )
        return {
            "zones": self.zones,
            "columns": columns,
            "rows": self.rows,
            "expressions": expressions,
        }


_TEXT_ROWS: _Rows = [
    ["id=17 d", 2, "d"],
    ["", 0, ""],
    ["Ünïcödé ß", -1, "ö"],
    ["a😀b😀c", 3, "😀"],
    ["  two  words ", 1, " "],
    ["a,b,,c", -3, ","],
    ["ABC abc 123", 100, "b"],
    ["12", 7, "12"],
    ["%_\\$^.*", -100, "\\"],
    ["x\ty\n", 4, "y"],
    ["straße ŉ İ", 5, None],
    [None, None, "x"],
]
_NUMBER_ROWS: _Rows = [
    [7, 7, 2.5, 2.5, "2.55", 7, 7],
    [-7, -7, -2.5, -2.5, "-2.55", -7, -7],
    [0, 0, 0.0, 0.0, "0.00", 0, 0],
    [2147483647, 9223372036854775807, "NaN", "NaN", "99999999.99", 32767, 127],
    [-2147483648, -9223372036854775808, "Infinity", "Infinity", "-99999999.99", -32768, -128],
    [1, 1, "-Infinity", "-Infinity", "0.05", 1, 1],
    [100, 4294967296, "1.0E-10", "0.1", "1.00", 100, 100],
    [-1, -1, 123456789.987654, 16777216.0, "-0.50", -1, -1],
    [3, 1000, "-0.0", "-0.0", "0.50", 3, 3],
    [10, 65, 0.1, 3.4e38, "10.00", 10, 10],
    [65, 353, 1.0e300, 0.3, "12.35", 65, 65],
    [None] * 7,
]
_TIME_ROWS: _Rows = [
    [
        "2024-02-29T13:14:56.789Z",
        "2024-02-29T13:14:56.789",
        "2024-02-29",
        "2024-02-29 12:34:56",
        1709212496,
    ],
    ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00", "1970-01-01", "2024-02-29", 0],
    ["1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999", "1969-12-31", "2024-2-9 1:2:3", -1],
    ["1900-03-01T12:30:00Z", "1900-03-01T12:30:00", "1900-03-01", "nope", 1709212496789],
    ["0001-01-02T00:00:00Z", "0001-01-02T00:00:00", "0001-01-02", "", -86401],
    [
        "9999-12-30T23:59:59.999Z",
        "9999-12-30T23:59:59.999",
        "9999-12-30",
        "2023-02-29 00:00:00",
        253402300799,
    ],
    [
        "2024-03-10T07:30:00Z",
        "2024-03-10T02:30:00",
        "2024-03-10",
        "2024-03-10 02:30:00",
        1710055800,
    ],
    [
        "2024-11-03T06:30:00Z",
        "2024-11-03T01:30:00",
        "2024-11-03",
        "2024-11-03 01:30:00.5",
        1730615400,
    ],
    [
        "2024-12-30T00:00:00Z",
        "2024-12-30T00:00:00",
        "2024-12-30",
        "1969-12-31 23:59:59.999",
        1735516800,
    ],
    [
        "2021-01-03T23:59:59.001Z",
        "2021-01-03T23:59:59.001",
        "2021-01-03",
        "2024-02-29T12:34:56",
        1609718399,
    ],
    ["2000-01-31T00:00:00Z", "2000-01-31T00:00:00", "2000-01-31", "29/02/2024", 949276800],
    [
        "2023-08-15T18:45:30.120Z",
        "2023-08-15T18:45:30.120",
        "2023-08-15",
        "2024-02-29 12:34:56.123456789",
        31536000,
    ],
    [None] * 5,
]
_JSON_ROWS: _Rows = [
    ['{"a": 1, "b": {"c": [1, 2.5, "x"]}, "d": null, "e": "text", "f": true}'],
    ['{"a": 1.50, "b": [], "e": "é\\u20ac 😀", "f": false, "g": {"h": 1}}'],
    ['{"a": 12345678901234567890, "e": "say \\"hi\\"\\n", "f": "true"}'],
    ['{"a": "7", "e": {"x": 1}, "b": {"c": "no list"}}'],
    ['[1, 2, {"a": 3}]'],
    ["[]"],
    ["not json"],
    ['{"a": 1'],
    [""],
    ["null"],
    ['"text"'],
    ["42"],
    [None],
]
_CAST_ROWS: _Rows = [
    ["12", True, 7, "2.5", "2.55", 7],
    [" 12 ", False, 0, "-2.5", "-2.55", -7],
    ["-1.5", True, -1, "0.1", "0.00", 127],
    ["abc", False, 2147483647, "1.0E7", "99999999.99", 128],
    ["", True, -2147483648, "1.0E-5", "-99999999.99", 32768],
    ["true", True, 128, "NaN", "0.05", -129],
    ["2024-02-29", None, 1000, "Infinity", "1.00", 4294967296],
    ["2024-02-29 12:34:56.789", False, 10, "123456789.123", "-0.50", 9223372036854775807],
    ["1e3", True, 3, "-0.0", "0.50", -9223372036854775808],
    ["NaN", True, 5, "1.0E20", "10.00", 1],
    ["+5", True, 1, "9.99999", "1234.56", 3],
    [None, None, None, None, None, None],
]
_NESTED_ROWS: _Rows = [
    [[1, 2, 3], ["a", "b", "a"], {"a": 1, "b": 2}, "a", 1],
    [[4], [""], {}, "b", 2],
    [[], [], {"": 0}, "", 3],
    [[5, None, 5], [None, "x"], {"a": None}, "x", -1],
    [[-1, 0, 9, 9, 4], ["😀", "é", "z"], {"x": -1, "y": 5, "z": 0}, "z", 0],
    [None, None, None, None, None],
]
_URL_ROWS: _Rows = [
    ["https://me:pw@a.b:80/c/d.html?q=1&r=%20x#frag", "q"],
    ["http://Example.COM", "q"],
    ["http://a.b/?q=&q=2", "q"],
    ["ftp://host/file.txt", "r"],
    ["http://a.b:8080/p;v=1/?a=b=c&d", "a"],
    ["https://[::1]:443/x?y#z", "y"],
    ["//a.b/c?q=1", "q"],
    ["/only/path?q=1", "q"],
    ["mailto:me@a.b", "q"],
    ["not a url", "q"],
    ["http://a b/c d?q=e f", "q"],
    ["", "q"],
    ["http://a.b/c?x.y=1&xzy=2#", "x.y"],
    [None, "q"],
]

#: The tables by name.
TABLES = {
    "texts": Table({"s": "STRING", "n": "INT", "t": "STRING"}, _TEXT_ROWS, [*texts()]),
    "numbers": Table(
        {
            "n": "INT",
            "b": "BIGINT",
            "d": "DOUBLE",
            "f": "FLOAT",
            "m": "DECIMAL(10, 2)",
            "sm": "SMALLINT",
            "ti": "TINYINT",
        },
        _NUMBER_ROWS,
        [*numbers()],
    ),
    "times": Table(
        {
            "ts": "TIMESTAMP_LTZ(3)",
            "tn": "TIMESTAMP(3)",
            "dt": "DATE",
            "x": "STRING",
            "e": "BIGINT",
        },
        _TIME_ROWS,
        [*times()],
        ZONES,
    ),
    "json": Table({"j": "STRING"}, _JSON_ROWS, [*json_texts()]),
    "casts": Table(
        {
            "s": "STRING",
            "ok": "BOOLEAN",
            "n": "INT",
            "d": "DOUBLE",
            "m": "DECIMAL(10, 2)",
            "b": "BIGINT",
        },
        _CAST_ROWS,
        [*conversions()],
    ),
    "nested": Table(
        {
            "arr": "ARRAY<INT>",
            "words": "ARRAY<STRING>",
            "mp": "MAP<STRING, INT>",
            "k": "STRING",
            "n": "INT",
        },
        _NESTED_ROWS,
        [*nested_values()],
    ),
    "urls": Table({"u": "STRING", "q": "STRING"}, _URL_ROWS, [*urls()]),
}
