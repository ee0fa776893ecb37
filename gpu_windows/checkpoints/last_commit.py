"""The last commit of a checkpoint, and a stage of its query in it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.state_commit import StageState, StateCommit
from gpu_windows.errors import CheckpointError, StateCorruptedError

#: A file that Spark writes into every checkpoint, after the first commit.
_OF_SPARK = "metadata"


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


def find_stage(commit: StateCommit, name: str | None) -> StageState:
    """Return an earlier stage by its name, or the query's own: None.

    Raises
    ------
    CheckpointError
        If there is no earlier stage of this name.
    """
    if name is None:
        return commit.stages[-1]
    earlier = {each.name: each for each in commit.stages if each.name}
    if name not in earlier:
        rule = f"the earlier stages of the query are {', '.join(earlier)}"
        raise CheckpointError(rule if earlier else "the query has no earlier stages", value=name)
    return earlier[name]


def earlier_stages(commit: StateCommit) -> tuple[str, ...]:
    """Return the names of the earlier stages of the query."""
    return tuple(each.name for each in commit.stages if each.name)


def describe_stage(commit: StateCommit, name: str) -> Mapping[str, str]:
    """Return parts of a stage's query to their descriptions; ``name``: see `StageState`.

    Raises
    ------
    StateCorruptedError
        If the commit does not have them.
    """
    try:
        every = dict(json.loads(commit.facts)["described"])
    except (ValueError, KeyError, TypeError) as error:
        rule = "the manifest of a query must be what gpu_windows wrote"
        raise StateCorruptedError(rule, value=f"commit {commit.sequence}") from error
    earlier, found = earlier_stages(commit), dict[str, str]()
    for part, text in every.items():
        stage, _, rest = part.partition(": ")
        of_stage, own = (stage, rest) if stage in earlier else ("", part)
        if of_stage == name:
            found[own] = text
    return found
