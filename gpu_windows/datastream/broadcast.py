"""A keyed stream connected to a small one whose rows go to every shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpu_windows.datastream.columns import as_list
from gpu_windows.datastream.schemas import Schema, read_schema
from gpu_windows.datastream.steps import LastStep, R
from gpu_windows.datastream.two_inputs import (
    Selection,
    TwoInputs,
    function_outputs,
    prefix_names,
)
from gpu_windows.functions.broadcast import KeyedBroadcastProcess, KeyedBroadcastProcessFunction
from gpu_windows.functions.two_inputs import COPY
from gpu_windows.runners.outputs import Input, KeyedInput, Outputs

#: Keep the names that users chose for what a side shows apart from others.
_PREFIXES = ("__keyed_", "__broadcast_")


class BroadcastStream(Input):
    """Rows that every shard of a keyed stream sees (Flink: BroadcastStream).

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
        selections = prefix_names(columns, broadcast, _PREFIXES)
        merged = both.merge(*selections, _PREFIXES, as_list(arrival_order))
        seen, is_timed = merged.names_of_sides(_PREFIXES), both.is_timed
        process = KeyedBroadcastProcess(function, read_schema(output), *seen, is_timed=is_timed)
        source = merged.source.add_constant(COPY, pa.scalar(value=False))
        return self._end(
            function_outputs(replace(merged, source=source), process, options, merged.order)
        )

    if TYPE_CHECKING:

        def with_outputs(self) -> BroadcastConnectedStream[Outputs]: ...  # noqa: D102 - `LastStep` has it
