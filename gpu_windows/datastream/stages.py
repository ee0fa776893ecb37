"""Queries over the results of another query."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpu_windows.datastream.timed_stream import TimedStream
from gpu_windows.errors import QueryError, UnsupportedQueryError
from gpu_windows.planning.validation import check_reserved
from gpu_windows.runners.outputs import Outputs
from gpu_windows.runners.selection import Arrangement, Selection
from gpu_windows.runners.stages import Stage
from gpu_windows.vocabulary.watermarks import StageWatermarks


def stream_results(outputs: Outputs, name: str | None = None, *, keep: bool = False) -> TimedStream:
    """Go on from the results of a query: windows of windows, of joins, joins of windows.

    ``gw.stream_results(minutes).key_by("user").window(hours)``. Results have their time: those of
    windows the last tick of their windows (a column ``window_time``; Flink:
    ``window.maxTimestamp()``), those over frames that of their rows, pairs of an interval join the
    greater of both (a column ``result_time``), what a process function gives that of the row or the
    timer. The watermark is the one that the query before has reached. What ``select`` leaves of
    results goes on, and their time, whether it was named or not.

    On streams all stages are one query of Spark's, with one checkpoint.

    Parameters
    ----------
    outputs : Outputs
        What a verb returns after ``with_outputs()``, of a query on anything that `stream` takes.
    name : str, optional
        What the query is called as a stage, of letters, digits, ``_`` and ``-``; default:
        ``stage_1``, ``stage_2`` and so on. On streams its late rows are the output
        ``stages/NAME/late`` of the whole, its side outputs ``stages/NAME/sides/TAG``.
    keep : bool
        Whether its results are an output of the whole too, ``stages/NAME/result`` (streams).

    Returns
    -------
    TimedStream

    Raises
    ------
    QueryError
        If these are no outputs, or the name is none or that of another stage.
    UnsupportedQueryError
        If results have no time, or the query cannot be a stage of a streaming one.

    Examples
    --------
    >>> clicks = gw.stream(pa.table({"user": ["ann"] * 3, "ts": [0, 1, 90_000_000]}))
    >>> timed = clicks.event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> minutes = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 minute"))
    >>> counts = gw.stream_results(minutes.with_outputs().aggregate(n=gw.count())).key_by("user")
    >>> hours = counts.window(gw.TumblingEventTimeWindows.of("1 hour"))
    >>> hours.aggregate(busiest=gw.max("n"))["busiest"].to_pylist()
    [2]
    """
    given: Any = outputs
    if not isinstance(given, Outputs):
        rule = (
            "stream_results takes all outputs of a query: say .with_outputs() before the verb that "
            "ends it, such as .aggregate(...)"
        )
        raise QueryError(rule, value=type(given).__name__)
    stage = Stage(f"stage_{outputs.stages_before + 1}" if name is None else name, keep)
    selections, names = outputs.selections, outputs.plan.result_schema.names
    if outputs.in_time is not None:
        outputs = outputs.in_time()
        outputs.selections = selections
    query = outputs.plan.query
    times = query.results_in_time
    time = query.display_name(times.name)
    _check_time_stays(selections, time)
    _check_distinct_in_time(selections, times.end or time, names)
    source = outputs.rows(stage)
    check_reserved(source.user_columns)
    watermarks = StageWatermarks(stage=stage.name, behind=times.behind)
    return TimedStream(source.convert_time(time, "the time of results"), time, watermarks)


def _check_time_stays(selections: Iterable[Selection], time: str) -> None:
    """Refuse another result of the name that the time of results has."""
    for each in selections:
        made = [name for name in each.columns if name.lower() == time.lower()]
        if made and not (made == [time] and time in each.unchanged):
            rule = f"{time} is the time of the results of a stage: give the column another name"
            raise QueryError(rule, value=f"{made[0]} = {each.columns[made[0]]}")


def _check_distinct_in_time(
    selections: Iterable[Selection], time: str, names: Iterable[str]
) -> None:
    """Refuse distinct results whose time is not one of them: rows of several times are one result.

    ``time``: the column that holds it; ``names``: of the results before selections.
    """
    has_time = time in names
    for each in selections:
        if each.columns:
            has_time = has_time and time in each.unchanged
        if isinstance(each, Arrangement) and each.distinct and not has_time:
            rule = f"distinct results have the time of their rows only if {time} is one of them"
            raise UnsupportedQueryError(rule, value=each.describe())
