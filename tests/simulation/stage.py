"""The shards of a stage: the state of each is what was committed, in files in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.local_files import LocalFiles
from gpu_windows.checkpointing.state_commit import ShardState
from gpu_windows.operators.base import Emission, Timers
from gpu_windows.operators.build import restore_operator
from gpu_windows.operators.state.log import StateLog
from gpu_windows.planning.plan import Plan
from gpu_windows.rules import LONG_MAX
from gpu_windows.spark_glue.tasks.given_keys import plan_of_micro_batch, plan_of_shard
from gpu_windows.spark_glue.tasks.open_shard import open_shard
from gpu_windows.spark_glue.tasks.packing import shard_count
from gpu_windows.spark_glue.tasks.shard_run import ShardRun
from tests.simulation.fuses import Fuse, FusedFiles

#: A file system in memory, where there is one.
_MEMORY = Path("/dev/shm")
#: Numbers of attempts, in all runs of a process.
_ATTEMPTS = count()

MakeLog = Callable[[FusedFiles, str | None], StateLog]


class BrokenInvariantError(AssertionError):
    """What a shard says of itself is not so."""


@contextmanager
def state_folder() -> Iterator[str]:
    """Make a folder for state, in memory if possible."""
    with TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        yield folder


@dataclass(frozen=True)
class Shard:
    """What is committed of a shard.

    Parameters
    ----------
    state : ShardState
    next_times : (int or None, int or None)
        Watermark and processing time at which something is due in it.
    """

    state: ShardState = ShardState()  # noqa: RUF009 - frozen
    next_times: Timers = (None, None)


@dataclass(frozen=True)
class Times:
    """The times of a micro-batch, in ticks: rows are taken before the watermark.

    Parameters
    ----------
    now : int
        Processing time.
    watermark : int, optional
        After its rows; None if there is none yet.
    """

    now: int
    watermark: int | None


@dataclass
class Attempt:
    """What a micro-batch of a stage makes, before it is committed."""

    shards: list[Shard] = field(default_factory=list)
    emissions: list[Emission] = field(default_factory=list)


class Stage:
    """A stage as it is executed.

    Parameters
    ----------
    plan : Plan
    folder : str
        Of the state of all stages.
    number : int
    make_log : callable
        Makes the log of a shard in a micro-batch.
    """

    def __init__(
        self, plan: Plan, folder: str, number: int = 0, make_log: MakeLog = StateLog
    ) -> None:
        self.plan = plan
        self.shards = [Shard() for _ in range(shard_count(plan))]
        self._most = 0  # shards so far
        self._folder, self._number, self._make_log = folder, number, make_log

    def attempt(self, rows: Mapping[int, Sequence[pa.Table]], times: Times, fuse: Fuse) -> Attempt:
        """Run a micro-batch in all shards; ``rows``: of those that have some."""
        made = Attempt()
        for number in range(shard_count(self.plan)):
            fuse.burn()
            made.shards.append(self._run(number, rows.get(number, ()), times, fuse, made))
        return made

    def _run(
        self, number: int, rows: Sequence[pa.Table], times: Times, fuse: Fuse, made: Attempt
    ) -> Shard:
        files = FusedFiles(self._folder, fuse)
        before = [shard.state.newest for shard in self.shards]
        if len(before) == shard_count(self.plan):
            log = self._make_log(files, before[number])
        else:
            log = open_shard(self.plan, files, before, number, self._file(number))
        plan = plan_of_shard(plan_of_micro_batch(self.plan, before), number)
        run = ShardRun(plan, log, times.now)
        found: list[Emission] = []
        for emission in run.emissions(rows, lambda: times.watermark):
            found.append(emission)
            fuse.burn()
        finished = run.finish(self._file(number))
        is_due = any(_is_due(shard, times) for shard in self.shards)
        if not rows and not is_due and any(map(_gives, found)):
            raise BrokenInvariantError(f"nothing is due, and {times} give {found}")
        made.emissions += found
        state = ShardState(log.newest, log.live_files)
        return Shard(state=state, next_times=finished.next_times)

    def _file(self, number: int) -> str:
        """Return a name for a state file of a shard."""
        files = LocalFiles(self._folder)
        return CommitLog(files).state_file(0, self._number, number, f"{next(_ATTEMPTS):x}")

    def commit(self, shards: list[Shard]) -> None:
        """Keep what an attempt made, and only that."""
        self.shards = shards
        needed = {name for shard in shards for name in shard.state.files}
        self._most = max(self._most, len(shards))
        for number in range(self._most):
            self._sweep(number, needed)

    def _sweep(self, number: int, needed: Collection[str]) -> None:
        files = LocalFiles(self._folder)
        for name in files.names(self._file(number).rpartition("/")[0]):
            if name not in needed:
                files.delete(name)

    @property
    def state_size(self) -> dict[str, int]:
        """How many entries of each kind the shards hold, and how many wait for a time."""
        found = {"waiting": sum(shard.next_times != (None, None) for shard in self.shards)}
        for shard in self.shards:
            log = StateLog(LocalFiles(self._folder), shard.state.newest)
            for name, size in restore_operator(self.plan, log).state_size().items():
                found[name] = found.get(name, 0) + size
        return {name: size for name, size in found.items() if size}


def _is_due(shard: Shard, times: Times) -> bool:
    """Whether something may happen in a shard without rows: one that never ran has told no time."""
    event, processing = shard.next_times
    watermark = times.watermark
    by_event = event is not None and watermark is not None and event <= watermark
    by_clock = processing is not None and processing <= times.now
    return shard.state.newest is None or by_event or by_clock or watermark == LONG_MAX


def _gives(emission: Emission) -> bool:
    tables = (emission.results, emission.late, *emission.sides.values())
    return any(len(table) > 0 for table in tables)
