"""What goes through kernels and to and from the device, counted where their PTX runs on this CPU.

``python -m tests.ptx.traffic --markdown docs/traffic.md`` writes the tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
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
from gpu_windows.kernels.cuda.memory import CudaBackend
from gpu_windows.operators.columns.keys import KeyEncoder
from gpu_windows.operators.slices.table import SliceTable
from tests.ptx import arrays
from tests.ptx.device import Device
from tests.ptx.installed import installed
from tests.ptx.kernel import Counts, Mode, Order

ROWS, KEYS = 262_144, 10
MINUTE = 60_000_000
#: Bytes of a sector, threads of a warp; kinds of access, as `Counts` has them.
_SECTOR, _WARP = 32, 32
_READ, _WRITE, _ATOMIC = range(3)
#: As many as a thread has in a batch of 8,388,608, for which a launch has 4,096 blocks.
_ROWS_A_THREAD = 8
#: Numbers that are no array: a total, extremes, the size of tables.
FEW = 8

HEAD = """# What kernels ask of memory, and what crosses

Counted without a GPU by `python -m tests.ptx.traffic --markdown docs/traffic.md`, where the PTX
of every launch runs on a CPU (`tests/ptx`); a test compares this page with what is counted now
(`tests/ptx/traffic_equal.py`).

The 32 threads of a warp run in lockstep, and all blocks take turns. A thread has eight rows, as
in a batch of 8,388,608. *Asked* are the bytes that threads read and write; *moved* those of the
sectors of 32 bytes in which they lie, once for each access of a warp, before any cache; *least*
those of all sectors that the launch touches, once. Where moved is far more than asked,
neighbouring threads access memory that is far apart. *Atomics* are counted by themselves, with
the bytes of their sectors. Instructions are those of PTX. All of that is by item that a kernel
strides over: a row, an entry (a slice of a key), a window or a group. What CuPy does to whole
arrays (sorts, running sums, gathers) is not in it.

Launches, calls of CuPy and waits have a table of their own. A call of CuPy counts if it allocates,
copies or computes; a wait is a call that returns when the device has done all that came before.

Of moves between host and device, those of more than a few numbers (a total, the least and the
greatest, the size of a table) count; what goes up after something came down has made a round
trip. Keys make one before anything else: the values of a key column go up, the distinct ones come
down, and what the host knows them by goes up. That is counted by itself; it is as long as there
are distinct keys in a batch, not rows.
"""


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel: its items, and what its warps asked of memory."""

    kernel: str
    items: int
    counts: Counts

    @property
    def asked(self) -> int:
        """Bytes read and written, without atomics."""
        return int(self.counts.asked[_READ] + self.counts.asked[_WRITE])

    @property
    def moved(self) -> int:
        """Bytes of sectors for them."""
        return _SECTOR * int(self.counts.sectors[_READ] + self.counts.sectors[_WRITE])

    @property
    def least(self) -> int:
        """Bytes of all sectors that were touched, once."""
        return _SECTOR * int(sum(self.counts.touched))

    @property
    def atomics(self) -> int:
        """How many."""
        return int(self.counts.lanes[_ATOMIC])

    @property
    def atomic_bytes(self) -> int:
        """Bytes of their sectors."""
        return int(_SECTOR * self.counts.sectors[_ATOMIC])


@dataclass(frozen=True)
class Calls:
    """What the host asks of a device, and how often it waits for it.

    Parameters
    ----------
    launches : int
        Of our kernels.
    cupy : int
        Calls of CuPy that allocate, copy or compute.
    waits : int
        Those of them that return when the device has done all that came before.
    """

    launches: int
    cupy: int
    waits: int

    def __add__(self, other: Calls) -> Calls:
        return Calls(
            self.launches + other.launches, self.cupy + other.cupy, self.waits + other.waits
        )

    def __sub__(self, other: Calls) -> Calls:
        return self + Calls(-other.launches, -other.cupy, -other.waits)


def calls_until_now(device: Device) -> Calls:
    """Return what was asked of a device since it was installed."""
    waits = sum(count for name, count in arrays.calls.items() if name in arrays.WAITING)
    return Calls(device.launches.total(), arrays.calls.total(), waits)


@dataclass
class Traffic:
    """What a query launched and moved."""

    launches: list[Launch]
    up: list[tuple[int, int]]  # length and bytes of every array
    down: list[tuple[int, int]]
    calls: Calls = Calls(0, 0, 0)
    batch_calls: Calls = Calls(0, 0, 0)  # until the rows of batches are entries
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
def counting(device: Device) -> Iterator[Traffic]:
    """Count what is launched and moved."""
    order, device.order = device.order, Order(Mode.WARPS)
    found = Traffic([], [], [])
    launch, encode = CudaKernel.__call__, KeyEncoder.encode
    before = calls_until_now(device)

    def launched(kernel: CudaKernel, count: int, *arguments: Any) -> None:
        launch(kernel, count, *arguments)
        if count:
            found.launches.append(Launch(kernel.name, count, device.counts))

    def noted(move: Callable[[Any], Any], note: Callable[[int, int], None]) -> Callable[[Any], Any]:
        def moved(array: Any) -> Any:
            if len(array) > FEW:
                note(len(array), array.nbytes)
            return move(array)

        return moved

    def encoded(*arguments: Any) -> Any:
        with found.encoding():
            return encode(*arguments)

    def of_batches(work: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            begin = calls_until_now(device)
            done = work(*arguments)
            found.batch_calls += calls_until_now(device) - begin
            return done

        return counted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CudaBackend, "upload", of_batches(CudaBackend.upload))
        patch.setattr(SliceTable, "add_rows", of_batches(SliceTable.add_rows))
        patch.setattr(primitives, "_MAX_BLOCKS", ROWS // (_ROWS_A_THREAD * primitives.THREADS))
        patch.setattr(CudaKernel, "__call__", launched)
        patch.setattr(KeyEncoder, "encode", encoded)
        patch.setattr(primitives, "upload", noted(primitives.upload, found.moved_up))
        patch.setattr(primitives, "to_host", noted(primitives.to_host, found.moved_down))
        yield found
    found.calls = calls_until_now(device) - before
    device.order = order


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
    "sliding, count and sum of int64": _windowed(_HOUR, n=gw.count(), total=gw.sum("v")),
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


def traffic(device: Device, names: Iterable[str] = tuple(QUERIES)) -> dict[str, Traffic]:
    """Run queries, of `QUERIES`; return what each launched and moved."""
    rows, found = _rows(), {}
    queries = {name: QUERIES[name] for name in names}
    for query in queries.values():
        query(rows.slice(0, 1_000))  # what a session allocates once does not count
    for name, query in queries.items():
        primitives._slab.session = None  # so that each allocates one
        with counting(device) as counted:
            query(rows)
        found[name] = counted
    return found


# ---- tables


def markdown(found: dict[str, Traffic]) -> str:
    """Return the page."""
    parts = {"Queries": _queries, "Calls": _calls, "Kernels": _kernels}
    lines = [HEAD]
    for name, table in parts.items():
        lines += [f"## {name}", "", *table(found), ""]
    return "\n".join(lines)


def _queries(found: dict[str, Traffic]) -> Iterator[str]:
    yield f"{ROWS:,} rows, {KEYS} keys, 90 minutes. Bytes and atomics are of all launches, by row."
    yield ""
    yield (
        "| query | launches | asked, bytes | moved, bytes | atomics | their bytes | "
        "up, bytes | down, bytes | arrays up | arrays down | "
        "round trips of distinct keys | other round trips |"
    )
    yield f"| --- |{' ---: |' * 11}"
    for name, counted in found.items():
        asked, moved, atomics, atomic_bytes = (
            sum(getattr(launch, what) for launch in counted.launches) / ROWS
            for what in ("asked", "moved", "atomics", "atomic_bytes")
        )
        up, down = (
            sum(n for length, n in moves if length == ROWS) / ROWS
            for moves in (counted.up, counted.down)
        )
        yield (
            f"| {name} | {len(counted.launches)} | {asked:.0f} | {moved:.0f} | {atomics:.2f} | "
            f"{atomic_bytes:.0f} | {up:.0f} | {down:.0f} | "
            f"{len(counted.up)} | {len(counted.down)} | {counted.key_trips} | {counted.trips} |"
        )


def _calls(found: dict[str, Traffic]) -> Iterator[str]:
    yield (
        "One batch. A launch or a call of CuPy takes the host some 10 to 40 us; in a wait the "
        "device runs dry. *A batch* is what it takes until its rows are entries; *the rest* finds "
        "windows and brings results to the host, however many batches came before."
    )
    yield ""
    yield (
        "| query | a batch: launches | calls of CuPy | waits | the rest: launches | "
        "calls of CuPy | waits |"
    )
    yield f"| --- |{' ---: |' * 6}"
    for name, counted in found.items():
        rest = counted.calls - counted.batch_calls
        numbers = (number for each in (counted.batch_calls, rest) for number in vars(each).values())
        yield f"| {name} | {' | '.join(map(str, numbers))} |"


def _kernels(found: dict[str, Traffic]) -> Iterator[str]:
    """Yield a line for each kernel: its largest launch."""
    yield "Of the largest launch of each, by item."
    yield ""
    yield (
        "| kernel | items | asked, bytes | moved, bytes | least, bytes | atomics | their bytes | "
        "instructions | threads busy |"
    )
    yield f"| --- |{' ---: |' * 8}"
    largest: dict[str, Launch] = {}
    for counted in found.values():
        for launch in counted.launches:
            before = largest.get(launch.kernel)
            if before is None or launch.items > before.items:
                largest[launch.kernel] = launch
    for name, launch in sorted(largest.items()):
        n, counts = launch.items, launch.counts
        busy = counts.instructions / (_WARP * counts.warp_instructions)
        yield (
            f"| `{name}` | {n:,} | {launch.asked / n:.0f} | {launch.moved / n:.0f} | "
            f"{launch.least / n:.0f} | {launch.atomics / n:.2f} | {launch.atomic_bytes / n:.0f} | "
            f"{counts.instructions / n:.0f} | {busy:.0%} |"
        )


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path, required=True)
    page = parser.parse_args().markdown
    with installed() as device:
        page.write_text(markdown(traffic(device)))


if __name__ == "__main__":
    main()
