"""Value types: what rules need to know of the type of an expression."""

from typing import TypeVar

from sqlglot import exp

_E = TypeVar("_E", bound=exp.Expr)

INTEGER, FLOATING, DECIMAL = "integer", "floating", "decimal"
BOOLEAN, TEXT, DATE = "boolean", "text", "date"
#: Instants: TIMESTAMP_LTZ of Flink, TIMESTAMP of Spark.
TIMESTAMP = "timestamp"
#: Instants in a zone other than UTC, which is the zone of dates over Arrow tables.
ZONED_TIMESTAMP = "zoned timestamp"
#: Readings of a clock: TIMESTAMP of Flink, TIMESTAMP_NTZ of Spark.
CLOCK_TIME = "clock time"
#: Prefix of the type of a list with these elements, or a map with these values.
ELEMENTS = "elements: "
#: Metadata of a node: its value type.
VALUE_TYPE = "value_type"
#: Metadata of a node: how many digits of seconds its type has.
SECOND_DIGITS = "second_digits"


def with_type(node: _E, name: str) -> _E:
    """Return a node with its value type as metadata."""
    node.meta[VALUE_TYPE] = name
    return node


def to_clock_time(of: exp.Expr) -> exp.Cast:
    """Return a time as a reading of a clock, of the session's zone if it is an instant."""
    return exp.cast(of, "TIMESTAMP_NTZ", dialect="spark")
