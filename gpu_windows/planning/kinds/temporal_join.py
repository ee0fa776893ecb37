"""A query that joins rows with the version of their key."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_windows.functions.temporal_join import TemporalJoinSpec
from gpu_windows.planning.kinds.pairs import PairsQuery


@dataclass(frozen=True, kw_only=True)
class TemporalJoinQuery(PairsQuery):
    """Left rows with the versions that they meet, as of the left row's time (Flink).

    That is the greater time of both. A row that is in time comes when the watermark reaches it.
    Other parameters: see `PairsQuery`.

    Parameters
    ----------
    join : TemporalJoinSpec
    """

    join: TemporalJoinSpec

    @property
    def ends_with_time(self) -> bool:
        """Whether the end of time clears what is kept: no row comes any more that could meet it."""
        return True
