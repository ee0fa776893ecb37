"""The named functions of scenarios, as window functions of ours and back.

Reduce, concat and process functions are user code in Flink, so they are user code here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from gpu_windows.aggregates.aggregate import Aggregate
from gpu_windows.aggregates.built_in import count, max_, mean, min_, sum_
from gpu_windows.aggregates.definitions import bind
from gpu_windows.functions.process import Process, ProcessContext, ProcessWindowFunction
from gpu_windows.functions.window import Aggregates, Collect, Reduce, WindowFunction
from gpu_windows.vocabulary.triggers import Row

#: Columns of a scenario's records in the local runner, where a tick is a millisecond.
SCHEMA = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("value", pa.float64()),
        pa.field("seq", pa.int64()),
        pa.field("gap", pa.int64()),
    ]
)


@dataclass(frozen=True)
class NamedFunction:
    """A function that scenarios name.

    Parameters
    ----------
    window_function : WindowFunction
    payload : callable
        Result columns to the payload of an emission, as the scenario files write it.
    is_user_code : bool
        Whether it is a user's code in Flink, and here.
    """

    window_function: WindowFunction
    payload: Callable[[Mapping[str, Any]], dict[str, Any]]
    is_user_code: bool = False


def _aggregate(aggregate: Aggregate) -> NamedFunction:
    function = Aggregates((bind("result", aggregate, SCHEMA),))
    return NamedFunction(function, lambda row: {"result": row["result"]})


def _reduce(function: Callable[[Row, Row], Row]) -> NamedFunction:
    def payload(row: Mapping[str, Any]) -> dict[str, Any]:
        nothing = row["seq"] is None  # an evictor left no row
        return {"result": row["value"], "seq": [] if nothing else [row["seq"]]}

    return NamedFunction(Reduce(function, ("value", "seq")), payload, is_user_code=True)


def _earlier(earlier: Row, _later: Row) -> Row:
    return earlier


def _later(_earlier: Row, later: Row) -> Row:
    return later


def _greater(earlier: Row, later: Row) -> Row:
    return later if _value(later) > _value(earlier) else earlier


def _added(earlier: Row, later: Row) -> Row:
    return {**later, "value": _value(earlier) + _value(later)}


def _value(row: Row) -> float:
    value = row["value"]
    assert isinstance(value, float)
    return value


class _WithState(ProcessWindowFunction):
    """The rows of a window, and how often its key and window, and its key, have fired."""

    window_state: ClassVar = {"firings": pa.int64()}
    key_state: ClassVar = {"firings": pa.int64()}

    def process(
        self, key: Row, context: ProcessContext, rows: pa.Table
    ) -> Iterator[Mapping[str, object]]:
        """Return one row."""
        counts = []
        for state in (context.window_state, context.key_state):
            counts.append(state.get("firings", 0) + 1)
            state.put("firings", counts[-1])
        window_firing, key_firing = counts
        yield {
            "value": rows["value"].to_pylist(),
            "seq": rows["seq"].to_pylist(),
            "window_firing": window_firing,
            "key_firing": key_firing,
            "watermark": context.current_watermark,
        }


_WITH_STATE = pa.schema(
    [
        pa.field("value", pa.list_(pa.float64())),
        pa.field("seq", pa.list_(pa.int64())),
        *(pa.field(name, pa.int64()) for name in ("window_firing", "key_firing", "watermark")),
    ]
)


def _with_state(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("window_firing", "key_firing", "watermark")
    return {**_elements(row), **{name: row[name] for name in names}}


def _or_zero(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sum as Flink's function has it: its accumulator begins with 0, SQL's with null."""
    return {"result": row["result"] or 0.0}


def _elements(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"elements": row["value"], "seq": row["seq"]}


def _joined(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"result": ",".join(map(str, row["seq"]))}


#: Name in a scenario to the function.
FUNCTIONS: dict[str, NamedFunction] = {
    "collect": NamedFunction(Collect(("value", "seq")), _elements),
    "collect_state": NamedFunction(
        Process(_WithState(), ("value", "seq"), _WITH_STATE), _with_state, is_user_code=True
    ),
    "sum": replace(_aggregate(sum_("value")), payload=_or_zero),
    "count": _aggregate(count()),
    "min": _aggregate(min_("value")),
    "max": _aggregate(max_("value")),
    "avg": _aggregate(mean("value")),
    "concat_seq": NamedFunction(Collect(("seq",)), _joined, is_user_code=True),
    "reduce_first": _reduce(_earlier),
    "reduce_last": _reduce(_later),
    "reduce_max_by": _reduce(_greater),
    "reduce_sum": NamedFunction(
        Reduce(_added, ("value", "seq")), lambda row: {"result": row["value"]}, is_user_code=True
    ),
}
