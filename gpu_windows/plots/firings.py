"""Draws what a query does with a few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types

from gpu_windows.errors import require_extra
from gpu_windows.runners.firings import trace_firings
from gpu_windows.runners.outputs import Outputs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_firings(outputs: Outputs, sample: pa.Table) -> Figure:
    """Draw what a query does with a few rows: a timeline for each key.

    Rows come one after the other, each with its watermark, as on a stream: on a bounded input the
    watermark moves at the end only, and no row is late.

    To the right runs event time, downwards the order of arrival. Rows are dots; the watermark is
    the stairs that they push to the right. A window that fires is a bar at the moment when it does
    so, over the rows that its function sees. Late rows and evicted ones are crossed out.

    Parameters
    ----------
    outputs : Outputs
        Of the query, such as ``windowed.with_outputs().aggregate(n=gw.count())``.
    sample : pyarrow.Table
        A few rows with the query's columns, in order of arrival.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    UnsupportedQueryError
        If the query waits for processing time.
    MissingExtraError
        Without matplotlib.
    QueryError
        If these are no outputs, or the sample is no Arrow table.

    Examples
    --------
    >>> sample = pa.table({"user": ["ann"] * 3, "ts": [0, 70_000_000, 5_000_000]})
    >>> timed = gw.stream(sample).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    >>> minutes = timed.key_by("user").window(gw.TumblingEventTimeWindows.of("1 minute"))
    >>> figure = gw.plot_firings(minutes.with_outputs().aggregate(n=gw.count()), sample)
    >>> type(figure).__name__
    'Figure'
    """
    require_extra("matplotlib", "plots", "plot_firings")
    from gpu_windows.plots.timeline import draw

    trace = trace_firings(outputs, sample)
    dtype = outputs.plan.query.time_type
    return draw(trace, has_zone=not (types.is_timestamp(dtype) and dtype.tz is None))
