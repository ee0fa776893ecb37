"""Match patterns in the rows of keys, row after row.

A key is one unit of work here, whose rows are in order: it is the CPU's on every back end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpu_windows.kernels.argument_types import Record, record
from gpu_windows.kernels.compile import INNER, compile_rules, inner, kernel
from gpu_windows.rules import pattern_matching
from gpu_windows.rules.pattern_matching.layout import (
    FEW_COMPLETED,
    FEW_GIVEN,
    FEW_PARTIALS,
    FEW_STORED,
    Automaton,
    Completed,
    Found,
    Machine,
    Matches,
    Pool,
    Pools,
    Program,
    Rows,
    Settings,
    Work,
)

Ints = NDArray[np.int64]
Memory = TypeVar("Memory", Pool, Completed, Found)

#: What aggregates keep of a partial match.
_AGGREGATES = ("ints", "floats", "counts")

#: Initial capacity: partial and complete matches of a key; about how many matches of a row.
_CAPACITY, _MATCHES_A_ROW = 256, 0.25

_COMPILED = compile_rules(inner(**INNER), pattern_matching)
_POOL = record(Pool, "iiiifiii")
_FOUND = record(Found, "iiiiiiiiifiiiii")
_POOLS = Record(Pools, (_POOL, _POOL))
_MATCHES = Record(Matches, (record(Completed, "iiiii"), _FOUND))
_WORK = Record(
    Work,
    (
        record(Automaton, "iiiii"),
        record(Program, "iiiiiifiiiii"),
        record(Settings, "I" * 8),
        record(Rows, "iiiifb"),
        record(Machine, "iiifii"),
    ),
)

_match = _COMPILED["run"]


@kernel((_FOUND, _POOLS, _MATCHES, _WORK))
def _run(stored: Any, pools: Any, matches: Any, work: Any) -> Any:
    return _match(stored, pools, matches, work)


def run(
    stored: Found, automaton: Automaton, program: Program, settings: Settings, rows: Rows,
    depth: int, *, compiled: bool = True,
) -> tuple[int, int, Found]:  # fmt: skip
    """Match the rows of some keys.

    Parameters
    ----------
    stored : Found
        What a run before has left of these keys, in their order; see `nothing`.
    automaton, program, settings, rows
    depth : int
        Values that conditions have on their stack, at most.
    compiled : bool
        Whether it runs compiled; else in Python.

    Returns
    -------
    (int, int, Found)
        How the run ended, of which variable the condition failed then, and what was found: the
        matches in the order in which they were given, and the state to store.
    """
    keys = len(rows.stored)
    max_branches = int(np.diff(stored.partials).max(initial=0)) * settings.branches
    pools = Pools(*(_pool(settings, _CAPACITY + max_branches) for _ in range(2)))
    completed = _allocate_completed(settings, _CAPACITY + len(stored.complete_starts))
    given = int(_MATCHES_A_ROW * len(rows.ts)) + _CAPACITY
    capacity = (
        len(stored.state) + keys + _CAPACITY,
        len(stored.complete_starts) + _CAPACITY,
    )
    found = _allocate_found(settings, keys, given, *capacity)
    work = Work(automaton, program, settings, rows, _machine(depth))
    call: Callable[..., int] = _run if compiled else pattern_matching.matching.run
    while True:
        with np.errstate(over="ignore", invalid="ignore"):  # as compiled
            ended = int(call(stored, pools, Matches(completed, found), work))
        if ended == FEW_PARTIALS:
            pools = Pools(*(_larger(p, _pool(settings, 2 * len(p.state))) for p in pools))
        elif ended == FEW_COMPLETED:
            completed = _larger(completed, _allocate_completed(settings, 2 * len(completed.start)))
        elif ended == FEW_GIVEN:
            given *= 2
            found = _larger(found, _allocate_found(settings, keys, given, *capacity))
        elif ended == FEW_STORED:
            capacity = (2 * capacity[0], 2 * capacity[1])
            found = _larger(found, _allocate_found(settings, keys, given, *capacity))
        else:
            return ended, int(work.machine.failed[0]), _trim(found, settings)


def nothing(settings: Settings, keys: int) -> Found:
    """Return the state of new keys."""
    return _trim(_allocate_found(settings, keys, 0, 0, 0), settings)


def _pool(settings: Settings, capacity: int) -> Pool:
    sizes = {
        **dict.fromkeys(("state", "start", "heap"), capacity),
        "ends": capacity * settings.variables,
        **dict.fromkeys(_AGGREGATES, capacity * settings.aggregates),
    }
    return Pool(**_zeros(sizes), sizes=np.zeros(2, np.int64))


def _allocate_completed(settings: Settings, capacity: int) -> Completed:
    sizes = {
        **dict.fromkeys(("start", "new", "pending"), capacity),
        "ends": capacity * settings.variables,
    }
    return Completed(**_zeros(sizes), sizes=np.zeros(3, np.int64))


def _allocate_found(
    settings: Settings, keys: int, matches: int, partials: int, pending: int
) -> Found:
    return Found(
        **_zeros(_sizes_of_found(settings, matches, partials, pending)),
        partials=np.zeros(keys + 1, np.int64),
        complete=np.zeros(keys + 1, np.int64),
        sizes=np.zeros(3, np.int64),
    )


def _sizes_of_found(
    settings: Settings, matches: int, partials: int, pending: int
) -> dict[str, int]:
    """Return how long the arrays of `Found` are that have no entry a key."""
    return {
        **dict.fromkeys(("key", "cause", "start"), matches),
        "ends": matches * settings.variables,
        **dict.fromkeys(("state", "starts"), partials),
        "partial_ends": partials * settings.variables,
        **dict.fromkeys(_AGGREGATES, partials * settings.aggregates),
        "complete_starts": pending,
        "complete_ends": pending * settings.variables,
    }


def _zeros(sizes: Mapping[str, int]) -> dict[str, Any]:
    """Allocate arrays of some sizes, by name: 0 where nobody writes."""
    return {
        name: np.zeros(size, np.float64 if name == "floats" else np.int64)
        for name, size in sizes.items()
    }


def _machine(depth: int) -> Machine:
    return Machine(
        cursor=np.array([0, -1, 0]),
        failed=np.zeros(1, np.int64),
        ints=np.zeros(depth, np.int64),
        floats=np.zeros(depth),
        tags=np.zeros(depth, np.int64),
        evaluated=np.zeros(2, np.int64),
    )


def _larger(old: Memory, new: Memory) -> Memory:
    """Return larger memory with the same contents."""
    for before, after in zip(old, new, strict=True):
        after[: len(before)] = before
    return new


def _trim(found: Found, settings: Settings) -> Found:
    """Return what was found without the memory that was not used."""
    used = _sizes_of_found(settings, *map(int, found.sizes))
    return found._replace(**{name: getattr(found, name)[:size] for name, size in used.items()})
