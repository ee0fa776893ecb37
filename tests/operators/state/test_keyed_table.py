"""Entries of keys in a log: what is loaded is what was saved last, whatever was merged since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpu_windows.operators.state.entries import LISTS, Entries, lists_of
from gpu_windows.operators.state.keyed_table import HASH, TIMERS, KeyedTable
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.memory_log import MemoryLog
from gpu_windows.rules import LONG_MAX
from tests.examples import examples
from tests.operators.state.counting import Counting, CountingFiles, reopened
from tests.operators.state.tight import Constants, constants, with_constants

Ints: TypeAlias = NDArray[np.int64]
#: Of an entry: its value, its timers, the rows that it names.
Entry = tuple[int, int, int, tuple[int, ...]]
Model = dict[int, list[Entry]]
#: Return a timer of an entry: of event time, of processing time.
TIMER_OF: tuple[Callable[[Entry], int], ...] = (lambda entry: entry[1], lambda entry: entry[2])
_MULTIPLIER = 0x9E3779B97F4A7C15


def hash_of(key: int) -> int:
    """Return a hash: of all 64 bits, as those of keys are."""
    return int(np.uint64(key * _MULTIPLIER % 2**64).astype(np.int64))


def hashes_of(keys: Iterable[int]) -> Ints:
    return np.unique(np.array([hash_of(key) for key in keys], np.int64))


def to_entries(model: Mapping[int, Sequence[Entry]]) -> Entries:
    pairs = [(hash_of(key), entry) for key, entries in model.items() for entry in entries]
    rows = [row for _, entry in pairs for row in entry[3]]
    columns: dict[str, Any] = {
        HASH: pa.array([key for key, _ in pairs], pa.int64()),
        **{n: pa.array([e[i + 1] for _, e in pairs], pa.int64()) for i, n in enumerate(TIMERS)},
        "value": pa.array([entry[0] for _, entry in pairs], pa.int64()),
        LISTS: lists_of(np.array([len(entry[3]) for _, entry in pairs], np.int64)),
    }
    return Entries(
        pa.table(columns), pa.table({"row": pa.array(rows, pa.int64())}) if rows else None
    )


def by_hash(found: Entries | None) -> Model:
    """Return entries by hash, in their order."""
    if found is None:
        return {}
    rows = [] if found.rows is None else found.rows["row"].to_pylist()
    model: Model = {}
    for each in found.table.to_pylist():
        named = tuple(rows[place] for place in each[LISTS])
        entry = (each["value"], each[TIMERS[0]], each[TIMERS[1]], named)
        model.setdefault(each[HASH], []).append(entry)
    return model


class TableOfModel:
    """A table of entries beside a model of it: micro-batch by micro-batch.

    Attributes
    ----------
    model : dict
        Key to its entries: those of keys in memory are what `save` would write.
    in_memory : set of int
        Keys.
    """

    def __init__(self) -> None:
        self.log: StateLog = StateLog(CountingFiles())
        self.model: Model = {}
        self.begin()

    def begin(self) -> None:
        """Begin a micro-batch, with nothing in memory."""
        self.in_memory: set[int] = set()
        self.table = KeyedTable(self.log, "table", _count)

    def load(self, keys: Iterable[int]) -> None:
        """Load keys, and compare."""
        wanted = self._elsewhere(keys)
        assert by_hash(self.table.load(hashes_of(keys))) == wanted
        self.in_memory |= set(keys)

    def load_due(self, until: int, which: int) -> None:
        """Load keys with a timer up to a time, and compare."""
        due = {k for k, of_key in self.model.items() if min(map(TIMER_OF[which], of_key)) <= until}
        wanted = self._elsewhere(due)
        found = self.table.load_due(until, in_processing_time=bool(which))
        assert by_hash(found) == wanted
        self.in_memory |= due

    def _elsewhere(self, keys: Iterable[int]) -> Model:
        left = set(keys) & self.model.keys() - self.in_memory
        return {hash_of(key): self.model[key] for key in left}

    def change(self, changes: Mapping[int, list[Entry]]) -> None:
        """Change the entries of keys."""
        self.load(changes)
        self.model = {k: e for k, e in {**self.model, **changes}.items() if e}

    def clear(self) -> None:
        """Forget all entries."""
        self.table.clear()
        self.model = {}
        self.in_memory = set()
        self.save()

    def save(self) -> None:
        """Save what is in memory, and compare counts and timers."""
        self.table.save(to_entries({k: e for k, e in self.model.items() if k in self.in_memory}))
        assert self.table.keys == len(self.model)
        elsewhere = [e for k, of in self.model.items() if k not in self.in_memory for e in of]
        counts = Counter({name: n for name, n in self.table.not_loaded.items() if n})
        assert counts == +Counter(_count_entries(elsewhere))
        for which, first in enumerate(self.table.next_timers()):
            times = [TIMER_OF[which](e) for of_key in self.model.values() for e in of_key]
            earliest = min(times, default=LONG_MAX)
            assert earliest == LONG_MAX or (first is not None and first <= earliest)

    def end(self, number: int) -> None:
        """End a micro-batch: write, and read again what is live alone."""
        self.save()
        self.log.finish(f"file {number}")
        self.log = reopened(self.log)
        self.begin()
        every = {hash_of(key): of_key for key, of_key in self.model.items()}
        assert by_hash(self.table.find_all()) == every


def _count(entries: Entries) -> Mapping[str, int]:
    return {"entries": len(entries), "rows": entries.row_count}


def _count_entries(entries: Sequence[Entry]) -> dict[str, int]:
    return {"entries": len(entries), "rows": sum(len(entry[3]) for entry in entries)}


times = st.sampled_from([3, 5, 8, 13, LONG_MAX])
entries = st.tuples(
    st.integers(0, 9), times, times, st.lists(st.integers(0, 99), max_size=3).map(tuple)
)
keys = st.integers(0, 12)
steps = st.one_of(
    st.dictionaries(keys, st.lists(entries, max_size=2), min_size=1).map(lambda v: ("change", v)),
    st.dictionaries(keys, st.lists(entries, min_size=1, max_size=1), min_size=10).map(
        lambda v: ("change", v)
    ),
    st.lists(keys, min_size=1, max_size=3).map(lambda v: ("load", v)),
    st.tuples(st.sampled_from([2, 3, 5, 8, LONG_MAX]), st.integers(0, 1)).map(lambda v: ("due", v)),
    st.sampled_from([("save", None), ("end", None), ("end", None), ("clear", None)]),
)


@examples(300)
@given(st.lists(steps, max_size=30), constants())
def test_what_was_saved_last_is_loaded(made: list[tuple[str, Any]], values: Constants) -> None:
    with with_constants(values):
        of_model = TableOfModel()
        for number, (name, value) in enumerate([*made, ("end", None)]):
            match name:
                case "change":
                    of_model.change(value)
                case "load":
                    of_model.load(value)
                case "due":
                    of_model.load_due(*value)
                case "end":
                    of_model.end(number)
                case _:
                    getattr(of_model, name)()


def test_a_key_that_had_and_has_no_entries_leaves_nothing() -> None:
    log = Counting()
    table = KeyedTable(log, "table")
    table.load(hashes_of([1]))
    table.save(to_entries({1: [(0, 1, 1, ())]}))
    log.reopen()
    table = KeyedTable(log, "table")
    assert table.load(hashes_of([1, 2])) is not None
    table.save(to_entries({}))
    log.reopen()
    assert (log.table_names, log.live_size) == ([], 0)


def wide(keys: Ints, rng: np.random.Generator) -> Entries:
    """Return an entry of each key, of some 60 bytes."""
    hashes = (keys.astype(np.uint64) * np.uint64(_MULTIPLIER)).view(np.int64)
    values = {f"v{i}": rng.integers(0, 1 << 40, len(keys)) for i in range(6)}
    never = np.full(len(keys), LONG_MAX)
    timers = {TIMERS[0]: rng.integers(0, 1 << 40, len(keys)), TIMERS[1]: never}
    return Entries(pa.table({HASH: hashes, **timers, **values}))


def call(log: Counting, made: Entries) -> Entries | None:
    """Load the keys of entries, then save these; return what was loaded."""
    table = KeyedTable(log, "table")
    found = table.load(np.unique(made.table[HASH].to_numpy()))
    table.save(made)
    log.reopen()
    return found


@pytest.mark.parametrize(
    ("total", "touched"),
    [(20_000, 100), (100, 100), pytest.param(20_000, 20_000, marks=pytest.mark.slow)],
)
def test_a_call_costs_as_much_as_it_touches(total: int, touched: int) -> None:
    log, alone, rng = Counting(), 0, np.random.default_rng(3)
    assert call(log, wide(np.arange(total), rng)) is None
    written = read = 0
    for _ in range(100):
        made = wide(np.sort(rng.choice(total, touched, replace=False)), rng)
        log.forget_counts()
        found = call(log, made)
        assert found is not None
        assert len(found) == touched
        written += log.counts["bytes_written"]
        read = max(read, log.counts["bytes_read"])
        apart = Counting()
        call(apart, made)
        alone += apart.counts["bytes_written"]
    assert written < 4 * alone + log.live_size
    # A block of each key, of about 24,000 bytes in memory, and once all that is merged.
    assert read < min(touched * 24_000, 2 * log.live_size) + log.live_size
    assert KeyedTable(log, "table").keys == total


def test_runs_that_do_not_have_a_key_are_hardly_read() -> None:
    """Filters name them: so keys of the oldest run cost no more than those of the newest."""
    log, rng, edges = Counting(), np.random.default_rng(3), [0, 40_000, 45_000, 50_000]
    for begin, end in pairwise(edges):
        assert call(log, wide(np.arange(begin, end), rng)) is None
    assert len(log.runs("table")) == 3
    for _ in range(3):
        some = wide(np.sort(rng.choice(edges[-1], 100, replace=False)), rng)
        log.forget_counts()
        log.reopen()
        found = KeyedTable(log, "table").find(np.unique(some.table[HASH].to_numpy()))
        assert found is not None
        assert len(found) == 100
        # A block of each key; of each run its directory and parts of its filter; blocks in vain.
        assert log.counts["reads"] < 100 + 3 + 5 + 20
    log.forget_counts()
    log.reopen()
    others = np.unique(wide(edges[-1] + np.arange(100), rng).table[HASH].to_numpy())
    assert KeyedTable(log, "table").find(others) is None
    assert log.counts["reads"] < 3 + 5 + 40


def test_blocks_are_large_while_calls_touch_most_keys() -> None:
    """A store takes as long for a small one; they are small again once few keys are touched."""
    log, rng, total = Counting(), np.random.default_rng(3), 20_000

    def touch(count: int) -> tuple[int, int]:
        """Change so many keys; return how many blocks there are then, and what was read."""
        made = wide(np.sort(rng.choice(total, count, replace=False)), rng)
        log.forget_counts()
        call(log, made)
        assert KeyedTable(log, "table").keys == total
        read = log.counts["bytes_read"]
        return sum(len(log.block_index(run)) for run in log.runs("table")), read

    small, _ = touch(total)
    large = [touch(total - 100 * number)[0] for number in range(6)]
    assert large[-1] * 10 < large[0] <= small + 2
    again, _ = touch(50)
    assert again * 2 > small
    assert touch(50)[1] < 50 * 16_384 + 65_536


def test_times_of_what_is_in_no_run_yet_are_due_once() -> None:
    table = KeyedTable(MemoryLog(), "t")
    hashes = np.array([1, 2])
    columns = {HASH: hashes, TIMERS[0]: [10, 30], TIMERS[1]: np.full(2, LONG_MAX)}
    table.put(Entries(pa.table(columns)), hashes, hashes[:0])
    assert table.next_timers() == (10, None)
    assert table.take_due(20).tolist() == [1]
    assert table.take_due(20).tolist() == []
    assert table.next_timers() == (30, None)


def test_what_is_saved_many_times_in_a_call_is_in_few_parts() -> None:
    table = KeyedTable(MemoryLog(), "t")
    for number in range(300):
        hashes = np.array([number % 7, number + 10])
        times = np.full(2, LONG_MAX)
        entries = Entries(pa.table({HASH: hashes, TIMERS[0]: times, TIMERS[1]: times}))
        there = table.find(hashes)
        present = hashes[:0] if there is None else np.unique(there.table.column(HASH).to_numpy())
        table.put(entries, hashes, present)
    assert table.keys == len({*range(7), *range(10, 310)})
    assert len(table.new_contents) < 12
