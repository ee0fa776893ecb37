"""Entries of keys that are in runs: those of some keys, and the newest ones of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.buffer_spec import places_of
from gpu_windows.operators.state.entries import HASH, Entries, Lacking, SavedEntries, hashes_of
from gpu_windows.operators.state.hashes import among, distinct, part_of, union, without
from gpu_windows.operators.state.key_filters import is_worth_reading, select_possible
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.runs import Run
from gpu_windows.rules import LONG_MAX, LONG_MIN

Ints = NDArray[np.int64]

_NONE = np.empty(0, np.int64)


class StoredEntries:
    """Reads the entries of a table.

    Parameters
    ----------
    log : StateLog
    name : str
        Of the table.
    lacking : Lacking
        Columns that entries of earlier starts may lack.
    """

    def __init__(self, log: StateLog, name: str, lacking: Lacking) -> None:
        self._log, self._name, self._lacking = log, name, lacking

    def find(
        self, runs: Sequence[Run], saved: Sequence[SavedEntries], keys: Ints
    ) -> Entries | None:
        """Return the entries of some keys, given by their hashes; None if there are none.

        Parameters
        ----------
        runs : sequence of Run
            From the oldest on.
        saved : sequence of SavedEntries
            What is in no run yet, from the oldest on: newer than all runs.
        keys : int64[k]
        """
        parts, missing = self._find_among(saved, distinct(keys), {})
        if len(missing):
            possible = self._fetch(runs, missing) if self._log.files.is_remote else {}
            more, _ = self._find_among(runs, missing, possible)
            parts += more
        return Entries.concat(parts) if parts else None

    def _fetch(self, runs: Sequence[Run], keys: Ints) -> dict[Run, Ints]:
        """Have at hand what all runs may have of some keys; return which keys each may have.

        That is more than is needed if the newest runs have the keys, and takes two rounds of
        requests; to ask run after run takes as many as there are runs.
        """
        self._log.fetch_filters((run, self._filter_parts(run, keys)) for run in runs)
        possible = {run: self._select_possible(run, keys) for run in runs}
        self._log.fetch_blocks(
            (run, self._blocks_with(run, each)) for run, each in possible.items()
        )
        return possible

    def _find_among(
        self,
        sources: Sequence[Run | SavedEntries],
        missing: Ints,
        possible: Mapping[Run, Ints],
    ) -> tuple[list[Entries], Ints]:
        """Return the entries that runs have of some keys, and the keys that none contains."""
        parts = []
        for source in reversed(sources):
            if len(missing) == 0:
                break
            part, known = self._find_in(source, missing, possible)
            missing = without(missing, known)
            parts += [part] if part is not None and len(part) else []
        return parts, missing

    def _find_in(
        self, source: Run | SavedEntries, keys: Ints, possible: Mapping[Run, Ints]
    ) -> tuple[Entries | None, Ints]:
        """Return the entries that a run has of some keys, and which of them it contains."""
        if isinstance(source, Run):
            if source in possible:
                keys = keys[among(keys, possible[source])]
            else:
                keys = self._select_possible(source, keys)
            blocks = self._blocks_with(source, keys)
            if len(blocks) == 0:
                return None, keys[:0]
            source = self._read(source, blocks)
        hashes = hashes_of(source.entries)
        mine = np.flatnonzero(among(hashes, keys))
        known = union(hashes[mine], source.gone[among(source.gone, keys)])
        return source.entries.take(mine), known

    def _select_possible(self, run: Run, keys: Ints) -> Ints:
        """Return which of some keys a run may contain, by its filter if that is worth reading."""
        if not self._filter_parts(run, keys):
            return keys
        return select_possible(
            keys,
            len(self._log.directory(run).filters),
            lambda part: self._log.read_filter(run, part),
            f"the filter of {self._name} in {run.file}",
        )

    def _filter_parts(self, run: Run, keys: Ints) -> list[int]:
        """Return the parts of the filter of a run that are worth asking for some keys."""
        count = len(self._log.directory(run).filters)
        if not count or not is_worth_reading(keys, count, len(self._blocks_with(run, keys))):
            return []
        return [*map(int, distinct(part_of(keys, count)))]

    def _blocks_with(self, run: Run, keys: Ints) -> Ints:
        places = np.sort(places_of(keys))
        none = np.zeros(len(places), np.int64)
        return self._log.directory(run).find_blocks(places, none, none)

    def _read(self, run: Run, blocks: Ints) -> SavedEntries:
        """Return what some blocks of a run have."""
        return self._lacking.read(self._log.read_blocks(run, blocks))

    def newest(
        self, sources: Sequence[Run | SavedEntries], low: int = LONG_MIN, high: int = LONG_MAX
    ) -> SavedEntries:
        """Return what the newest of some runs has of each key of a range of places."""
        self._log.fetch_blocks(
            (each, self._blocks_between(each, low, high))
            for each in sources
            if isinstance(each, Run)
        )
        if len(sources) == 1 and (only := self._select(sources[0], low, high)) is not None:
            return SavedEntries(only.entries, np.sort(only.gone))
        parts: list[Entries] = []
        known, gone = _NONE, [_NONE]
        for source in reversed(sources):
            each = self._select(source, low, high)
            if each is None:
                continue
            hashes = hashes_of(each.entries)
            parts.append(each.entries.take(np.flatnonzero(~among(hashes, known))))
            gone.append(without(each.gone, known))
            known = union(np.concatenate([hashes, each.gone]), known)
        entries = Entries.concat(parts) if parts else Entries(pa.table({HASH: _NONE}))
        return SavedEntries.sort(entries, np.sort(np.concatenate(gone)))

    def _select(self, source: Run | SavedEntries, low: int, high: int) -> SavedEntries | None:
        if isinstance(source, SavedEntries):
            return source.select(low, high)
        blocks = self._blocks_between(source, low, high)
        return self._read(source, blocks).select(low, high) if len(blocks) else None

    def _blocks_between(self, run: Run, low: int, high: int) -> Ints:
        """Return the blocks of a run that may have something of a range of places."""
        first, last = np.searchsorted(self._log.directory(run).place, [low, high]).tolist()
        return np.arange(max(first - 1, 0), last)
