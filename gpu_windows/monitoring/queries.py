"""Registry of the streaming queries of this process, from which their metrics are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.monitoring.progress import BatchMetrics

if TYPE_CHECKING:
    from gpu_windows.annotations import StreamingQuery


@dataclass(frozen=True)
class _StartedQuery:
    """The commits of a query, and the last micro-batch delivered before this start."""

    log: CommitLog
    delivered: int


#: By the id of a query, which is the same at every start on its checkpoint.
_queries: dict[str, _StartedQuery] = {}


def last_delivered(log: CommitLog, last: StateCommit | None) -> int:
    """Return the number of the last delivered micro-batch, or -1.

    ``last``: the last commit, if there is one.
    """
    if last is None:
        return -1
    return last.number if log.is_delivered(last) else last.number - 1


def watch_commits(query: StreamingQuery, log: CommitLog, delivered: int) -> StreamingQuery:
    """Register the commits of a started query; return the query.

    ``delivered``: what `last_delivered` returned before the start.
    """
    _queries[str(query.id)] = _StartedQuery(log, delivered)
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
    seen = found.delivered if after is None else after
    every = () if last is None else map(BatchMetrics.from_json, last.metrics)
    return [each for each in every if each.number > seen]
