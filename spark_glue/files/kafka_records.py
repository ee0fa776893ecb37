"""Rows as records of Kafka, which tell a reader what a micro-batch that came again repeats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_windows.spark_glue.columns.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Headers: the query, the micro-batch, when it was planned, and which of the micro-batch's records
#: of its key it is. An older copy of a checkpoint plans other micro-batches of the same numbers.
QUERY, MICRO_BATCH, ROW = "gpu_windows.query", "gpu_windows.micro_batch", "gpu_windows.row"
PLANNED = "gpu_windows.planned_ms"

#: How JSON has times, wherever the session is: the same rows are the same text.
_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
#: Columns of a moment: a row as text, and its place among those that were emitted.
_TEXT, _PLACE, _NUMBER = "__text", "__place", "__number"
#: Columns of a moment for the values of headers.
_TOLD = {"__query": QUERY, "__micro_batch": MICRO_BATCH, "__planned": PLANNED, "__row": ROW}

Encoder = Callable[["Column"], "Column"]


def as_json(row: Column) -> Column:
    """Return a struct as JSON: times in UTC with microseconds, nulls told."""
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
        A column that the value does not hold.
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
        """Return records: ``key``, ``value``, ``headers``; those of a key in their order.

        A record is told from others by its key and its headers. The number in `ROW` does not depend
        on the order in which rows came, so it is the same when the micro-batch comes again.

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
            return F.struct(*map(quoted, names))

        key = self.encode_key(struct(self.key)) if self.key else F.lit("{}")
        row = struct([name for name in rows.columns if name != self.without])
        value = self.encode_value(row)
        made = rows.select(
            key.alias("key"),
            (value if gone is None else F.when(~gone, value)).alias("value"),
            as_json(struct(rows.columns)).alias(_TEXT),
            F.monotonically_increasing_id().alias(_PLACE),
        )
        of_key = Window.partitionBy("key").orderBy(_TEXT)
        numbered = made.withColumn(_NUMBER, F.row_number().over(of_key))
        planned = "" if planned_ms is None else str(planned_ms)
        texts = {QUERY: query, MICRO_BATCH: str(number), PLANNED: planned}
        named = (*((name, F.lit(text)) for name, text in texts.items()), (ROW, F.col(_NUMBER)))
        headers = F.array(
            *(
                F.struct(F.lit(n).alias("key"), v.cast("string").cast("binary").alias("value"))
                for n, v in named
            )
        )
        in_order = numbered.sortWithinPartitions(_PLACE)
        return in_order.select("key", "value", headers.alias("headers"))


def drop_repeats(records: DataFrame, within: str | None = None) -> DataFrame:
    """Drop what a micro-batch that came again wrote a second time.

    A micro-batch is known by its number and by when it was planned: what an older copy of a
    checkpoint writes under numbers that were there before is not a repeat, and stays.

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
        The same columns; of records that are the same, one.

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
        raise QueryError('of a stream, say within: how late a repeat may come, as "1 hour"')
    told = records
    for name, header in _TOLD.items():
        found = F.filter("headers", _named(header))
        told = told.withColumn(name, F.get(found, F.lit(0))["value"])
    # A record of someone else is the same as itself only.
    for name in ("partition", "offset"):
        own = F.when(F.col(next(iter(_TOLD))).isNull(), F.col(name))
        told = told.withColumn(f"__{name}", own)
    same = ["topic", "key", *_TOLD, "__partition", "__offset"]
    if not records.isStreaming:
        return told.dropDuplicates(same).select(*records.columns)
    timed = told.withWatermark("timestamp", within or "")
    return timed.dropDuplicatesWithinWatermark(same).select(*records.columns)


def _named(header: str) -> Callable[[Column], Column]:
    """Return what tells the header of a name from others."""
    return lambda each: each["key"] == header
