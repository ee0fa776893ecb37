"""Rolls a checkpoint back to an earlier commit.

::

    commit    create a commit with the state of the earlier one: a running driver ends
    claim     make the new lineage the owner of the path of results
    withdraw  delete records of later results at the path, the newest first
    delete    delete Spark's records of later micro-batches
    mark      create a file: the rollback is complete

Until the mark exists, a start is refused with the advice to run the rollback again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike

from gpu_windows.checkpointing.commit_log import CommitLog
from gpu_windows.checkpointing.files import CheckpointFiles
from gpu_windows.checkpointing.locations import open_checkpoint
from gpu_windows.checkpointing.state_commit import StateCommit
from gpu_windows.checkpoints.commits import find_commit, open_commits, report_errors_of
from gpu_windows.checkpoints.path_results import PathResults
from gpu_windows.checkpoints.spark_part import SparkPart
from gpu_windows.errors import CheckpointError, ConcurrentQueryError
from gpu_windows.spark_glue.streams.spark_offsets import is_ahead


def roll_back(
    checkpoint: str | PathLike[str],
    sequence: int,
    *,
    output: str | PathLike[str] | None = None,
    again: bool = False,
) -> int:
    """Roll a checkpoint back, so that its query resumes after an earlier commit.

    Stop the query first. One that runs ends with `ConcurrentQueryError` at its next micro-batch.

    Rows that were read after the commit are read again, and their results are delivered again,
    under another lineage: sinks that recognize repeats by `SinkQuery.identity`, such as tables and
    readers of Kafka, take them for new ones. If results were delivered after the commit, choose how
    to treat them by ``output`` or ``again``.

    Parameters
    ----------
    checkpoint : str or os.PathLike
        Its path or URL, as `gpu_windows.write_stream` was given it. Credentials of a store come
        from the environment.
    sequence : int
        Of the commit, one of `gpu_windows.read_commits`.
    output : str or os.PathLike, optional
        The path of the query's results, on a disk of this machine: what is later than the commit is
        withdrawn from `gpu_windows.read_output`, and the query may write there further on.
    again : bool
        Whether results that were delivered since may be delivered again, at least once.

    Returns
    -------
    int
        Sequence of the new commit, which a start resumes.

    Raises
    ------
    CheckpointError
        If there is no such checkpoint or commit; if Spark, which keeps 100 micro-batches, has
        removed what it noted of the commit's, or has noted others since; if input files that were
        read since are gone; if Spark keeps state of steps before ours; if the results of the commit
        may not have been delivered; if results were delivered since, and neither ``output`` nor
        ``again`` is given; if the store replaces what exists.
    OutputError
        If ``output`` is not the path of this query's results.
    ConcurrentQueryError
        If a query commits or deletes state meanwhile.
    StateCorruptedError, StateVersionError
        If a commit cannot be read.

    Examples
    --------
    >>> from gpu_windows import checkpoints
    >>> checkpoints.roll_back("checkpoint", 41, output="out")  # doctest: +SKIP
    """
    files = open_checkpoint(checkpoint)
    with report_errors_of(files):
        log, commits = open_commits(files)
        plan = _plan(log, commits, sequence, SparkPart(files))
        results = None
        if output is not None:
            results = PathResults.open(output, {each.lineage for each in commits})
        elif not again:
            _check_undelivered(plan, commits)
        log.files.check_create()
        plan.run(results)
        return plan.commit.sequence


@dataclass(frozen=True)
class _Plan:
    """A rollback that was checked and not yet started.

    Parameters
    ----------
    log : CommitLog
    spark : SparkPart
    target : StateCommit
        The earlier commit.
    commit : StateCommit
        The new one.
    """

    log: CommitLog
    spark: SparkPart
    target: StateCommit
    commit: StateCommit

    def run(self, results: PathResults | None) -> None:
        """Run all steps."""
        self.log.add(self.commit)
        if _find_missing(self.log.files, self.commit.files):  # a sweep has passed by
            self.log.files.delete(self.log.name(self.commit))
            raise _sweep_error(self.target)
        if results is not None:
            results.claim(self.commit.lineage)
            results.withdraw(self.commit.number)
        spark = SparkPart(self.spark.files)  # read again, because no other driver runs now
        for name in spark.later_files(self.commit.number):
            spark.files.delete(name)
        self.log.mark_delivered(self.commit)


def _plan(log: CommitLog, commits: list[StateCommit], sequence: int, spark: SparkPart) -> _Plan:
    """Check the rollback before anything is changed."""
    target, last = find_commit(commits, sequence), commits[-1]
    if target.number > last.number:  # its results may have been withdrawn
        rule = f"the checkpoint went back, to commit {last.sequence}: go to it or an earlier one"
        raise CheckpointError(rule, value=f"commit {sequence}")
    if target.results and not log.is_delivered(target):
        rule = (
            "the sink must have the results of the commit: start the query once, or go back to an "
            "earlier one"
        )
        raise CheckpointError(rule, value=sequence)
    if name := _find_missing(log.files, target.files):
        raise CheckpointError("the files of the commit must be there", value=name)
    spark.check_has_no_state()
    spark.check_can_resume(target)
    spark.check_inputs(target.number)
    spark.later_files(target.number)
    commit = target.begin_lineage(sequence=last.sequence + 1, parent=last.identity)
    return _Plan(log, spark, target, commit)


def _check_undelivered(plan: _Plan, commits: list[StateCommit]) -> None:
    """Raise `CheckpointError` if results after the commit were delivered to a sink."""
    target, last = plan.target, commits[-1]
    has_to_end = not plan.log.is_complete(last) or is_ahead(plan.spark.files, last)
    later = [
        each
        for each in commits
        if each.results and each.number > target.number
        if each.sequence > target.sequence or has_to_end
    ]
    if later:
        rule = (
            "results after the commit were given to the sink: name their path, if it is one, as "
            "output (--output) to withdraw them there, or use again (--again) to have all of them "
            "delivered again"
        )
        numbers = ", ".join(str(each.number) for each in later)
        raise CheckpointError(rule, value=f"results of micro-batch {numbers}")


def _find_missing(files: CheckpointFiles, names: Iterable[str]) -> str | None:
    return next((name for name in sorted(names) if not files.exists(name)), None)


def _sweep_error(target: StateCommit) -> ConcurrentQueryError:
    rule = "a query on the checkpoint has deleted state of the commit meanwhile: stop it"
    return ConcurrentQueryError(rule, value=f"commit {target.sequence}")
