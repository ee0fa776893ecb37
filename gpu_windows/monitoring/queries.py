"""Which commits a streaming query of this process makes: what shows its metrics reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.monitoring.progress import BatchMetrics

if TYPE_CHECKING:
    from gpu_windows.annotations import StreamingQuery


@dataclass(frozen=True)
class _Watched:
    """The commits of a query, and the last micro-batch that a start before this one delivered."""

    log: CommitLog
    delivered: int


#: By id of a query, which is the same whenever it is started on its checkpoint.
_queries: dict[str, _Watched] = {}


def last_delivered(log: CommitLog, last: StateCommit | None) -> int:
    """Return the number of the last micro-batch that was delivered; -1 if there is none.

    ``last``: the last commit, if there is one.
    """
    if last is None:
        return -1
    return last.number if log.is_delivered(last) else last.number - 1


def watch_commits(query: StreamingQuery, log: CommitLog, delivered: int) -> StreamingQuery:
    """Remember the commits of a query that was started; return the query.

    ``delivered``: what `last_delivered` returned before the start.
    """
    _queries[str(query.id)] = _Watched(log, delivered)
    return query


def read_metrics(query_id: str, after: int | None = None) -> list[BatchMetrics] | None:
    """Return the metrics of the latest micro-batches of a query, the oldest first.

    None if this process did not start the query.

    Parameters
    ----------
    query_id : str
    after : int, optional
        Number of a micro-batch: those after it. Default: those that the last start has delivered.
    """
    found = _queries.get(query_id)
    if found is None:
        return None
    last = found.log.last()
    known = found.delivered if after is None else after
    every = () if last is None else map(BatchMetrics.from_json, last.metrics)
    return [each for each in every if each.number > known]
