"""Serves metrics of streaming queries to Prometheus."""

from __future__ import annotations

from typing import Any, Self

from gpu_windows.monitoring.prometheus import HasQueries, QueryCollector, import_client


class MetricsServer:
    """A server of metrics, until it is closed: what `MetricsListener.serve` returns.

    Parameters
    ----------
    listener : MetricsListener
    port : int
    address : str

    Attributes
    ----------
    port : int
        Where it listens.

    Raises
    ------
    MissingExtraError
        If the extra ``prometheus`` is not installed.
    OSError
        If the port is taken.
    """

    def __init__(self, listener: HasQueries, port: int, address: str) -> None:
        client = import_client()
        registry = client.CollectorRegistry()
        registry.register(QueryCollector(listener))
        self._server: Any
        self._server, self._thread = client.start_http_server(port, address, registry)
        self.port: int = self._server.server_port

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
