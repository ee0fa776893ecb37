"""Windows of rows with a key: of an assigner, with gaps that are filled, of a number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from gpu_windows.datastream.gaps import gap_filling, given_keys
from gpu_windows.datastream.steps import R
from gpu_windows.datastream.top import KeyedTop
from gpu_windows.datastream.windowed import WindowedStream
from gpu_windows.errors import QueryError
from gpu_windows.vocabulary.evictors import CountEvictor
from gpu_windows.vocabulary.options import Duration
from gpu_windows.vocabulary.triggers import CountTrigger, PurgingTrigger
from gpu_windows.vocabulary.windows import GlobalWindows, WindowAssigner, check_assigner

if TYPE_CHECKING:
    from gpu_windows.annotations import DataFrame
    from gpu_windows.runners.arrow_input import GivesArrow


class KeyedWindows(KeyedTop[R]):
    """Rows of keys, which windows may be made of."""

    def window(self, assigner: WindowAssigner) -> WindowedStream[R]:
        """Put the rows of every key into windows.

        Parameters
        ----------
        assigner : WindowAssigner
            Such as ``gw.TumblingEventTimeWindows.of("1 hour")``.
        """
        check_assigner(assigner)
        trigger = assigner.default_trigger()
        return self._next(WindowedStream(keyed=self, assigner=assigner, trigger_=trigger))

    def window_gapfill(
        self,
        assigner: WindowAssigner,
        *,
        carry_forward: str | Sequence[str] = (),
        interpolate: str | Sequence[str] = (),
        until: Duration | None = None,
        keys: Sequence[object] | DataFrame | GivesArrow | None = None,
        start: datetime | str | int | None = None,
        end: datetime | str | int | None = None,
    ) -> WindowedStream[R]:
        """Put the rows of every key into windows, and fill those in which a key has no rows.

        Other systems say ``time_bucket_gapfill`` (TimescaleDB), ``resample`` (pandas), ``upsample``
        (Polars). For `WindowedStream.aggregate` of windows that fire once. A filled window has the
        aggregates of no rows: counts are 0, others null; but for the results named here.

        Parameters
        ----------
        assigner : WindowAssigner
            Of tumbling, sliding or cumulative windows of event time.
        carry_forward : str or sequence of str
            Results that keep the value of the last window with rows, which may be null.
        interpolate : str or sequence of str
            Results that are on a line between the windows with rows before and after the gap, in
            equal steps from window to window; null if there is none or its result is null.
            Floating-point numbers and timestamps. On a stream a gap is filled when the next row of
            its key is known, or ``until`` has passed.
        until : str or datetime.timedelta, optional
            How long after its last window with rows a key is filled. Then it is forgotten, and
            begins again with its next row. On a stream, which needs it, a window is filled when
            the watermark passes its end. Default: up to the next window with rows.
        keys : sequence or table, optional
            The keys to fill: values, tuples of several key columns, or a table of these columns,
            such as ``frame.select("meter").distinct()`` of Spark.
            They have results from ``start`` to ``end`` even if they never have rows; windows of
            other keys are not filled. Default: every key, from its first window with rows on.
        start, end : datetime or str or int, optional
            For given keys: windows from the first one that starts at ``start`` or later to the
            last one that ends at ``end`` or earlier are filled. ISO texts, or datetimes; with a
            time zone or without, as event times are; windows of a time zone have times of that
            zone where none is given. Microseconds, if event times are int64. On a stream given
            keys are filled for ever without ``end``.

        Raises
        ------
        QueryError
            If a parameter is of the wrong type, or does not go with another one.

        Examples
        --------
        >>> sample = pa.table({"meter": ["a"] * 2, "kw": [1.0, 4.0], "ts": [0, 180_000_000]})
        >>> timed = gw.stream(sample).event_time(
        ...     "ts", gw.WatermarkStrategy.for_monotonous_timestamps()
        ... )
        >>> minutes = timed.key_by("meter").window_gapfill(
        ...     gw.TumblingEventTimeWindows.of("1 minute"),
        ...     carry_forward="last",
        ...     interpolate="mean",
        ... )
        >>> results = minutes.aggregate(n=gw.count(), last=gw.last("kw"), mean=gw.mean("kw"))
        >>> results.select(["n", "last", "mean"]).to_pylist()[1]
        {'n': 0, 'last': 1.0, 'mean': 2.0}
        """
        given = None
        if keys is not None:
            if until is not None:
                raise QueryError("given keys have an end instead of until", value=repr(until))
            fields = [
                self.source.schema.field(name).with_name(self.source.display_name(name))
                for name in self.keys
            ]
            time = self.source.schema.field(self.time).type
            zone = getattr(assigner, "time_zone", None)
            given = given_keys(keys, start, end, fields, time, zone)
        elif start is not None or end is not None:
            rule = "start and end are for given keys: say keys=[...], or keys=a table of them"
            raise QueryError(rule, value=f"start={start}, end={end}")
        gaps = gap_filling(carry_forward, interpolate, until, given)
        return replace(self.window(assigner), gaps=gaps)

    def count_window(self, size: int, slide: int | None = None) -> WindowedStream[R]:
        """Put every ``size`` rows of a key, in order of arrival, into a window.

        Flink: countWindow.

        With ``slide``: after every ``slide`` rows, the last ``size`` ones. Rows that do not fill a
        window (or a slide) when the input ends are in no result.

        Parameters
        ----------
        size : int
            Rows per window, at least 1.
        slide : int, optional
            Rows between two windows; default: ``size``, without overlap.

        Examples
        --------
        >>> sales = gw.stream(pa.table({"shop": ["a"] * 4, "amount": [1, 2, 4, 8]})).key_by("shop")
        >>> sales.count_window(3, 1).aggregate(total=gw.sum("amount"))["total"].to_pylist()
        [1, 3, 7, 14]
        """
        windowed = self.window(GlobalWindows.create())
        if slide is None:
            return windowed.trigger(PurgingTrigger.of(CountTrigger.of(size)))
        return windowed.evictor(CountEvictor.of(size)).trigger(CountTrigger.of(slide))
