"""Reads entries of keys from runs: those of some keys, or the newest of all keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_windows.operators.state.buffer_spec import hash_prefixes
from gpu_windows.operators.state.entries import (
    HASH,
    Entries,
    MissingColumns,
    RunContents,
    hashes_of,
)
from gpu_windows.operators.state.hashes import (
    among,
    distinct,
    is_worth_reading,
    part_of,
    select_possible,
    union,
    without,
)
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
    missing_columns : MissingColumns
        Columns that state of earlier starts may lack.
    """

    def __init__(self, log: StateLog, name: str, missing_columns: MissingColumns) -> None:
        self._log, self._name, self._missing_columns = log, name, missing_columns

    def find(
        self, runs: Sequence[Run], new_contents: Sequence[RunContents], keys: Ints
    ) -> Entries | None:
        """Return the entries of some keys, given by their hashes, or None.

        Parameters
        ----------
        runs : sequence of Run
            Oldest first.
        new_contents : sequence of RunContents
            Contents that are in no run yet, oldest first: newer than all runs.
        keys : int64[k]
        """
        parts, missing = self._find_among(new_contents, distinct(keys), {})
        if len(missing):
            possible = self._fetch(runs, missing) if self._log.files.is_remote else {}
            more, _ = self._find_among(runs, missing, possible)
            parts += more
        return Entries.concat(parts) if parts else None

    def _fetch(self, runs: Sequence[Run], keys: Ints) -> dict[Run, Ints]:
        """Prefetch the blocks of all runs that may contain some keys; return these keys by run.

        This reads more than needed if the newest runs have the keys, but takes two rounds of
        requests; going from run to run would take one or two for each.
        """
        self._log.fetch_filters((run, self._filter_parts(run, keys)) for run in runs)
        possible = {run: self._select_possible(run, keys) for run in runs}
        self._log.fetch_blocks(
            (run, self._blocks_with(run, each)) for run, each in possible.items()
        )
        return possible

    def _find_among(
        self,
        sources: Sequence[Run | RunContents],
        missing: Ints,
        possible: Mapping[Run, Ints],
    ) -> tuple[list[Entries], Ints]:
        """Return the newest entries of some keys in runs, and the keys that no run contains."""
        parts = []
        for source in reversed(sources):
            if len(missing) == 0:
                break
            part, contained = self._find_in(source, missing, possible)
            missing = without(missing, contained)
            parts += [part] if part is not None and len(part) else []
        return parts, missing

    def _find_in(
        self, source: Run | RunContents, keys: Ints, possible: Mapping[Run, Ints]
    ) -> tuple[Entries | None, Ints]:
        """Return the entries of some keys in a run, and which of the keys it contains."""
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
        index = np.flatnonzero(among(hashes, keys))
        deleted = source.tombstones[among(source.tombstones, keys)]
        return source.entries.take(index), union(hashes[index], deleted)

    def _select_possible(self, run: Run, keys: Ints) -> Ints:
        """Return which of some keys a run may contain, by its filter if reading that pays off."""
        if not self._filter_parts(run, keys):
            return keys
        return select_possible(
            keys,
            len(self._log.block_index(run).filters),
            lambda part: self._log.read_filter(run, part),
            f"the filter of {self._name} in {run.file}",
        )

    def _filter_parts(self, run: Run, keys: Ints) -> list[int]:
        """Return the parts of the filter of a run to read for keys; [] if blocks are cheaper."""
        count = len(self._log.block_index(run).filters)
        if not count or not is_worth_reading(keys, count, len(self._blocks_with(run, keys))):
            return []
        return [*map(int, distinct(part_of(keys, count)))]

    def _blocks_with(self, run: Run, keys: Ints) -> Ints:
        prefixes = np.sort(hash_prefixes(keys))
        none = np.zeros(len(prefixes), np.int64)
        return self._log.block_index(run).find_blocks(prefixes, none, none)

    def _read(self, run: Run, blocks: Ints) -> RunContents:
        """Return the contents of some blocks of a run."""
        return self._missing_columns.read(self._log.read_blocks(run, blocks))

    def newest(
        self, sources: Sequence[Run | RunContents], low: int = LONG_MIN, high: int = LONG_MAX
    ) -> RunContents:
        """Return the newest entries or tombstone of each key of a range of prefixes."""
        self._log.fetch_blocks(
            (each, self._blocks_between(each, low, high))
            for each in sources
            if isinstance(each, Run)
        )
        if len(sources) == 1 and (only := self._select(sources[0], low, high)) is not None:
            return RunContents(only.entries, np.sort(only.tombstones))
        parts: list[Entries] = []
        seen, tombstones = _NONE, [_NONE]
        for source in reversed(sources):
            each = self._select(source, low, high)
            if each is None:
                continue
            hashes = hashes_of(each.entries)
            parts.append(each.entries.take(np.flatnonzero(~among(hashes, seen))))
            tombstones.append(without(each.tombstones, seen))
            seen = union(np.concatenate([hashes, each.tombstones]), seen)
        entries = Entries.concat(parts) if parts else Entries(pa.table({HASH: _NONE}))
        return RunContents.sort(entries, np.sort(np.concatenate(tombstones)))

    def _select(self, source: Run | RunContents, low: int, high: int) -> RunContents | None:
        if isinstance(source, RunContents):
            return source.select(low, high)
        blocks = self._blocks_between(source, low, high)
        return self._read(source, blocks).select(low, high) if len(blocks) else None

    def _blocks_between(self, run: Run, low: int, high: int) -> Ints:
        """Return the blocks of a run that may contain keys of a range of prefixes."""
        first, last = np.searchsorted(self._log.block_index(run).prefix, [low, high]).tolist()
        return np.arange(max(first - 1, 0), last)
