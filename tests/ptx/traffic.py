"""What goes through kernels and to and from the device, counted where their PTX runs on this CPU.

``python -m tests.ptx.traffic --markdown docs/traffic.md`` writes the tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows.kernels.cuda import primitives
from gpu_windows.kernels.cuda.kernel import CudaKernel
from gpu_windows.operators.columns.keys import KeyEncoder
from tests.ptx.arrays import DeviceArray
from tests.ptx.installed import installed

ROWS, KEYS = 1_000_001, 10
MINUTE = 60_000_000
#: Numbers that are no array: a total, extremes.
FEW = 3

HEAD = """# What kernels are given, and what crosses

Counted over the arguments of every launch, without a GPU, by
`python -m tests.ptx.traffic --markdown docs/traffic.md`; a test
compares this page with what is counted now (`tests/ptx/traffic_equal.py`). Bytes are those
of the arrays that a kernel is given, each once, by item that it strides over: a row, an entry (a
slice of a key), a window or a group. Arrays that are few to many items, such as the cells of a
table, count as what they are. What CuPy does to whole arrays (sorts, running sums, gathers) is
not in it. Of moves, those of more than a few numbers (a total, the least and the greatest) count;
what goes up after something came down has made a round trip. Keys make one before anything else:
the values of a key column go up, the distinct ones come down, and what the host knows them by goes
up. That is counted by itself; it is as long as there are distinct keys in a batch, not rows.
"""


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel: its items, and the bytes of the arrays that it is given."""

    kernel: str
    items: int
    size: int


@dataclass
class Traffic:
    """What a query launched and moved."""

    launches: list[Launch]
    up: list[tuple[int, int]]  # length and bytes of every array
    down: list[tuple[int, int]]
    trips: int = 0  # arrays that went up after one had come down
    key_trips: int = 0  # the same, while keys were made distinct
    longest_key_trip: int = 0  # entries of an array that made one
    _seen: bool = False  # whether one has come down
    _seen_keys: bool | None = None  # while keys are made distinct; else None

    @contextmanager
    def encoding(self) -> Iterator[None]:
        """Count moves as those of keys."""
        self._seen_keys = False
        yield
        self._seen_keys = None

    def moved_up(self, length: int, size: int) -> None:
        """Count an array that goes to the device."""
        self.up.append((length, size))
        self.trips += self._seen_keys is None and self._seen
        if self._seen_keys:
            self.key_trips += 1
            self.longest_key_trip = max(self.longest_key_trip, length)

    def moved_down(self, length: int, size: int) -> None:
        """Count an array that comes to the host."""
        self.down.append((length, size))
        if self._seen_keys is None:
            self._seen = True
        else:
            self._seen_keys = True


@contextmanager
def counting() -> Iterator[Traffic]:
    """Count what is launched and moved."""
    found = Traffic([], [], [])
    launch, encode = CudaKernel.__call__, KeyEncoder.encode

    def launched(kernel: CudaKernel, count: int, *arguments: Any) -> None:
        if count:
            size = sum(array.nbytes for array in arrays_of(arguments))
            found.launches.append(Launch(kernel.name, count, size))
        launch(kernel, count, *arguments)

    def noted(move: Callable[[Any], Any], note: Callable[[int, int], None]) -> Callable[[Any], Any]:
        def moved(array: Any) -> Any:
            if len(array) > FEW:
                note(len(array), array.nbytes)
            return move(array)

        return moved

    def encoded(*arguments: Any) -> Any:
        with found.encoding():
            return encode(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CudaKernel, "__call__", launched)
        patch.setattr(KeyEncoder, "encode", encoded)
        patch.setattr(primitives, "to_device", noted(primitives.to_device, found.moved_up))
        patch.setattr(primitives, "to_host", noted(primitives.to_host, found.moved_down))
        yield found


def arrays_of(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the arrays among the arguments of a kernel, those of named tuples too."""
    for argument in arguments:
        if isinstance(argument, DeviceArray):
            yield argument
        elif isinstance(argument, tuple):
            yield from arrays_of(argument)


# ---- queries


def _rows() -> pa.Table:
    random = np.random.default_rng(0)
    times = np.sort(random.integers(0, 90 * MINUTE, ROWS))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": random.integers(0, KEYS, ROWS),
            "v": random.integers(0, 1_000, ROWS),
            "f": random.random(ROWS),
        }
    )


def _keyed(rows: pa.Table) -> Any:
    stream = gw.stream(rows).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    return stream.key_by("k")


def _windowed(
    assigner: gw.functions.WindowAssigner, **aggregates: Any
) -> Callable[[pa.Table], Any]:
    def run(rows: pa.Table) -> Any:
        return _keyed(rows).window(assigner).options(device="cuda").aggregate(**aggregates)

    return run


def _joined(rows: pa.Table) -> Any:
    left, right = _keyed(rows), _keyed(rows.slice(0, ROWS // 4))
    joined = left.interval_join(right).between("-1 second", "1 second")
    return joined.options(device="cuda").select(["v"], ["f"])


def _over(rows: pa.Table) -> Any:
    aggregates = {"sum": gw.sum("f"), "n": gw.count(), "max": gw.max("f")}
    return _keyed(rows).over(gw.Range("10 seconds")).options(device="cuda").aggregate(**aggregates)


_HOUR = gw.SlidingEventTimeWindows.of("60 minutes", "1 minute")
QUERIES: dict[str, Callable[[pa.Table], Any]] = {
    "sliding 60/1 minutes, count": _windowed(_HOUR, n=gw.count()),
    "sliding, sum of int64": _windowed(_HOUR, total=gw.sum("v")),
    "sliding, sum of float64": _windowed(_HOUR, total=gw.sum("f")),
    "sliding, sum, count and max of float64": _windowed(
        _HOUR, total=gw.sum("f"), n=gw.count(), high=gw.max("f")
    ),
    "sliding, mean of float64": _windowed(_HOUR, mean=gw.mean("f")),
    "sliding, first": _windowed(_HOUR, first=gw.first("v")),
    "tumbling 1 minute, sum of int64": _windowed(
        gw.TumblingEventTimeWindows.of("1 minute"), total=gw.sum("v")
    ),
    "sessions, gap 10 seconds, sum of int64": _windowed(
        gw.EventTimeSessionWindows.with_gap("10 seconds"), total=gw.sum("v")
    ),
    "interval join, 1 second": _joined,
    "over 10 seconds, sum, count and max of float64": _over,
}


def traffic() -> dict[str, Traffic]:
    """Run all queries; return what each launched and moved."""
    rows, found = _rows(), {}
    for name, query in QUERIES.items():
        with counting() as counted:
            query(rows)
        found[name] = counted
    return found


# ---- tables


def markdown(found: dict[str, Traffic]) -> str:
    """Return the page."""
    lines = [HEAD, "## Queries", "", *_queries(found), "", "## Kernels", "", *_kernels(found), ""]
    return "\n".join(lines)


def _queries(found: dict[str, Traffic]) -> Iterator[str]:
    of_what = f"{ROWS:,} rows, {KEYS} keys, 90 minutes."
    yield f"{of_what} Launches over rows are those with an item a row."
    yield ""
    yield (
        "| query | launches over rows | their bytes a row | other kernels | "
        "up, bytes a row | down, bytes a row | arrays up | arrays down | "
        "round trips of distinct keys | other round trips |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name, counted in found.items():
        rows = [launch for launch in counted.launches if launch.items == ROWS]
        others = {launch.kernel for launch in counted.launches if launch.items != ROWS}
        size = sum(launch.size for launch in rows) / ROWS
        up, down = (
            sum(n for length, n in moved if length == ROWS) / ROWS
            for moved in (counted.up, counted.down)
        )
        yield (
            f"| {name} | {len(rows)} | {size:.0f} | {len(others)} | {up:.0f} | {down:.0f} | "
            f"{len(counted.up)} | {len(counted.down)} | {counted.key_trips} | {counted.trips} |"
        )


def _kernels(found: dict[str, Traffic]) -> Iterator[str]:
    """Yield a line for each kernel: its largest launch."""
    yield "Of the largest launch of each."
    yield ""
    yield "| kernel | items | bytes an item |"
    yield "| --- | ---: | ---: |"
    largest: dict[str, Launch] = {}
    for counted in found.values():
        for launch in counted.launches:
            if launch.items > largest.get(launch.kernel, Launch("", 0, 0)).items:
                largest[launch.kernel] = launch
    for name, launch in sorted(largest.items()):
        yield f"| `{name}` | {launch.items:,} | {launch.size / launch.items:.0f} |"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path, required=True)
    page = parser.parse_args().markdown
    with installed():
        page.write_text(markdown(traffic()))


if __name__ == "__main__":
    main()
