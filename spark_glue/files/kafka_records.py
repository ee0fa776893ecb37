"""Converts rows to Kafka records whose headers identify repeats of a micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_windows.spark_glue.columns.names import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Headers: the query, the micro-batch, when it was planned, and which of the micro-batch's records
#: of its key it is. An older copy of a checkpoint plans other micro-batches of the same numbers.
QUERY, MICRO_BATCH, ROW = "gpu_windows.query", "gpu_windows.micro_batch", "gpu_windows.row"
PLANNED = "gpu_windows.planned_ms"

#: Options of JSON that do not depend on the session, so that equal rows have equal text.
_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
#: Temporary columns: a row as JSON, its position among emitted rows, its number within its key.
_TEXT, _POSITION, _NUMBER = "__text", "__place", "__number"
#: Temporary columns for the values of headers.
_HEADERS = {"__query": QUERY, "__micro_batch": MICRO_BATCH, "__planned": PLANNED, "__row": ROW}

Encoder = Callable[["Column"], "Column"]


def as_json(row: Column) -> Column:
    """Return a struct as JSON: times in UTC with microseconds, nulls included."""
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    return F.to_json(row, _JSON)


@dataclass(frozen=True)
class Records:
    """How rows become records.

    Parameters
    ----------
    key : sequence of str
        Columns of the record's key; none: all records have the same key, and one partition.
    without : str, optional
        A column to leave out of the value.
    encode_key, encode_value : callable
        Take a struct, and return text or bytes of it.
    """

    key: Sequence[str]
    without: str | None
    encode_key: Encoder
    encode_value: Encoder

    def __call__(
        self,
        rows: DataFrame,
        query: str,
        number: int,
        gone: Column | None = None,
        *,
        planned_ms: int | None = None,
    ) -> DataFrame:
        """Return records: ``key``, ``value``, ``headers``; those of a key stay in order.

        Key and headers identify a record. The number in `ROW` does not depend on the order in which
        rows arrive, so it is the same when the micro-batch is repeated.

        Parameters
        ----------
        rows : DataFrame
        query : str
            What tells the query's checkpoint from others.
        number : int
            The micro-batch.
        gone : Column, optional
            Whether a row has gone: then the value is null (a tombstone).
        planned_ms : int, optional
            When Spark planned the micro-batch, in milliseconds since 1970; its header is empty
            where that is not known.
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

        def struct(names: Sequence[str]) -> Column:
            return F.struct(*map(quote_name, names))

        key = self.encode_key(struct(self.key)) if self.key else F.lit("{}")
        row = struct([name for name in rows.columns if name != self.without])
        value = self.encode_value(row)
        made = rows.select(
            key.alias("key"),
            (value if gone is None else F.when(~gone, value)).alias("value"),
            as_json(struct(rows.columns)).alias(_TEXT),
            F.monotonically_increasing_id().alias(_POSITION),
        )
        of_key = Window.partitionBy("key").orderBy(_TEXT)
        numbered = made.withColumn(_NUMBER, F.row_number().over(of_key))
        planned = "" if planned_ms is None else str(planned_ms)
        texts = {QUERY: query, MICRO_BATCH: str(number), PLANNED: planned}
        fields = (*((name, F.lit(text)) for name, text in texts.items()), (ROW, F.col(_NUMBER)))
        headers = F.array(
            *(
                F.struct(F.lit(n).alias("key"), v.cast("string").cast("binary").alias("value"))
                for n, v in fields
            )
        )
        in_order = numbered.sortWithinPartitions(_POSITION)
        return in_order.select("key", "value", headers.alias("headers"))


def drop_repeats(records: DataFrame, within: str | None = None) -> DataFrame:
    """Drop records that a repeated micro-batch has written a second time.

    A micro-batch is identified by its number and the time of its plan: records that an older copy
    of a checkpoint writes under existing numbers are not repeats, and stay.

    Parameters
    ----------
    records : DataFrame
        As Spark's source of Kafka gives them with ``includeHeaders``, in batch or as a stream:
        ``topic``, ``partition``, ``offset``, ``key``, ``headers``; of a stream ``timestamp``, too.
        Records without the headers of a `KafkaSink` stay as they are.
    within : str, optional
        Of a stream: how long after a record its repeat may come, which is how long the query that
        writes may be down ("1 hour"). It is the delay of a watermark on Kafka's timestamps: a
        record that is further behind the latest one, of any partition, is dropped as Spark drops
        late rows.

    Returns
    -------
    DataFrame
        The same columns; one of equal records.

    Raises
    ------
    QueryError
        If columns are missing, or a stream is without ``within``.

    Examples
    --------
    >>> reader = spark.read.format("kafka").options(**options)  # doctest: +SKIP
    >>> records = reader.option("includeHeaders", True).load()  # doctest: +SKIP
    >>> gw.drop_repeats(records).select("key", "value").show()  # doctest: +SKIP
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everyone in Spark writes it

    from gpu_windows.errors import QueryError

    wanted = {"topic", "partition", "offset", "key", "headers"}
    wanted |= {"timestamp"} if records.isStreaming else set()
    missing = sorted(wanted - {*records.columns})
    if missing:
        rule = 'records are what Spark\'s Kafka source gives with option("includeHeaders", True)'
        raise QueryError(rule, value=f"no {', '.join(missing)}")
    if records.isStreaming and within is None:
        raise QueryError('streams need within, how late a repeat may arrive, such as "1 hour"')
    found = records
    for name, header in _HEADERS.items():
        matching = F.filter("headers", _has_key(header))
        found = found.withColumn(name, F.get(matching, F.lit(0))["value"])
    # Records of other writers have no headers: each is equal only to itself.
    for name in ("partition", "offset"):
        own = F.when(F.col(next(iter(_HEADERS))).isNull(), F.col(name))
        found = found.withColumn(f"__{name}", own)
    same = ["topic", "key", *_HEADERS, "__partition", "__offset"]
    if not records.isStreaming:
        return found.dropDuplicates(same).select(*records.columns)
    with_watermark = found.withWatermark("timestamp", within or "")
    return with_watermark.dropDuplicatesWithinWatermark(same).select(*records.columns)


def _has_key(header: str) -> Callable[[Column], Column]:
    """Return the predicate of headers with a key."""
    return lambda each: each["key"] == header
