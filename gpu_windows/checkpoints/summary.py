"""Summary of the state of a stage, by table and by shard."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from gpu_windows.checkpointing.state_commit import ShardState as CommittedShard
from gpu_windows.operators.state.files import StateFiles
from gpu_windows.operators.state.log import StateLog
from gpu_windows.operators.state.manifest import VERSION

_KEYS, _TIME = "keys", ("start", "end")


@dataclass(frozen=True)
class Holding:
    """Summary of a table of state.

    Parameters
    ----------
    table : str
        Its name: "slices", "windows" and others.
    shards, runs : int
        Number of shards that have the table, and of its runs.
    size : int
        Their bytes.
    keys : int, optional
        Number of keys; None if the table is not by key.
    counts : dict of str to int
        Number of entries by kind ("windows", "rows"). Expired rows count until their run is
        dropped.
    start, end : int, optional
        Range of the times of its rows, in ticks (microseconds since 1970), ``end`` exclusive; None
        if the table is not by time.
    """

    table: str
    shards: int
    runs: int
    size: int
    keys: int | None
    counts: Mapping[str, int]
    start: int | None
    end: int | None

    @classmethod
    def read(cls, log: StateLog, table: str) -> Self:
        """Read the summary of a table from the log of a shard."""
        numbers = log.all_numbers(table)
        keys = numbers.pop(_KEYS, None)
        start, end = (numbers.pop(name, None) for name in _TIME)
        runs = log.runs(table)
        size = sum(run.size for run in runs)
        counts = {name: count for name, count in numbers.items() if name.isidentifier()}
        return cls(table, 1, len(runs), size, keys, counts, start, end)

    @classmethod
    def add_up(cls, parts: Sequence[Self]) -> Self:
        """Return the sum of a table over several shards; each key is in one."""
        counts: Counter[str] = Counter()
        for each in parts:
            counts.update(each.counts)
        keys = [each.keys for each in parts if each.keys is not None]
        return cls(
            table=parts[0].table,
            shards=len(parts),
            runs=sum(each.runs for each in parts),
            size=sum(each.size for each in parts),
            keys=sum(keys) if keys else None,
            counts=dict(counts),
            start=min((each.start for each in parts if each.start is not None), default=None),
            end=max((each.end for each in parts if each.end is not None), default=None),
        )


@dataclass(frozen=True)
class ShardState:
    """Summary of the state of a shard.

    Parameters
    ----------
    shard : int
        Its number, from 0.
    tables : tuple of Holding
    """

    shard: int
    tables: tuple[Holding, ...]


@dataclass(frozen=True)
class CheckpointState:
    """Summary of a streaming query's checkpoint after its last micro-batch.

    Parameters
    ----------
    checkpoint : str
        Its path.
    query : dict of str to str
        The query that the checkpoint belongs to, or the stage of it whose state this is, part by
        part: window, key, function, strategy, number of shards, columns of the results.
    version : int
        Of the format of state files.
    batch : int, optional
        Spark's number of the micro-batch; None if the query was started and none is committed yet:
        then there is no state.
    watermark : int, optional
        The watermark after the micro-batch, in ticks; None if there is none yet.
    next_call : int, optional
        When something is due by the clock though no rows come, in ticks; None: nothing is.
    stages : tuple of str
        Names of the earlier stages of the query.
    tables : tuple of Holding
        What all shards hold together, a table each.
    shards : tuple of ShardState
        Those that hold anything, in order of their numbers.

    Examples
    --------
    >>> state: gw.typing.CheckpointState = gw.read_state("/checkpoints/minutes")  # doctest: +SKIP
    >>> state.batch, state.watermark, len(state.shards)  # doctest: +SKIP
    """

    checkpoint: str
    query: Mapping[str, str]
    version: int = VERSION
    batch: int | None = None
    watermark: int | None = None
    next_call: int | None = None
    stages: tuple[str, ...] = ()
    tables: tuple[Holding, ...] = ()
    shards: tuple[ShardState, ...] = ()


def read_shards(files: StateFiles, shards: Sequence[CommittedShard]) -> tuple[ShardState, ...]:
    """Return the summaries of shards, from the newest state file of each.

    Raises
    ------
    StateCorruptedError, StateVersionError
        If one cannot be read, or a file that it names is missing.
    """
    states = []
    for number, shard in enumerate(shards):
        log = StateLog(files, shard.newest)
        log.check_files()
        tables = tuple(Holding.read(log, table) for table in sorted(log.table_names))
        if tables:
            states.append(ShardState(number, tables))
    return tuple(states)


def add_up_tables(shards: Sequence[ShardState]) -> tuple[Holding, ...]:
    """Return the sums over all shards, by table."""
    by_table: defaultdict[str, list[Holding]] = defaultdict(list)
    for shard in shards:
        for each in shard.tables:
            by_table[each.table].append(each)
    return tuple(Holding.add_up(by_table[table]) for table in sorted(by_table))
