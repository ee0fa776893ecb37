"""The last commit of a checkpoint, and a stage of its query in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.state_commit import StageState, StateCommit
from gpu_windows.errors import CheckpointError, StateCorruptedError

_TICKS_A_MS = 1_000
#: A file that Spark writes into every checkpoint, after the first commit.
_OF_SPARK = "metadata"


@dataclass(frozen=True)
class CommittedStage:
    """A stage of a query after a micro-batch.

    Parameters
    ----------
    commit : StateCommit
        Of the micro-batch.
    state : StageState
        Of the stage.
    """

    commit: StateCommit
    state: StageState

    @property
    def earlier(self) -> tuple[str, ...]:
        """Names of the earlier stages of the query."""
        return tuple(each.name for each in self.commit.stages if each.name)

    @property
    def description(self) -> Mapping[str, str]:
        """Parts of the stage's query to their descriptions.

        Raises
        ------
        StateCorruptedError
            If the commit does not have them.
        """
        try:
            every = dict(json.loads(self.commit.facts)["described"])
        except (ValueError, KeyError, TypeError) as error:
            rule = "the manifest of a query must be what gpu_windows wrote"
            raise StateCorruptedError(rule, value=f"commit {self.commit.sequence}") from error
        found: dict[str, str] = {}
        for part, text in every.items():
            stage, _, rest = part.partition(": ")
            name, own = (stage, rest) if stage in self.earlier else ("", part)
            if name == self.state.name:
                found[own] = text
        return found

    @property
    def batch(self) -> int | None:
        """Spark's number of the micro-batch; None before the first one."""
        return None if self.commit.number < 0 else self.commit.number

    @property
    def watermark(self) -> int | None:
        """The watermark after the micro-batch, in ticks; None before the first one."""
        return self.state.watermark

    @property
    def next_call(self) -> int | None:
        """When the clock makes something due, in ticks; None: nothing is due."""
        due = self.commit.next_call_ms
        return None if due is None else due * _TICKS_A_MS


def read_last_commit(log: CommitLog, checkpoint: CheckpointFiles) -> StateCommit:
    """Return the last commit of a checkpoint; ``log``: its commits.

    Raises
    ------
    CheckpointError
        If there is no such folder, or it is no checkpoint, or one of another query.
    StateCorruptedError, StateVersionError
        If the commit cannot be read.
    """
    try:
        entries = checkpoint.entries()
    except NotADirectoryError:
        entries = None
    if entries is None:
        rule = "the checkpoint must be a folder: there is none"
        raise CheckpointError(rule, value=checkpoint.root)
    found = log.last()
    if found is not None:
        return found
    if _OF_SPARK in entries:
        rule = "the checkpoint must be of a gpu_windows query: it is of another one"
        raise CheckpointError(rule, value=checkpoint.root)
    rule = "the folder must be the checkpoint of a streaming query, and is not"
    raise CheckpointError(rule, value=checkpoint.root)


def find_stage(commit: StateCommit, name: str | None) -> CommittedStage:
    """Return an earlier stage by its name, or the query's own: None.

    Raises
    ------
    CheckpointError
        If there is no earlier stage of this name.
    """
    if name is None:
        return CommittedStage(commit, commit.stages[-1])
    earlier = {each.name: each for each in commit.stages if each.name}
    if name not in earlier:
        rule = f"the earlier stages of the query are {', '.join(earlier)}"
        raise CheckpointError(rule if earlier else "the query has no earlier stages", value=name)
    return CommittedStage(commit, earlier[name])
