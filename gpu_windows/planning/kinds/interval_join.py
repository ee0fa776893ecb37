"""A query that joins two inputs in time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpu_windows.functions.interval_join import IntervalJoinSpec
from gpu_windows.planning.kinds.pairs import PairsQuery
from gpu_windows.planning.result_times import ResultTimes


@dataclass(frozen=True, kw_only=True)
class IntervalJoinQuery(PairsQuery):
    """Pairs of rows of two inputs that are near in time. Other parameters: see `PairsQuery`.

    Parameters
    ----------
    join : IntervalJoinSpec
    """

    join: IntervalJoinSpec

    @property
    def results_in_time(self) -> ResultTimes:
        """The greater time of the rows of a pair: it comes with the later row (Flink).

        A row that has to wait until no partner comes any more comes after its time. So may a left
        row whose partner is not told, and one that is late and joined: then the watermark is held
        back, as Flink's SQL does.
        """
        times, join = super().results_in_time, self.join
        at_once = join.pair.how == "inner" and join.nearest is None and not join.joins_late
        return times if at_once else replace(times, behind=max(0, *join.retention) + 1)

    @property
    def ends_with_time(self) -> bool:
        """Whether the end of time clears what is kept: rows of the last tick stay."""
        return False
