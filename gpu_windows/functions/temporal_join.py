"""The function of a temporal join: left rows with the version of their key at their time."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from gpu_windows import rules
from gpu_windows.functions.join import Pair, describe_target
from gpu_windows.functions.join_function import PairProcess
from gpu_windows.functions.two_inputs import SIDE
from gpu_windows.vocabulary.options import show_ticks


@dataclass(frozen=True)
class TemporalJoinSpec:
    """Every left row with the newest right row of its key that is not later.

    A left row is buffered until the watermark reaches its time, because a newer version may arrive
    until then. A version is stored until the watermark reaches a newer one.

    Parameters
    ----------
    pair : Pair
        Of an inner or a left join.
    output : pyarrow.Schema
        The columns of the pairs, after the keys.
    deleted : str, optional
        A boolean column of the right rows: true if the key has no version from then on.
    valid_for : int, optional
        How long a version is valid, in ticks; default: until the next one.
    process : PairProcess, optional
        A user's function of the pairs; its results are then those of the join.

    Notes
    -----
    Source: org.apache.flink.table.runtime.operators.join.temporal.TemporalRowTimeJoinOperator.
    """

    pair: Pair
    output: pa.Schema
    deleted: str | None = None
    valid_for: int | None = None
    process: PairProcess | None = None

    @property
    def right(self) -> tuple[str, ...]:
        """Columns of right rows that are read."""
        deleted = () if self.deleted is None else (self.deleted,)
        return (*self.pair.right, *deleted)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are read."""
        return (SIDE, *self.pair.left, *self.right)

    @property
    def lower(self) -> int:
        """Lower bound of a valid version's time relative to the left row's, in ticks: at most 0."""
        return rules.oldest_version(self.valid_for)

    @property
    def usable_ticks(self) -> tuple[int, int]:
        """First and last event time of a row: any two are less than 2^63 ticks apart."""
        return rules.VERSIONED_TICKS

    def order_dependent(self, *, bounded: bool) -> tuple[str, ...]:
        """Return descriptions of what depends on the order of arrival."""
        del bounded
        return ("which of several versions of one time it is",)

    def describe(self) -> str:
        """Return a description for ``explain()``."""
        extra = self.pair.describe_terms()
        extra += "" if self.deleted is None else ", unless it is deleted"
        extra += "" if self.valid_for is None else f", valid for {show_ticks(self.valid_for)}"
        extra += describe_target(self.process)
        return f"{self.pair.how} join, the version of the right side at the left time{extra}"
