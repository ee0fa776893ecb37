"""Sums over the rows of a key before each row: ours, beside cuDF's grouped rolling."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import gpu_windows as gw
from benchmarks.gpu.queries import table_of
from benchmarks.gpu.scene import Row, Scene, timed_on_host

#: Both ends of the frame are in it; of cuDF's window the first is not, so it is a tick longer.
_FRAME, _WINDOW = "10 seconds", "10000001us"


def run(scene: Scene) -> Iterator[Row]:
    """Yield both times from Arrow to Arrow; the sums must be equal."""
    cudf, reason = _import()
    if cudf is None:
        yield {"what": "cuDF", "missing": f"cudf ({reason}): nothing to compare with"}
    if cudf is None and not scene.dry:
        return
    for rows in scene.sizes(20, 23):
        table = table_of(rows)
        works = {"gpu_windows": _ours(table, scene.device)}
        works |= {} if cudf is None else {"cuDF": _theirs(table, cudf)}
        totals: list[int] = []
        for name, work in works.items():
            totals.append(work())
            seconds = timed_on_host(scene, work)
            yield {
                "what": name, "rows": rows, "host_s": seconds, "rows_per_s": rows / seconds,
                "equal": totals[-1] == totals[0],
            }  # fmt: skip


def _import() -> tuple[Any, str]:
    """Return cuDF, or None and why it cannot be imported."""
    try:
        return importlib.import_module("cudf"), ""
    except (ImportError, OSError, RuntimeError) as error:  # CUDA's errors are RuntimeErrors
        return None, str(error)


def _ours(table: pa.Table, device: str) -> Callable[[], int]:
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed: Any = gw.stream(table).event_time("ts", strategy).key_by("k")
    query = keyed.over(gw.Range(_FRAME)).options(device=device)

    def work() -> int:
        return _total(query.aggregate([], s=gw.sum("v"))["s"])

    return work


def _theirs(table: pa.Table, cudf: Any) -> Callable[[], int]:
    def work() -> int:
        frame = cudf.DataFrame.from_arrow(table).set_index("ts")
        return _total(frame.groupby("k").v.rolling(_WINDOW).sum().to_arrow())

    return work


def _total(sums: pa.ChunkedArray) -> int:
    return int(pc.sum(sums.cast(pa.int64())).as_py())
