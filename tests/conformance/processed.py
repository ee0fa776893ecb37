"""Scenarios of process functions in our words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import gpu_windows as gw
from gpu_windows.datastream.connected import BroadcastStream
from gpu_windows.datastream.keyed import KeyedStream
from gpu_windows.functions.two_inputs import COPY
from gpu_windows.planning.query import Query
from gpu_windows.vocabulary.options import Options
from gpu_windows.vocabulary.watermarks import WatermarkStrategy
from tests.conformance import broadcast_functions as rules
from tests.conformance import co_process_functions as two
from tests.conformance import process_functions as one
from tests.conformance import stateful_functions as stateful
from tests.conformance.cases import Case
from tests.conformance.functions import SCHEMA
from tests.conformance.process_base import OfScenario
from tests.conformance.scenario import Part, Record
from tests.conformance.two_inputs import TwoInputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What functions see of rows.
_SEEN = ("value", "seq")


#: Makes a function of its parameter, how many ticks a millisecond has, and whether it is by_clock.
Make = Callable[..., Any]
KEYED: Mapping[str, Make] = {
    "align_and_chain": one.AlignAndChain,
    "both_timers": one.BothTimers,
    "count_with_timeout": one.CountWithTimeout,
    "delete_on_negative": one.DeleteOnNegative,
    "inactivity": one.Inactivity,
    "reducing_and_map": stateful.ReducingAndMap,
    "side_outputs": stateful.SideOutputs,
    "state_and_timer": stateful.StateAndTimer,
    "timer_per_element": one.TimerPerElement,
    "timers_in_timers": one.TimersInTimers,
    "ttl": stateful.Ttl,
    "watermark_probe": one.WatermarkProbe,
}
CO_KEYED: Mapping[str, Make] = {
    "co_side_outputs": two.CoSideOutputs,
    "pair_or_timeout": two.PairOrTimeout,
    "threshold_rules": two.ThresholdRules,
}
BROADCAST: Mapping[str, Make] = {
    "broadcast_probe": rules.BroadcastProbe,
    "rules": rules.Rules,
    "rules_side_outputs": rules.RulesSideOutputs,
}
#: Those that tell the clock whatever the time of their timers.
_TELL_THE_CLOCK = {"both_timers", "ttl"}


def tells_the_clock(function: Part) -> bool:
    """Tell whether a named function tells the clock though none of its timers of it fires."""
    by_clock = function.parameters.get("time_domain") == "processing_time"
    return function.type in _TELL_THE_CLOCK or (by_clock and function.type in BROADCAST)


def _told(row: Mapping[str, Any], function: OfScenario) -> dict[str, Any]:
    """Return a result row as an emission, which has no window."""
    return {"key": row["key"], **function.told(row), "timestamp": row["timestamp"]}


@dataclass(frozen=True)
class Processed(Case):
    """A process function over one input."""

    function: Any

    @property
    def is_user_code(self) -> bool:
        """Whether it is a user's code: always."""
        return True

    @property
    def _output(self) -> pa.Schema:
        return pa.schema(self.function.output.items())

    def _processed(self, keyed: KeyedStream, options: Options) -> gw.typing.Outputs:
        return keyed.with_outputs().process(
            self.function, _SEEN, output=self._output, arrival_order=("seq",), **vars(options)
        )

    def query(self, options: Options) -> Query:
        """Return the query that the public API makes of a table without rows."""
        rows = gw.stream(SCHEMA.empty_table())
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        return self._processed(rows.event_time("ts", strategy).key_by("key"), options).plan.query

    def columns(self, records: Sequence[Record]) -> Mapping[str, Iterable[object]]:
        """Return the columns of `SCHEMA`."""
        names = ("key", "ts", "value", "seq")
        return {name: [getattr(record, name) for record in records] for name in names}

    def outputs(
        self, frames: Sequence[DataFrame], options: Options, watermarks: WatermarkStrategy
    ) -> gw.typing.Outputs:
        """Return the outputs of the public API over a DataFrame."""
        (frame,) = frames
        return self._processed(gw.stream(frame).event_time("ts", watermarks).key_by("key"), options)

    def payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the function gave."""
        found: dict[str, Any] = self.function.told(row)
        return found

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the function gave, with its timestamp."""
        return _told(row, self.function)


@dataclass(frozen=True)
class CoProcessed(TwoInputs):
    """A process function over two connected inputs."""

    function: Any

    @property
    def is_user_code(self) -> bool:
        """Whether it is a user's code: always."""
        return True

    @property
    def _output(self) -> pa.Schema:
        return pa.schema(self.function.output.items())

    def joined(self, sides: Sequence[KeyedStream], options: Options) -> gw.typing.Outputs:
        """Return the outputs of two keyed streams."""
        left, right = sides
        return (
            left.connect(right)
            .with_outputs()
            .process(
                self.function,
                _SEEN,
                _SEEN,
                output=self._output,
                arrival_order=("seq",),
                **vars(options),
            )
        )

    def columns(self, records: Sequence[Record]) -> Mapping[str, Iterable[object]]:
        """Return the columns of both sides, those of the other side null."""
        columns = super().columns(records)
        return {f"__{n}" if n.startswith(self.sides) else n: each for n, each in columns.items()}

    def seq_of(self, row: Mapping[str, Any]) -> int:
        """Return which record a row is."""
        return int(row["__order_0"])

    def payload(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the function gave."""
        found: dict[str, Any] = self.function.told(row)
        return found

    def emission(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the function gave, with its timestamp."""
        return _told(row, self.function)


@dataclass(frozen=True)
class BroadcastProcessed(CoProcessed):
    """A process function over rows of keys, and over those that are broadcast, which have none."""

    def joined(self, sides: Sequence[KeyedStream], options: Options) -> gw.typing.Outputs:
        """Return the outputs of a keyed stream and of a broadcast one."""
        keyed, small = sides
        broadcast = BroadcastStream(small.source, small.time, small.watermarks)
        seen, order = ("key", *_SEEN), ("seq",)
        return (
            keyed.connect(broadcast)
            .with_outputs()
            .process(
                self.function,
                _SEEN,
                seen,
                output=self._output,
                arrival_order=order,
                **vars(options),
            )
        )

    def columns(self, records: Sequence[Record]) -> Mapping[str, Iterable[object]]:
        """Return the columns of both sides; the key of a broadcast row is a name."""
        columns = {
            name.replace("__left_", "__keyed_").replace("__right_", "__broadcast_"): values
            for name, values in super().columns(records).items()
        }
        return {
            **columns,
            COPY: [False] * len(records),
            "key": [record.key if record.side == "left" else None for record in records],
            "__broadcast_key": [record.key for record in records],
        }
