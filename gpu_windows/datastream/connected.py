"""Process functions over rows of keys: of a keyed stream, or of two streams that are connected.

The second one may be small, and have no key: then it is broadcast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from gpu_windows.datastream.columns import as_list, bind_columns, check_seen
from gpu_windows.datastream.schemas import Schema, read_schema
from gpu_windows.datastream.steps import LastStep, R
from gpu_windows.datastream.two_inputs import (
    Selection,
    TwoInputs,
    function_outputs,
    prefix_names,
)
from gpu_windows.functions.broadcast import KeyedBroadcastProcess, KeyedBroadcastProcessFunction
from gpu_windows.functions.declarations import check_function
from gpu_windows.functions.keyed_process import (
    KeyedCoProcess,
    KeyedCoProcessFunction,
    KeyedProcess,
    KeyedProcessFunction,
)
from gpu_windows.functions.two_inputs import COPY
from gpu_windows.functions.vector_process import VectorProcess, VectorProcessFunction
from gpu_windows.runners.outputs import Input, KeyedInput, Outputs

if TYPE_CHECKING:
    from gpu_windows.annotations import Column

#: Keep the names that users chose for what a side shows apart from others.
_PREFIXES = ("__left_", "__right_")
_BROADCAST_PREFIXES = ("__keyed_", "__broadcast_")
#: Functions over the rows of a keyed stream.
ProcessFunction: TypeAlias = KeyedProcessFunction | VectorProcessFunction
#: What makes a value of each.
_KINDS: tuple[type[KeyedProcess | VectorProcess], ...] = (KeyedProcess, VectorProcess)


def process_outputs(
    keyed: KeyedInput,
    function: ProcessFunction,
    columns: Sequence[str | Column],
    output: pa.Schema,
    arrival_order: Sequence[str | Column],
    options: Mapping[str, Any],
) -> Outputs:
    """Return the outputs of a function over the rows of a keyed stream."""
    source, seen = bind_columns(keyed.source, as_list(columns))
    source, order = bind_columns(source, as_list(arrival_order), "__order")
    check_function(function, *(kind.kind for kind in _KINDS))
    kind = next(each for each in _KINDS if isinstance(function, each.kind))
    names = tuple(map(source.display_name, seen))
    check_seen([*map(source.display_name, dict.fromkeys(seen))])
    process = kind(function, output, seen, names)  # type: ignore[arg-type]
    return function_outputs(replace(keyed, source=source), process, options, order)


@dataclass(frozen=True)
class ConnectedStreams(LastStep[R]):
    """Two keyed streams whose rows go to one function, which keeps state of both.

    Flink: ConnectedStreams.

    Examples
    --------
    >>> class Sides(gw.functions.KeyedCoProcessFunction):
    ...     def process_element1(self, row, context):
    ...         return [{"side": "order", "id": row["id"]}]
    ...
    ...     def process_element2(self, row, context):
    ...         return [{"side": "payment", "id": row["id"]}]
    >>> orders = gw.stream(pa.table({"user": ["ann"], "id": [1]})).key_by("user")
    >>> payments = gw.stream(pa.table({"user": ["ann"], "id": [9]})).key_by("user")
    >>> both = orders.connect(payments)
    >>> both.process(Sides(), ["id"], ["id"], output="side STRING, id BIGINT").to_pylist()
    [{'user': 'ann', 'side': 'order', 'id': 1}, {'user': 'ann', 'side': 'payment', 'id': 9}]
    """

    both: TwoInputs

    def process(
        self,
        function: KeyedCoProcessFunction,
        left: Selection = (),
        right: Selection = (),
        *,
        output: Schema,
        arrival_order: Sequence[str] = (),
        **options: Any,
    ) -> R:
        """Give the rows of both streams to a function of yours, in Python.

        Parameters
        ----------
        function : KeyedCoProcessFunction
        left, right : sequence of str or Column, or mapping
            What it sees of each side, by the columns' own names or those of the mapping.
        output : pyarrow.Schema, str or StructType
            The columns that it returns, after the keys; a text is DDL: ``"total DOUBLE"``.
        arrival_order : sequence of str
            Columns of both inputs that give the order of arrival, which a shuffle in Spark loses.
        **options
            See `Options`.

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs
        """
        selections = prefix_names(left, right, _PREFIXES)
        merged = self.both.merge(*selections, _PREFIXES, as_list(arrival_order))
        seen, is_timed = merged.names_of_sides(_PREFIXES), self.both.is_timed
        process = KeyedCoProcess(function, read_schema(output), *seen, is_timed=is_timed)
        return self._end(function_outputs(merged, process, options, merged.order))

    if TYPE_CHECKING:

        def with_outputs(self) -> ConnectedStreams[Outputs]: ...  # noqa: D102 - `LastStep` has it


class BroadcastStream(Input):
    """Rows that every shard of a keyed stream sees (Flink: BroadcastStream).

    Parameters: see `Input`.

    Examples
    --------
    >>> rules = gw.stream(pa.table({"currency": ["EUR"], "rate": [0.5]})).broadcast()
    >>> isinstance(rules, gw.typing.BroadcastStream)
    True
    """


@dataclass(frozen=True)
class _Inputs(TwoInputs):
    """A keyed stream, and one that has no keys."""

    def _check_keys(self) -> None:
        """Accept any: the right side has none."""

    @property
    def _right_keys(self) -> tuple[str | None, ...]:
        return (None,) * len(self.left.keys)


@dataclass(frozen=True)
class BroadcastConnectedStream(LastStep[R]):
    """A keyed stream and a broadcast one, whose rows go to one function.

    Flink: BroadcastConnectedStream.

    Examples
    --------
    >>> class Limited(gw.functions.KeyedBroadcastProcessFunction):
    ...     broadcast_state = {"limits": gw.functions.MapStateDescriptor(pa.string(), pa.int64())}
    ...
    ...     def process_broadcast_element(self, row, context):
    ...         context.broadcast_state("limits").put("amount", row["limit"])
    ...
    ...     def process_element(self, row, context):
    ...         limit = context.broadcast_state("limits").get("amount")
    ...         return [row] if row["amount"] > limit else []
    >>> sales = gw.stream(pa.table({"shop": ["a", "b"], "amount": [5, 50]})).key_by("shop")
    >>> limits = gw.stream(pa.table({"limit": [10]})).broadcast()
    >>> both = sales.connect(limits)
    >>> both.process(Limited(), ["amount"], ["limit"], output="amount BIGINT").to_pylist()
    [{'shop': 'b', 'amount': 50}]
    """

    keyed: KeyedInput
    broadcast: BroadcastStream

    def process(
        self,
        function: KeyedBroadcastProcessFunction,
        columns: Selection = (),
        broadcast: Selection = (),
        *,
        output: Schema,
        arrival_order: Sequence[str] = (),
        **options: Any,
    ) -> R:
        """Give the rows of both streams to a function of yours, in Python.

        Parameters
        ----------
        function : KeyedBroadcastProcessFunction
        columns, broadcast : sequence of str or Column, or mapping
            What it sees of the keyed rows and of those that are broadcast, by the columns' own
            names or those of the mapping.
        output : pyarrow.Schema, str or StructType
            The columns that it returns, after the keys, which are null in what it gives for a
            broadcast row.
        arrival_order : sequence of str
            Columns of both inputs that give the order of arrival within each, which a shuffle in
            Spark loses. The broadcast rows of a micro-batch come before its keyed rows; those of a
            bounded input before all.
        **options
            See `Options`.

        Returns
        -------
        pyspark.sql.DataFrame, pyarrow.Table or, after `with_outputs`, Outputs
        """
        small = self.broadcast
        both = _Inputs(self.keyed, KeyedInput(small.source, small.time, small.watermarks, ()))
        selections = prefix_names(columns, broadcast, _BROADCAST_PREFIXES)
        merged = both.merge(*selections, _BROADCAST_PREFIXES, as_list(arrival_order))
        seen, is_timed = merged.names_of_sides(_BROADCAST_PREFIXES), both.is_timed
        process = KeyedBroadcastProcess(function, read_schema(output), *seen, is_timed=is_timed)
        source = merged.source.add_constant(COPY, pa.scalar(value=False))
        return self._end(
            function_outputs(replace(merged, source=source), process, options, merged.order)
        )

    if TYPE_CHECKING:

        def with_outputs(self) -> BroadcastConnectedStream[Outputs]: ...  # noqa: D102 - `LastStep` has it
