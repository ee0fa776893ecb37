"""How many bytes kernels read and write for a row, and for an entry that windows combine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gpu_windows as gw
from gpu_windows import rules
from gpu_windows.kernels import backend
from gpu_windows.kernels.contract.rows import Limits
from gpu_windows.kernels.cuda import primitives
from gpu_windows.operators.columns.keys import KeyEncoder
from tests.ptx.arrays import DeviceArray
from tests.ptx.plugin import device as installed
from tests.ptx.traffic import counting

CUDA = backend.select("cuda")

ROWS, KEYS, SLICES = 20_011, 10, 90
#: Calls of whole arrays outside our kernels, and how often each reads and writes one.
WHOLE = {"argsort": 2, "gather": 2, "where": 1, "running_sum": 2}


@contextmanager
def counted(length: int, least: int | None = None) -> Iterator[Counter[str]]:
    """Count bytes that kernels read and write, without atomics, and that are given to primitives.

    Of arrays of this length; of launches of ``least`` items (half as many), and more.
    """
    given: Counter[str] = Counter()

    def called(name: str) -> Any:
        primitive = getattr(primitives, name)

        def call(*arguments: Any) -> Any:
            arrays = (array for array in arguments if isinstance(array, DeviceArray))
            size = sum(array.nbytes for array in arrays if len(array) == length)
            given[name] += WHOLE[name] * size
            return primitive(*arguments)

        return call

    with counting(installed()) as found, pytest.MonkeyPatch.context() as patch:
        for name in WHOLE:
            patch.setattr(primitives, name, called(name))
        yield given
    for launch in found.launches:
        if launch.items >= (least or length // 2):
            given[launch.kernel] += launch.asked


#: Kernels that go through tables: what they read and write is a matter of cells, not of rows.
OF_TABLES = {
    "cells.begin",
    "cells.count_occupied",
    "cells.write_occupied",
    "replicas.take_folded",
    "replicas.fold_places",
}


def per_item(given: Counter[str], length: int) -> dict[str, int]:
    of_rows = {name: size for name, size in given.items() if size and name not in OF_TABLES}
    return {name: round(size / length) for name, size in of_rows.items()}


#: Bytes of the size of the tables, which each thread reads: here it has one row, in a large batch
#: eight.
HEAD = 32


def grouped(values: Any) -> tuple[Any, Any]:
    """Assign rows to slices, group them, and add an integer each."""
    random = np.random.default_rng(1)
    grid = rules.sliding_grid(60, 1, 0)
    ts = CUDA.to_device(random.integers(0, SLICES, ROWS))
    codes = CUDA.to_device(random.integers(0, KEYS, ROWS))
    limits = Limits(rules.earliest_unit(grid), rules.latest_unit(grid), 0, rules.LONG_MIN)
    everyone = CUDA.reduce.ALL
    assigned = CUDA.assign.assign_slices(ts, CUDA.to_device(everyone), grid, limits)
    groups = CUDA.grouping.group_accepted(codes, assigned, KEYS)
    assert groups is not None
    return groups, CUDA.reduce.reduce(rules.ADD, groups, values, everyone)


def test_a_sum_by_key_and_slice_reads_and_writes_50_bytes_a_row() -> None:
    values = CUDA.to_device(np.arange(ROWS))
    with counted(ROWS) as given:
        groups, sums = grouped(values)
    assert per_item(given, ROWS) == {
        "assign.assign": 17,  # time; slice and status
        "cells.place": 21 + HEAD,  # key, slice, status; cell
        "cells.fold": 12,  # cell, value
    }
    assert int(CUDA.to_host(groups.rows).sum()) == ROWS
    assert int(CUDA.to_host(sums).sum()) == ROWS * (ROWS - 1) // 2


def test_a_sum_of_floats_reads_rows_once_more_and_sorts_none() -> None:
    values = CUDA.to_device(np.random.default_rng(3).normal(size=ROWS))
    with counted(ROWS) as given:
        grouped(values)
    assert per_item(given, ROWS) == {
        "assign.assign": 17,
        "cells.place": 21 + HEAD,
        "float_cells.exponents": 12,  # cell, value
        "float_cells.add_units": 20,  # and the exponent of the cell
    }


def test_a_column_goes_to_the_device_once_however_many_aggregates_it_has() -> None:
    count = 1_009
    values = pa.array([None if i % 7 == 0 else i for i in range(count)], pa.int64())
    times = pa.array(range(count), pa.timestamp("us", "UTC"))
    table = pa.table({"ts": times, "k": [i % 3 for i in range(count)], "v": values})
    stream = gw.stream(table).event_time("ts", gw.WatermarkStrategy.for_monotonous_timestamps())
    windowed = stream.key_by("k").window(gw.TumblingEventTimeWindows.of("1 second"))
    sizes: Counter[str] = Counter()
    move = primitives.upload

    def moved(array: Any) -> Any:
        if len(array) == count:
            sizes[array.dtype.name] += 1
        return move(array)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(primitives, "upload", moved)
        found = windowed.options(device="cuda").aggregate(
            n=gw.count("v"), total=gw.sum("v"), mean=gw.mean("v"), low=gw.min("v"), high=gw.max("v")
        )
    # time, key, value; which values are not null
    assert sizes == {"int64": 3, "bool": 1}
    expected = windowed.options(device="cpu").aggregate(
        n=gw.count("v"), total=gw.sum("v"), mean=gw.mean("v"), low=gw.min("v"), high=gw.max("v")
    )
    assert found.equals(expected)


def test_dense_keys_become_codes_at_112_bytes_a_row() -> None:
    columns = [pa.array(np.random.default_rng(2).integers(0, KEYS, ROWS))]
    encoder = KeyEncoder([pa.int64()])
    with counted(ROWS, least=4_000) as given:
        codes = encoder.encode(columns, CUDA)
    assert per_item(given, ROWS) == {
        "keys.begin": 8 + 27,  # value; the table, of two places and more a row
        "keys.place_rows": 24 + 14,  # value, first row of the key, place; the reach
        "keys.collect": 39,  # the table, and the number of a key into it
        "keys.give": 32,  # place, number, code; code
    }
    assert sorted(set(codes.tolist())) == [*range(1, KEYS + 1)]


@pytest.mark.parametrize("span", [3, 60, 5_000])
def test_windows_add_integers_at_56_bytes_an_entry_whatever_the_span(span: int) -> None:
    slices = np.arange(997)
    grid = rules.sliding_grid(span, 1, 0)
    places = CUDA.to_device(np.zeros(997, np.int64)), CUDA.to_device(slices)
    # the windows that end with an entry: as many as there are entries
    found = CUDA.combine.windows(*places, grid, 1 - span, 997 - span)
    assert found.count == 997
    with counted(997) as given:
        sums = CUDA.combine.combine(rules.ADD, found, CUDA.to_device(slices))
    # values; running sums, which are read again; first and last entry of a window; its sum
    again = 16 if span < 997 else 8  # no window begins after the first entry
    assert per_item(given, 997) == {"running_sum": 16, "combine.subtract": 24 + again}
    first = np.maximum(slices - span + 1, 0)
    assert CUDA.to_host(sums).tolist() == [
        int(slices[a : b + 1].sum()) for b, a in enumerate(first)
    ]


@pytest.mark.parametrize("span", [3, 60, 5_000])
def test_windows_find_extremes_at_90_bytes_an_entry_at_most_whatever_the_span(span: int) -> None:
    values = np.random.default_rng(2).integers(-(10**6), 10**6, 997) / 7
    grid = rules.sliding_grid(span, 1, 0)
    places = CUDA.to_device(np.zeros(997, np.int64)), CUDA.to_device(np.arange(997))
    found = CUDA.combine.windows(*places, grid, 1 - span, 997 - span)
    with counted(997) as given:
        least = CUDA.combine.combine(rules.MIN, found, CUDA.to_device(values))
    # edges, values, scan, from both ends, and the totals of tiles; first and last entry, halves,
    # edges, one or two scans, result
    read = per_item(given, 997)
    assert read.keys() == {"scan.fold_tiles", "combine.join_fold"}
    assert read["scan.fold_tiles"] == 41
    assert 35 <= read["combine.join_fold"] <= 49
    first = np.maximum(np.arange(997) - span + 1, 0)
    assert CUDA.to_host(least).tolist() == [values[a : b + 1].min() for b, a in enumerate(first)]
