"""Serves the metrics of a session's streaming queries to Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from gpu_windows.monitoring.prometheus import QueryCollector, import_client
from gpu_windows.spark_glue.streams.listener import MetricsListener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Of OpenTelemetry's exporters for Prometheus.
_PORT = 9464


class MetricsServer:
    """A server of metrics, until it is closed: what `serve_metrics` returns.

    Parameters
    ----------
    session : SparkSession
    port : int
    address : str

    Attributes
    ----------
    listener : MetricsListener
        Has the same metrics for Python.
    port : int
        Where it listens.
    """

    def __init__(self, session: SparkSession, port: int, address: str) -> None:
        client = import_client()
        self.listener = MetricsListener()
        registry = client.CollectorRegistry()
        registry.register(QueryCollector(self.listener))
        self._server: Any
        self._server, self._thread = client.start_http_server(port, address, registry)
        self.port: int = self._server.server_port
        self._session = session
        session.streams.addListener(self.listener)

    def close(self) -> None:
        """Stop serving, and remove the listener from the session."""
        self._session.streams.removeListener(self.listener)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def serve_metrics(
    session: SparkSession, port: int = _PORT, *, address: str = "0.0.0.0"
) -> MetricsServer:
    """Serve the metrics of all streaming queries of a session at ``/metrics``, for Prometheus.

    The driver serves them, in a thread of its own, from the micro-batches on that are committed
    after the call. docs/prometheus.md has their names, a configuration and a dashboard. Needs the
    extra ``prometheus``.

    Parameters
    ----------
    session : SparkSession
    port : int
        0: any that is free, see the attribute ``port`` of what is returned.
    address : str
        Where to listen. Default: on all interfaces. There is no authentication: on a network that
        others share take ``127.0.0.1`` and a proxy.

    Returns
    -------
    MetricsServer
        With ``close()``; or in ``with``.

    Raises
    ------
    QueryError
        If the extra is not installed.
    OSError
        If the port is taken.

    Examples
    --------
    >>> server = gw.serve_metrics(spark, port=9464)  # doctest: +SKIP
    >>> query = gw.write_stream(outputs, "out", "checkpoint", name="minutes")  # doctest: +SKIP
    """
    return MetricsServer(session, port, address)
