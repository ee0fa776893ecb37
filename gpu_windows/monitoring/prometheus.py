"""Metrics of streaming queries in the form of Prometheus, and a server of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from gpu_windows.errors import require_extra
from gpu_windows.monitoring.progress import QueryMetrics

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_PREFIX = "gpu_windows_"
_LABELS = ("query", "target")
#: Counters of rows that are in no window, which are the reasons for that.
_DROPPED = (
    "late",
    "gap",
    "null_timestamp",
    "out_of_range_timestamp",
    "future_timestamp",
    "invalid_session_gap",
)
_S_A_MS = 1e-3
#: Values of a label to values of a metric.
_Values = Mapping[str, float]


class HasQueries(Protocol):
    """An object with metrics of queries: `gpu_windows.MetricsListener`."""

    @property
    def queries(self) -> Mapping[str, QueryMetrics]:
        """Metrics of each query by its id, in the order of their starts."""


@dataclass(frozen=True)
class _Family:
    """A metric.

    Parameters
    ----------
    name : str
        Without the prefix, and ``_total`` of counters.
    help : str
    values : callable
        Takes the metrics of a query; returns values by those of ``label``, none for no sample.
    kind : {"counter", "gauge"}
    label : str
        A further label; empty: there is none, and values have the key "".
    """

    name: str
    help: str
    values: Callable[[QueryMetrics], _Values]
    kind: Literal["counter", "gauge"] = "counter"
    label: str = ""


def _one(read: Callable[[QueryMetrics], float | None]) -> Callable[[QueryMetrics], _Values]:
    """Return a function that gives one value, or none."""

    def values(metrics: QueryMetrics) -> _Values:
        value = read(metrics)
        return {} if value is None else {"": value}

    return values


def _read_watermark(metrics: QueryMetrics) -> float | None:
    last = metrics.last
    return None if last is None or last.watermark is None else last.watermark.timestamp()


def _read_holder(metrics: QueryMetrics) -> float | None:
    last = metrics.last
    return None if last is None or last.held is None else last.held.input or 0


def _last(name: str) -> Callable[[QueryMetrics], _Values]:
    return _one(lambda m: None if m.last is None else float(getattr(m.last, name)))


def _counter(name: str) -> Callable[[QueryMetrics], _Values]:
    return _one(lambda m: getattr(m.counters, name))


FAMILIES = (
    _Family("query_active", "1 while the query runs.", _one(lambda m: m.is_active), "gauge"),
    _Family("micro_batches", "Committed micro-batches.", _one(lambda m: m.batches)),
    _Family(
        "micro_batch_seconds",
        "Seconds from the starts of micro-batches to their commits.",
        _one(lambda m: m.seconds),
    ),
    _Family("last_micro_batch", "Number of the last micro-batch.", _last("number"), "gauge"),
    _Family("rows", "Input rows.", _counter("rows")),
    _Family(
        "rows_dropped",
        "Input rows in no window.",
        lambda m: {reason: getattr(m.counters, reason) for reason in _DROPPED},
        label="reason",
    ),
    _Family(
        "rows_locally_aggregated",
        "Rows that were aggregated before the shuffle.",
        _counter("locally_aggregated"),
    ),
    _Family("windows_fired", "Emitted windows.", _counter("fired")),
    _Family(
        "kernel_seconds",
        "Seconds in operators of all shards: kernels and their preparation.",
        _one(lambda m: m.kernel_ms * _S_A_MS),
    ),
    _Family(
        "state_seconds",
        "Seconds of all shards in reading and writing state.",
        _one(lambda m: m.state_ms * _S_A_MS),
    ),
    _Family(
        "kernel_calls",
        "Calls of kernels.",
        lambda m: {"cpu": m.counters.cpu_batches, "cuda": m.counters.cuda_batches},
        label="device",
    ),
    _Family(
        "device_fallbacks",
        "Calls that ran on the CPU because device memory was too small.",
        _counter("device_fallbacks"),
    ),
    _Family("state_entries", "Entries of state.", _one(lambda m: m.state_rows), "gauge"),
    _Family("state_bytes", "Bytes of state.", _one(lambda m: m.state_bytes), "gauge"),
    _Family("shards", "Shards.", _last("shards"), "gauge"),
    _Family(
        "watermark_timestamp_seconds",
        "The watermark, in seconds since 1970.",
        _one(_read_watermark),
        "gauge",
    ),
    _Family(
        "watermark_holder_input",
        "Number of the input that holds the watermark back, from 1; 0 if all are idle.",
        _one(_read_holder),
        "gauge",
    ),
    _Family(
        "user_counter", "Counters of user code.", lambda m: dict(m.counters.user), label="name"
    ),
)


class QueryCollector:
    """Collects the metrics of streaming queries for a registry of Prometheus.

    `gpu_windows.MetricsListener.serve` serves them; with this they are part of a registry of your
    own, which you serve or push as you like. Metrics begin with ``gpu_windows_``, and have labels:
    ``query``, the name of the query (its id without one), and ``target``, the name of an earlier
    stage or of one of several queries, which is empty for the last one, or the only one. Of queries
    of one name the one that was started last counts.

    Parameters
    ----------
    listener : MetricsListener
        Which Spark calls: ``spark.streams.addListener(listener)``.

    Examples
    --------
    >>> from prometheus_client import CollectorRegistry, generate_latest  # doctest: +SKIP
    >>> registry = CollectorRegistry()  # doctest: +SKIP
    >>> registry.register(QueryCollector(listener))  # doctest: +SKIP
    """

    def __init__(self, listener: HasQueries) -> None:
        self._listener = listener

    def describe(self) -> list[Metric]:
        """Return no metrics: so registering it asks for no values."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with its values for all queries and their targets."""
        core = import_client().core
        kinds = {"counter": core.CounterMetricFamily, "gauge": core.GaugeMetricFamily}
        queries = {each.name: each for each in self._listener.queries.values()}
        for family in FAMILIES:
            labels = [*_LABELS, *filter(None, [family.label])]
            metric = kinds[family.kind](_PREFIX + family.name, family.help, labels=labels)
            for query, whole in queries.items():
                for target, metrics in _targets_of(whole):
                    for value, amount in family.values(metrics).items():
                        further = [value] if family.label else []
                        metric.add_metric([query, target, *further], float(amount))
            yield metric


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


def _targets_of(metrics: QueryMetrics) -> Iterator[tuple[str, QueryMetrics]]:
    yield "", metrics
    for name, each in metrics.stages.items():
        # Whether the query runs is known of the whole.
        yield name, each if metrics.is_active else each.end(None)


def import_client() -> Any:
    """Return the package of the client.

    Raises
    ------
    MissingExtraError
        If the extra ``prometheus`` is not installed.
    """
    require_extra("prometheus_client", "prometheus", "serving metrics to Prometheus")
    import prometheus_client
    import prometheus_client.core

    return prometheus_client
