"""Shows the metrics of a running streaming query on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any

from rich import box
from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.filesize import decimal
from rich.live import Live
from rich.table import Table

from gpu_windows.errors import QueryError
from gpu_windows.monitoring.progress import BatchMetrics, QueryMetrics
from gpu_windows.monitoring.queries import read_metrics

if TYPE_CHECKING:
    from gpu_windows.annotations import StreamingQuery

_REFRESHES_A_SECOND = 4
#: Columns of text in the output of a cell.
_NOTEBOOK_COLUMNS = 100


def watch(
    query: StreamingQuery,
    *,
    console: Console | None = None,
    every: float = 0.5,
    beside: RenderableType | None = None,
) -> QueryMetrics:
    """Show the metrics of a streaming query until it ends.

    A terminal and a notebook show a table that changes; elsewhere each micro-batch is a line. What
    is shown is read from the checkpoint, which has the metrics of the latest 16 micro-batches: if
    the query runs for longer already, the sums are of those.

    Parameters
    ----------
    query : pyspark.sql.streaming.StreamingQuery
        As `gpu_windows.write_stream` returned it, in this process.
    console : rich.console.Console, optional
        Where to show it.
    every : float
        Seconds between two looks at the query.
    beside : renderable of rich, optional
        What else to show: next to the table, or below it where there is no room.

    Returns
    -------
    gpu_windows.monitoring.progress.QueryMetrics
        Of all micro-batches that were shown.

    Raises
    ------
    QueryError
        If ``every`` is not positive, or `write_stream` did not start the query in this process.
    pyspark.errors.StreamingQueryException
        If the query fails, as ``query.awaitTermination()`` does.

    Examples
    --------
    >>> query = gw.write_stream(counts, "/data/minutes", "/checkpoints/minutes")  # doctest: +SKIP
    >>> gw.watch(query).counters.rows  # doctest: +SKIP
    """
    if not every > 0:
        raise QueryError("the time between two polls must be positive", value=f"{every} s")
    if not hasattr(query, "awaitTermination"):
        rule = "watch takes the query that gpu_windows.write_stream returned"
        raise QueryError(rule, value=type(query).__name__)
    console = Console() if console is None else console
    view = LiveView(query.name or str(query.id), beside)
    show = _notebook_output(view) if console.is_jupyter else None
    with _show_live(view, console):
        ended = False
        while not ended:
            ended = bool(query.awaitTermination(every))  # type: ignore[arg-type] # any number
            for batch in _news(query, view.metrics):
                view.add(batch)
                if show is not None:
                    show()
                elif not console.is_terminal and view.metrics.last is not None:
                    console.print(line(view.metrics.last), soft_wrap=True, highlight=False)
        view.metrics = view.metrics.end(None)
    return view.metrics


@contextmanager
def _show_live(view: LiveView, console: Console) -> Iterator[None]:
    if console.is_jupyter:
        yield
    elif console.is_terminal:
        with Live(view, console=console, refresh_per_second=_REFRESHES_A_SECOND):
            yield
    else:
        yield
        console.print(view)


def _notebook_output(view: LiveView) -> Callable[[], None]:
    """Show a view below the cell of a notebook; return what shows it again in its place."""
    from IPython.display import HTML, display

    def html() -> Any:
        recorder = Console(record=True, file=StringIO(), width=_NOTEBOOK_COLUMNS)
        recorder.print(view)
        page = recorder.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
        return HTML(page)  # type: ignore[no-untyped-call]

    handle = display(html(), display_id=True)  # type: ignore[no-untyped-call]
    return lambda: handle.update(html())


def _news(query: StreamingQuery, metrics: QueryMetrics) -> list[BatchMetrics]:
    """Return the micro-batches committed since those in ``metrics``."""
    last = metrics.last
    batches = read_metrics(str(query.id), None if last is None else last.number)
    if batches is None:
        rule = "only a query that write_stream has started in this process can be watched"
        raise QueryError(rule, value=query.name or query.id)
    return batches


class LiveView:
    """A table for rich: metrics of a query's latest micro-batch and of all of them.

    Parameters
    ----------
    name : str
        Of the query.
    beside : renderable of rich, optional
        What else to draw.

    Attributes
    ----------
    metrics : QueryMetrics
    """

    def __init__(self, name: str, beside: RenderableType | None = None) -> None:
        self.metrics = QueryMetrics(name)
        self._beside = beside

    def add(self, batch: BatchMetrics) -> None:
        """Add a micro-batch."""
        self.metrics = self.metrics.plus(batch)

    def __rich__(self) -> RenderableType:
        table = _table(self.metrics)
        return table if self._beside is None else Columns([table, self._beside], padding=(0, 2))


def line(batch: BatchMetrics) -> str:
    """Return the metrics of a micro-batch as a line."""
    counters = batch.counters
    return (
        f"batch {batch.number}: {counters.rows:,} rows in {batch.seconds:.2f} s "
        f"({batch.rows_per_second:,.0f}/s), {counters.late:,} late, {counters.fired:,} fired, "
        f"state {batch.state_rows:,} ({decimal(batch.state_bytes)}), "
        f"kernels {batch.kernel_ms:,.0f} ms on {batch.device or 'nothing'}, "
        f"watermark {_time(batch)}{'' if batch.held is None else f', {batch.held}'}"
    )


def _table(metrics: QueryMetrics) -> Table:
    state = "running" if metrics.is_active else "ended"
    title = f"{metrics.name}: {state}, {metrics.batches:,} micro-batches"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column()
    for name in ("latest", "all"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in () if metrics.last is None else _lines(metrics, metrics.last):
        table.add_row(*row)
    return table


def _lines(metrics: QueryMetrics, last: BatchMetrics) -> Iterator[tuple[str, str, str]]:
    for label, read in _SUMS.items():
        yield label, _show(read(last)), _show(read(metrics))
    yield "device", last.device or "-", ""
    yield "watermark", _time(last), ""
    if last.held is not None:
        yield "", str(last.held), ""


#: Lines of the table that are of a micro-batch, and of all of them.
_SUMS: Mapping[str, Callable[[BatchMetrics | QueryMetrics], float | str]] = {
    "rows": lambda m: m.counters.rows,
    "rows/s": lambda m: m.rows_per_second,
    "late": lambda m: m.counters.late,
    "in a gap": lambda m: m.counters.gap,
    "without a usable time": lambda m: (
        m.counters.null_timestamp + m.counters.out_of_range_timestamp
    ),
    "too far ahead": lambda m: m.counters.future_timestamp,
    "with an invalid gap": lambda m: m.counters.invalid_session_gap,
    "locally aggregated": lambda m: m.counters.locally_aggregated,
    "windows fired": lambda m: m.counters.fired,
    "state, entries": lambda m: m.state_rows,
    "state, bytes": lambda m: decimal(m.state_bytes),
    "kernels, ms": lambda m: m.kernel_ms,
    "state, ms": lambda m: m.state_ms,
    "micro-batch, s": lambda m: f"{m.seconds:.2f}",
    "device fallbacks": lambda m: m.counters.device_fallbacks,
}


def _show(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.0f}"


def _time(batch: BatchMetrics) -> str:
    return "none yet" if batch.watermark is None else f"{batch.watermark:%Y-%m-%d %H:%M:%S} UTC"
