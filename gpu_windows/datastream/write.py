"""Write a streaming query exactly once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeAlias

from gpu_windows.arguments import check_arguments
from gpu_windows.checkpointing.commit_log import MIN_COMMITS
from gpu_windows.errors import (
    QueryError,
    UnknownArgumentError,
    UnsupportedQueryError,
    did_you_mean,
)
from gpu_windows.runners.outputs import Outputs
from gpu_windows.runners.sink import Sink
from gpu_windows.sinks.function import FunctionSink
from gpu_windows.sinks.parquet import ParquetSink

if TYPE_CHECKING:
    from gpu_windows.annotations import StreamingQuery
    from gpu_windows.spark_glue.streams.outputs import StreamOutputs

AnySink: TypeAlias = "str | PathLike[str] | Sink | Callable[..., None]"
#: Triggers of `pyspark.sql.streaming.DataStreamWriter.trigger`.
_TRIGGERS = ("availableNow", "continuous", "once", "processingTime", "realTime")
_WITHOUT_MICRO_BATCHES = {"continuous", "realTime"}

_TAKES = "write_stream takes outputs, a sink and a checkpoint"


@check_arguments(
    {
        "outputs": _TAKES,
        "sink": f"{_TAKES}: name a sink, such as the path of a folder",
        "checkpoint": f"{_TAKES}: name the folder of the checkpoint, beside that of the results",
    }
)
def write_stream(
    outputs: Outputs | Mapping[str, Outputs],
    sink: AnySink | Mapping[str, AnySink],
    checkpoint: str | PathLike[str],
    *,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
    keep: int = MIN_COMMITS,
    begin_empty: Sequence[str] = (),
) -> StreamingQuery:
    """Start a streaming query whose results are written exactly once.

    State and results of a micro-batch are committed together, then the sink is given the results.
    After a death in between it is given the same ones again, under the same number. A path holds
    each row once for who reads it by `gpu_windows.read_output` or `gpu_windows.read_output_stream`.
    A function must replace what it wrote under that number before, or merge by key and window; it
    may read what it likes of what it is given, or nothing, for all of it has been computed. A new
    checkpoint numbers its micro-batches from 0 again.

    What the query does and costs: see `gpu_windows.watch` and `gpu_windows.MetricsListener`.

    Parameters
    ----------
    outputs : Outputs or mapping of str to Outputs
        ``windowed.with_outputs().aggregate(...)`` of a streaming DataFrame. Several by name run as
        one query: each micro-batch has the results of all of them, or of none. Names
        have letters, digits, ``_`` and ``-``.
    sink : str, os.PathLike, Sink or callable, or a mapping of such
        With several outputs a sink for each, by the same names. One sink is
        A path, for Parquet, or `ParquetSink` of one; or a function of the results, the late and
        rejected rows with their ``rejection_reason``, and the number of the micro-batch (and,
        where the query has some, ``sides``: tags of side outputs to DataFrames; where it has such a
        parameter, ``stages``: outputs of earlier stages to DataFrames); or `upsert` of a
        function, for a table with one row for each key and window; or a `Sink` of your own.
    checkpoint : str or os.PathLike
        Path of the checkpoint: progress and state. It belongs to this query, and is on a disk that
        the driver and all executors reach by it; or a URL in a store of objects, ``s3a://``,
        ``gs://`` or ``abfss://``, with the credentials of the session or the environment.
    trigger : mapping, optional
        As `pyspark.sql.streaming.DataStreamWriter.trigger` takes it: ``{"availableNow": True}``.
        Default: as soon as there are rows; where something waits for the clock, also for an input
        to be idle, a look at the clock every second.
    name : str, optional
        Of the query.
    keep : int
        How many of the latest commits the checkpoint keeps, at least 2: the query can go back to
        each of them (`gpu_windows.checkpoints.roll_back`), whose state files stay until then. At
        most ``spark.sql.streaming.minBatchesToRetain``, by default 100. It may change from one
        start to the next.
    begin_empty : sequence of str
        Names of results that a query may have beyond those that its checkpoint knows: aggregates of
        windows and OVER, columns of joins. Windows that are open have for such an aggregate the
        rows from this start on, a column is null in rows from before. Without it an added result is
        refused. It means nothing for results that the checkpoint knows, and on a new one.

    Returns
    -------
    pyspark.sql.streaming.StreamingQuery

    Raises
    ------
    QueryError
        If the outputs are not those of a streaming DataFrame, the sink or the trigger is none, or
        the sink cannot take them: `upsert`, if it cannot tell firings apart. If ``keep`` is out of
        range. If ``begin_empty`` names what is no result.
    OutputError
        If the path belongs to a query with another checkpoint: see `ParquetSink`.
    UnsupportedQueryError
        If the trigger has no micro-batches.
    CheckpointError
        If the checkpoint is elsewhere, or in a store that may replace files; if its extra
        ``remote`` is not installed.
    pyspark.errors.StreamingQueryException
        If the micro-batch that writes it fails.
    StateMismatchError
        If the checkpoint belongs to another query, with what has changed. Whatever changes a
        result or the columns that are needed needs a new checkpoint, unless ``begin_empty`` names
        it; another sink, trigger, device or number of shards does not. Also if the folder holds the
        checkpoint of a query that `write_stream` did not start, a copy or a roll-back that did not
        end, or other files.

    Examples
    --------
    >>> clicks = spark.readStream.table("clicks")  # doctest: +SKIP
    >>> strategy = gw.WatermarkStrategy.for_bounded_out_of_orderness("10 seconds")  # doctest: +SKIP
    >>> users = gw.stream(clicks).event_time("ts", strategy).key_by("user")  # doctest: +SKIP
    >>> minutes = users.window(gw.TumblingEventTimeWindows.of("1 minute"))  # doctest: +SKIP
    >>> counts = minutes.with_outputs().aggregate(n=gw.count())  # doctest: +SKIP
    >>> query = gw.write_stream(counts, "/data/minutes", "/checkpoints/minutes")  # doctest: +SKIP
    """
    by_name, sinks = _by_name(outputs, sink)
    if not isinstance(trigger, Mapping | None):
        rule = 'a trigger is a mapping, such as {"availableNow": True}'
        raise QueryError(rule, value=repr(trigger))
    _check_kind(trigger or {})
    _check_keep(keep)
    from gpu_windows.spark_glue.streams.start import start
    from gpu_windows.spark_glue.streams.targets import combine_sinks, combine_targets

    _check_folders(sinks.values(), fspath(checkpoint).rstrip("/"))
    of_paths = [name for name, each in sinks.items() if isinstance(each, ParquetSink)]
    whole = combine_targets(by_name)
    checked = sinks.get(_ALONE) or combine_sinks(by_name, sinks, of_paths)
    checked.check(whole.plan)
    _check_begin_empty(begin_empty, whole)
    return start(
        whole,
        checked,
        fspath(checkpoint),
        trigger=trigger,
        name=name,
        keep=keep,
        begin_empty=begin_empty,
    )


#: Name of outputs that were given without one.
_ALONE = ""


def _by_name(outputs: Any, sink: Any) -> tuple[dict[str, StreamOutputs], dict[str, Sink]]:
    """Return outputs and sinks by name.

    Raises
    ------
    QueryError
        If one is of another kind, or several outputs have one sink.
    """
    if isinstance(outputs, Mapping) and isinstance(sink, Mapping):
        if _ALONE in outputs:
            raise QueryError("outputs by name have names", value=repr(_ALONE))
        for each in outputs.values():
            _check_streaming(each)
        return {**outputs}, {name: _as_sink(each) for name, each in sink.items()}
    if isinstance(outputs, Mapping) or isinstance(sink, Mapping):
        rule = "several outputs have a sink for each, by the same names"
        raise QueryError(rule, value=type(sink).__name__)
    _check_streaming(outputs)
    return {_ALONE: outputs}, {_ALONE: _as_sink(sink)}


def _check_folders(sinks: Collection[Sink], checkpoint: str) -> None:
    """Refuse a path that is used twice."""
    paths = [each.path for each in sinks if isinstance(each, ParquetSink)]
    if checkpoint in paths:
        raise QueryError("results and checkpoint must be in two folders", value=checkpoint)
    twice = sorted({str(path) for path in paths if paths.count(path) > 1})
    if twice:
        raise QueryError("two outputs must be in two folders", value=twice[0])


def _check_begin_empty(names: Any, outputs: StreamOutputs) -> None:
    plans = [stage.reader.plan for stage in outputs.stages]
    results = dict.fromkeys(name for plan in plans for name in plan.query.result_names)
    rule = f"begin_empty is a list of names of results: {', '.join(results)}"
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise QueryError(rule, value=repr(names))
    for name in names:
        if name not in results:
            raise QueryError(rule, value=repr(name))


def _check_kind(trigger: Mapping[str, Any]) -> None:
    """Refuse triggers that Spark does not have, or without micro-batches."""
    if unknown := [name for name in trigger if name not in _TRIGGERS]:
        rule = f"triggers are {', '.join(_TRIGGERS)}{did_you_mean(unknown[0], _TRIGGERS)}"
        raise UnknownArgumentError(rule, value=unknown[0])
    others = sorted(_WITHOUT_MICRO_BATCHES & trigger.keys())
    if others:
        rule = "results are written a micro-batch at a time: take processingTime or availableNow"
        raise UnsupportedQueryError(rule, value=f"trigger {others[0]}")


def _check_keep(keep: Any) -> None:
    if not isinstance(keep, int) or isinstance(keep, bool) or keep < MIN_COMMITS:
        rule = (
            f"keep is a number of commits, at least {MIN_COMMITS}: a reader may still use the one "
            "before the last"
        )
        raise QueryError(rule, value=repr(keep))


def _check_streaming(outputs: Any) -> None:
    if isinstance(outputs, Outputs) and not outputs.is_streaming:
        rule = "the input of what write_stream takes is a stream: read it with spark.readStream"
        raise QueryError(rule, value=outputs.input_kind)
    if callable(getattr(outputs, "outputs", None)):
        rule = "write_stream takes the outputs of a query in SQL: say .outputs() of it"
        raise QueryError(rule, value=type(outputs).__name__)
    if not isinstance(outputs, Outputs):
        rule = (
            "write_stream takes all outputs of a query on streaming DataFrames: say "
            ".with_outputs() before the verb that ends it, such as .aggregate(...)"
        )
        raise QueryError(rule, value=type(outputs).__name__)


def _as_sink(given: Any) -> Sink:
    """Return a sink; of a path, and of a function, the one that is meant."""
    if isinstance(given, Sink):
        return given
    if isinstance(given, str | PathLike):
        return ParquetSink(given)
    return FunctionSink(given)
