"""A Spark listener that collects the metrics of streaming queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from gpu_windows.errors import QueryError
from gpu_windows.monitoring.progress import QueryMetrics
from gpu_windows.monitoring.prometheus import MetricsServer
from gpu_windows.monitoring.queries import read_metrics

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )
    from pyspark.sql.streaming.query import StreamingQuery

#: The one of OpenTelemetry's exporters for Prometheus.
_PORT = 9464


class MetricsListener(StreamingQueryListener):
    """Collects the metrics of all queries of a session that `gpu_windows.write_stream` started.

    ``spark.streams.addListener(listener)`` makes Spark call it, in a thread of its own, a moment
    after the micro-batch. A query that is started again on its checkpoint continues its counts. A
    micro-batch that is run again after a failure is reported once; one whose report is lost with
    the driver never is.

    Parameters
    ----------
    callback : callable, optional
        Called with a `gpu_windows.monitoring.progress.QueryMetrics` after every micro-batch and at
        the end, in Spark's thread: it should return quickly.

    Examples
    --------
    >>> listener = gw.MetricsListener(lambda metrics: print(metrics.counters.rows))
    >>> dict(listener.queries)  # after spark.streams.addListener(listener): by the query's id
    {}
    """

    def __init__(self, callback: Callable[[QueryMetrics], None] | None = None) -> None:
        self._callback = callback
        self._queries: dict[str, QueryMetrics] = {}

    @property
    def queries(self) -> Mapping[str, QueryMetrics]:
        """Metrics of each query by its id."""
        return MappingProxyType(dict(self._queries))

    def of(self, query: StreamingQuery) -> QueryMetrics:
        """Return the metrics of a query.

        Raises
        ------
        QueryError
            If no micro-batch of it has been reported yet.
        """
        found = self._queries.get(str(query.id))
        if found is None:
            rule = "a query must have reported a micro-batch, and be started by write_stream"
            raise QueryError(rule, value=query.name or query.id)
        return found

    def serve(self, port: int = _PORT, *, address: str = "127.0.0.1") -> MetricsServer:
        """Serve the metrics at ``/metrics`` for Prometheus, in a thread, until that is closed.

        docs/prometheus.md has their names, a configuration and a dashboard. Needs the extra
        ``prometheus``.

        Parameters
        ----------
        port : int
            0: any that is free, see the attribute ``port`` of what is returned.
        address : str
            Where to listen. Default: for programs of this machine alone. ``0.0.0.0``: on all its
            interfaces, and there is no authentication, so only on a network of your own.

        Returns
        -------
        gpu_windows.monitoring.prometheus.MetricsServer
            With ``port`` and ``close()``; or in ``with``.

        Raises
        ------
        MissingExtraError
            If the extra is not installed.
        OSError
            If the port is taken.
        """
        return MetricsServer(self, port, address)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - as Spark calls it
        """Record that a known query runs again."""
        metrics = self._queries.get(str(event.id))
        if metrics is not None:
            self._queries[str(event.id)] = replace(metrics, is_active=True, error=None)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Add the micro-batches that were committed since the last event."""
        key, name = str(event.progress.id), event.progress.name
        metrics = self._queries.get(key) or QueryMetrics(name or key)
        for batch in read_metrics(key, None if metrics.last is None else metrics.last.number) or ():
            metrics = metrics.plus(batch)
            self._update(key, metrics)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: no micro-batch ran."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Record that a query has ended, and why."""
        metrics = self._queries.get(str(event.id))
        if metrics is not None:
            self._update(str(event.id), metrics.end(event.exception))

    def _update(self, key: str, metrics: QueryMetrics) -> None:
        self._queries[key] = metrics
        if self._callback is not None:
            self._callback(metrics)
