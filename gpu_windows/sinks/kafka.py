"""A sink that writes records to Kafka topics, with headers that identify repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gpu_windows.commits.records import RESULT
from gpu_windows.errors import QueryError
from gpu_windows.functions.top_changes import Change
from gpu_windows.runners.sink import SinkBatch, SinkQuery, SinkWriter
from gpu_windows.sinks.modes import Mode, Replacement
from gpu_windows.sinks.placed import PlacedSink, check_places, copy_mapping, output_places
from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from gpu_windows.annotations import Column, DataFrame

_SERVERS = "kafka.bootstrap.servers"
_DELETED = Change.DELETE.name.lower()


@dataclass(frozen=True)
class KafkaSink(PlacedSink):
    """A sink that writes to topics of Kafka.

    Spark writes to Kafka at least once: an interrupted micro-batch is repeated, and records that it
    had written before are then there twice. So key and headers identify a record. The key is made
    of the keys, the window and the number of a result. The headers are the query
    (``gpu_windows.query``), the micro-batch (``gpu_windows.micro_batch``), when Spark planned it
    (``gpu_windows.planned_ms``), and the number of the record among the micro-batch's records of
    its key (``gpu_windows.row``). Records with equal topic, key and headers are repeats:
    `gpu_windows.drop_repeats` drops them; docs/kafka.md is about readers other than Spark. Readers
    that keep the latest value of each key, as a compacted topic does, need not drop them.

    Needs Spark's connector (``spark-sql-kafka-0-10``).

    Parameters
    ----------
    topic : str
        Of the results.
    options : mapping of str to str
        Of Spark's connector: ``kafka.bootstrap.servers``, and settings of producers.
    mode : {"append", "upsert"}
        Whether every result is written, or only the last firing of a window in a micro-batch. With
        "upsert" a removed row (`KeyedStream.top`) is a record without a value.
    late : str, optional
        The topic of late and rejected rows, whose records have the keys as their key. Default:
        they are counted, not written.
    sides : mapping of str to str
        Tags of side outputs to topics; each needs one.
    key, value : callable, optional
        Takes a struct column, of the key's columns or of all, and returns text or bytes of it:
        ``lambda row: to_avro(row)``. Default: JSON, times in UTC with microseconds.

    Raises
    ------
    QueryError
        If a parameter is invalid, or two outputs would go to one topic.

    Examples
    --------
    >>> options = {"kafka.bootstrap.servers": "localhost:9092"}
    >>> sink = gw.KafkaSink("minutes", options, mode="upsert", late="late_clicks")
    >>> sink.topic, sink.mode
    ('minutes', 'upsert')
    """

    topic: str
    options: Mapping[str, str] = field(repr=False)  # passwords are among them
    mode: Mode = "append"
    late: str | None = None
    sides: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    key: Callable[[Column], Column] | None = None
    value: Callable[[Column], Column] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "options", copy_mapping("options", self.options))
        if _SERVERS not in self.options:
            rule = f"options of a KafkaSink name {_SERVERS}"
            raise QueryError(rule, value=", ".join(self.options) or "none")
        if "topic" in {name.lower() for name in self.options}:
            raise QueryError("the topics of a KafkaSink are not among its options", value="topic")
        topics: list[Any] = [*self.topics.values()]
        for topic in topics:
            if not isinstance(topic, str) or not topic:
                raise QueryError("a topic is named by text", value=repr(topic))
        check_places(self.topics)

    @property
    def topics(self) -> Mapping[str, str]:
        """Names of the outputs that are written, to their topics."""
        return output_places(self.topic, self.late, self.sides)

    def open(self, query: SinkQuery) -> SinkWriter:
        """Return a writer that knows the columns of record keys."""
        results, others = Replacement.of(query), Replacement(query.key_columns, fires=False)
        if self.mode == "append":
            results = Replacement(results.on, fires=False)
        return KafkaWriter(self, results, others)


@dataclass(eq=False)
class KafkaWriter(SinkWriter):
    """Writes the outputs of a query to topics.

    Parameters
    ----------
    sink : KafkaSink
    results, others : Replacement
        Of results; and of late rows and side outputs, which the keys identify. Those that are
        appended have no deleted rows, and all firings count.
    """

    sink: KafkaSink
    results: Replacement
    others: Replacement
    _query: str = field(default="", init=False)

    def begin(self, query: SinkQuery) -> None:
        """Store the identity of the checkpoint."""
        self._query = query.identity

    def write(self, batch: SinkBatch) -> None:
        """Write the records of a micro-batch."""
        for output, topic in self.sink.topics.items():
            if batch.sizes[output]:
                replacement = self.results if output == RESULT else self.others
                write = self._records(batch.read(output, None), batch, replacement).write
                options = {**self.sink.options, "topic": topic}
                write.format("kafka").options(**options).save()

    def _records(self, rows: DataFrame, batch: SinkBatch, replacement: Replacement) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

        from gpu_windows.spark_glue.files.kafka_records import Records, as_json

        change, latest = replacement.change, replacement.latest(rows)
        gone = None if change is None else F.col(quote_name(change)) == _DELETED
        encode_key, encode_value = self.sink.key or as_json, self.sink.value or as_json
        make = Records(replacement.on, change, encode_key, encode_value)
        return make(latest, self._query, batch.number, gone, planned_ms=batch.planned_ms)
