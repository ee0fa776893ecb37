"""Runs of a log-structured tree of entries, as the index of a store has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpu_windows.operators.state.key_filters import KeyFilter, filter_kind
from gpu_windows.operators.state.timer_lists import TimerList


@dataclass(frozen=True)
class Run:
    """What an index tells of a run.

    Parameters
    ----------
    first, blocks : int
        The number of its first block, and how many there are.
    keys : int
        Keys that it knows, those that are gone too.
    keeps_rows : bool
        Whether blocks have rows beside them.
    timers : tuple of TimerList
        Of event time and of processing time.
    filter : KeyFilter
        Of the keys that it knows.
    """

    first: int
    blocks: int
    keys: int
    keeps_rows: bool
    timers: tuple[TimerList, ...]
    filter: KeyFilter

    @property
    def end(self) -> int:
        """The number after those of its blobs."""
        of_timers = (len(timers.least) for timers in self.timers)
        lengths = (self.blocks, *of_timers, len(self.filter.bytes))
        return self.first + max(lengths)


_LISTED = pa.list_(pa.int64())
#: The columns of an index.
INDEX = pa.schema(
    [("first", pa.int64()), ("blocks", pa.int64()), ("keys", pa.int64()),
     ("keeps_rows", pa.bool_()), ("event_least", _LISTED), ("event_bytes", _LISTED),
     ("event_next", pa.int64()), ("processing_least", _LISTED), ("processing_bytes", _LISTED),
     ("processing_next", pa.int64()), ("filter_bytes", _LISTED)]
)  # fmt: skip
_OF_RUN = ("first", "blocks", "keys", "keeps_rows")
_OF_TIMERS = ("least", "bytes", "next")


def record_of(run: Run) -> dict[str, Any]:
    """Return a run as an index has it."""
    pairs = zip(("event", "processing"), run.timers, strict=True)
    timers = {f"{when}_{name}": getattr(t, name) for when, t in pairs for name in _OF_TIMERS}
    of_run = {name: getattr(run, name) for name in _OF_RUN}
    return {**of_run, **timers, "filter_bytes": run.filter.bytes}


def run_of(record: dict[str, Any], kinds: Kinds) -> Run:
    """Return a run that an index tells of."""
    timers = tuple(
        TimerList(
            kind,
            record["first"],
            tuple(record[f"{when}_least"]),
            tuple(record[f"{when}_bytes"]),
            record[f"{when}_next"],
        )
        for when, kind in zip(("event", "processing"), kinds.timers, strict=True)
    )
    first, blocks, keys, keeps_rows = (record[name] for name in _OF_RUN)
    sizes = record.get("filter_bytes", ())  # until version 3 there were none
    key_filter = KeyFilter(kinds.filters, first, tuple(sizes))
    return Run(first, blocks, keys, keeps_rows, timers, key_filter)


@dataclass(frozen=True)
class Kinds:
    """What a store calls blocks, the rows that they keep, and lists of timers."""

    blocks: str
    rows: str
    timers: tuple[str, str]

    @property
    def filters(self) -> str:
        """What it calls filters of keys."""
        return filter_kind(self.blocks)
