"""Queries that pair the rows of two inputs by their times: they have no windows."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from gpu_windows.errors import UnsupportedQueryError
from gpu_windows.functions.interval_join import IntervalJoinSpec
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.functions.temporal_join import TemporalJoinSpec
from gpu_windows.functions.two_inputs import MARKS
from gpu_windows.planning.query import Query
from gpu_windows.planning.result_times import RESULT_TIME, ResultTimes
from gpu_windows.vocabulary.rich_functions import Openable, opens


@dataclass(frozen=True, kw_only=True)
class PairsQuery(Query):
    """Pairs of rows of two inputs, which are united with a column for the side of a row.

    Results come with its rows, or with the watermark. Other parameters: see `Query`.

    Parameters
    ----------
    join : IntervalJoinSpec or TemporalJoinSpec
    """

    join: IntervalJoinSpec | TemporalJoinSpec
    needs_time = True

    @property
    def used_columns(self) -> tuple[str, ...]:
        """Columns of both sides, and the one with the side of a row."""
        return tuple(dict.fromkeys(self.join.columns))

    def without(self, names: Container[str]) -> Self | None:
        """Return the query without some columns of pairs; None for results of a function."""
        join = self.join
        left, right = (
            tuple(name for name in side if name not in names)
            for side in (join.pair.left, join.pair.right)
        )
        rest = [field for field in join.output if field.name not in names]
        if join.process is not None or not rest:
            return None
        pair = replace(join.pair, left=left, right=right)
        return replace(self, join=replace(join, pair=pair, output=pa.schema(rest)))

    @property
    def carried_columns(self) -> frozenset[str]:
        """All columns, unless a condition may compare them."""
        return frozenset(self.used_columns if self.join.pair.condition is None else ())

    @property
    def result_fields(self) -> tuple[pa.Field, ...]:
        """The selected columns of pairs, or those that the function declares."""
        process = self.join.process
        return tuple(self.join.output if process is None else process.output)

    @property
    def pair_process(self) -> PairProcess | None:
        """The user's function that the pairs go to, if there is one."""
        return self.join.process

    @property
    def without_process(self) -> Self:
        """The join without the user's function."""
        return replace(self, join=replace(self.join, process=None))

    @property
    def rich_parts(self) -> tuple[Openable, ...]:
        """The function, if it is to be opened."""
        process = self.join.process
        return () if process is None or not opens(process.function) else (process.function,)

    @property
    def declared_sides(self) -> Mapping[str, pa.Schema]:
        """Side outputs of the function."""
        return {} if self.join.process is None else self.join.process.function.side_outputs

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """The times for which the bounds of matching rows fit int64 ticks."""
        return self.join.usable_ticks

    @property
    def results_in_time(self) -> ResultTimes:
        """The greater time of both rows; results of a function of pairs have no time."""
        if self.join.process is not None:
            rule = (
                "results of a function of pairs have no time: continue from the pairs that "
                "select(...) returns, or use a KeyedProcessFunction"
            )
            raise UnsupportedQueryError(rule, value=self.join.process.describe())
        sides = tuple(name for name in MARKS if name in self.join.output.names)
        return ResultTimes(RESULT_TIME, sides=sides)

    @property
    def time_dependent_part(self) -> str:
        """The join."""
        return self.join.describe()

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return descriptions of the matches that depend on the order of arrival."""
        return self.join.order_dependent(bounded=bounded)

    def describe(self) -> Mapping[str, str]:
        """Return a description of each part, by its name."""
        return {
            "join": self.join.describe(),
            **self.sides_description,
            "time": self.time_description,
            "key": ", ".join(self.display_keys) or "none: all rows together",
        }

    @property
    def parts(self) -> Mapping[str, object]:
        """The join."""
        return {"join": self.join}
