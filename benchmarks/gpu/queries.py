"""Whole queries on an Arrow table: both back ends, by rows a call, and what crosses to a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import gpu_windows as gw
from benchmarks.gpu.scene import Row, Scene, timed_on_host
from gpu_windows.kernels.backend import select
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.device import Kernels, encode_keys
from gpu_windows.vocabulary.options import Device

_DAY = 86_400_000_000
_KEYS = 1_000
#: Rows a call of the CPU.
_CPU_BATCH = 1 << 17
#: Of a device: the first is also tried where there are more rows.
_BATCHES = 1 << 20


def run(scene: Scene) -> Iterator[Row]:
    """Yield queries of few rows, what is told from Arrow to Arrow, then queries of many rows."""
    few, many = scene.sizes(20, 23)
    yield from _compared(scene, few)
    yield from _keys(scene, many)
    for rows in scene.sizes(23, 26):
        yield from _end_to_end(scene, rows)
    yield from _compared(scene, many)


def _compared(scene: Scene, rows: int) -> Iterator[Row]:
    """Yield the time of every query by back end and rows a call; results must be equal."""
    for name, windowed in _queries(table_of(rows)):
        expected: pa.Table | None = None
        batches = sorted({min(_BATCHES, rows), rows})
        for device, batch in [("cpu", _CPU_BATCH), *((scene.device, size) for size in batches)]:
            seconds, result = _aggregated(scene, windowed.options(device=device, batch_rows=batch))
            expected = result if expected is None else expected
            yield {
                "what": name, "device": device, "rows": rows, "rows_a_call": batch,
                "host_s": seconds, "rows_per_s": rows / seconds,
                "equal": bool(result.equals(expected)),
            }  # fmt: skip


def _end_to_end(scene: Scene, rows: int) -> Iterator[Row]:
    """Yield the rate from an Arrow table to one of results, over that of a copy to the device."""
    table = table_of(rows)
    for name, windowed in list(_queries(table))[:2]:
        seconds, result = _aggregated(scene, windowed.options(device=scene.device))
        moved = table.nbytes + result.nbytes
        row: Row = {
            "what": f"Arrow to Arrow, {name}", "device": scene.device, "rows": rows,
            "host_s": seconds, "rows_per_s": rows / seconds, "bytes": moved,
        }  # fmt: skip
        if scene.host_rate:
            row["share_of_host_copy"] = moved / seconds / scene.host_rate
        yield row


def _keys(scene: Scene, rows: int) -> Iterator[Row]:
    """Yield how long it takes to number keys, on the host and on the device.

    There codes stay; texts are made distinct by pylibcudf, without it the host numbers them.
    """
    numbers = pa.array(np.random.default_rng(9).integers(0, _KEYS, rows))
    for name, column in (("int64", numbers), ("text", numbers.cast(pa.string()))):
        expected = KeyEncoder([column.type]).encode([column])
        devices: tuple[Device, ...] = ("cpu", scene.device)
        for device in devices:
            seconds, codes = _numbered(scene, device, column)
            row: Row = {
                "what": f"keys, {name}", "device": device, "rows": rows,
                "host_s": seconds, "rows_per_s": rows / seconds,
                "equal": bool(np.array_equal(codes, expected)),
            }  # fmt: skip
            if name == "text" and device != "cpu":
                row["pylibcudf"] = _has_pylibcudf()
            yield row


def _has_pylibcudf() -> bool:
    from gpu_windows.kernels.cuda import texts

    return texts.library() is not None


def _numbered(scene: Scene, device: Device, column: pa.Array) -> tuple[float, Any]:
    """Return the seconds that a back end takes, and the codes."""
    kernels, backend = Kernels(device), select(device)
    found: list[Any] = []

    def work() -> None:
        found[:] = [encode_keys(kernels, KeyEncoder([column.type]), [column])]
        backend.to_host(backend.to_device(found[0])[-1:])  # waits until they are all there

    return timed_on_host(scene, work), np.asarray(found[0])


def _aggregated(scene: Scene, query: Any) -> tuple[float, pa.Table]:
    results: list[pa.Table] = []

    def work() -> None:
        results[:] = [query.aggregate(n=gw.count(), s=gw.sum("v"), m=gw.max("v"))]

    return timed_on_host(scene, work), results[0]


def table_of(rows: int) -> pa.Table:
    """Return rows in order of time over a day: `ts`, the key `k` and the value `v`."""
    random = np.random.default_rng(9)
    return pa.table(
        {
            "ts": pa.array(np.arange(rows) * (_DAY // rows), pa.timestamp("us", "UTC")),
            "k": random.integers(0, _KEYS, rows),
            "v": random.integers(-(10**6), 10**6, rows),
        }
    )


def _queries(table: pa.Table) -> Iterator[tuple[str, Any]]:
    """Yield the name and the windowed stream of every query."""
    strategy = gw.WatermarkStrategy.for_monotonous_timestamps()
    keyed = gw.stream(table).event_time("ts", strategy).key_by("k")
    sliding = gw.SlidingEventTimeWindows.of("60 minutes", "1 minute")
    minute = gw.TumblingEventTimeWindows.of("1 minute")
    yield "tumbling", keyed.window(minute)
    yield "sliding 60/1", keyed.window(sliding)
    session = gw.EventTimeSessionWindows.with_gap("1 minute")
    yield "session", keyed.window(session)
