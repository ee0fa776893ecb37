"""Options of SET: those that queries follow, those that change no result, all others refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from gpu_windows.errors import did_you_mean
from gpu_windows.sql.scripts.catalog import Catalog, Task
from gpu_windows.sql.scripts.statements import SetOption
from gpu_windows.vocabulary.options import ticks

_ZONE, _UTC = "table.local-time-zone", ("UTC", "Z", "GMT", "ETC/UTC", "+00:00")
IDLE_TIMEOUT = "table.exec.source.idle-timeout"
_INTERVAL = "execution.checkpointing.interval"
#: What queries follow.
_USED = {
    "execution.runtime-mode": "says whether tables are streams",
    _INTERVAL: "is the interval of micro-batches of write_stream",
    "pipeline.name": "is the name of the streaming query",
    IDLE_TIMEOUT: "is the time after which a stream without rows does not hold the watermark",
    "table.exec.state.ttl": "is not needed: state of windows and of joins in time expires with "
    "them; that of a continuous top-N and of OVER stays, as if it were 0",
}
#: What a query has once, whatever number of INSERT statements it has.
_OF_QUERY = ("execution.runtime-mode", _INTERVAL, "pipeline.name")
#: Prefixes of options that change how Flink runs a query, and not its results.
_WITHOUT_EFFECT = (
    "parallelism.", "table.exec.mini-batch.", "table.optimizer.", "sql-client.", "state.",
    "restart-strategy", "taskmanager.", "jobmanager.", "rest.", "metrics.",
    "table.exec.resource.", "table.exec.spill-", "table.exec.shuffle-mode", "table.dml-sync",
    "cluster.", "heartbeat.", "web.", "env.", "yarn.", "kubernetes.", "table.exec.async-lookup.",
    "table.display.", "table.exec.sink.upsert-materialize", "table.exec.sink.keyed-shuffle",
    "table.exec.simplify-operator-name-enabled", "table.exec.legacy-transformation-uids",
)  # fmt: skip
#: Names of groups in which a typing error must not pass unnoticed.
_CHECKPOINTING = (
    "interval", "mode", "timeout", "max-concurrent-checkpoints", "min-pause",
    "tolerable-failed-checkpoints", "externalized-checkpoint-retention", "interval-during-backlog",
    "unaligned", "unaligned.enabled", "unaligned.forced", "alignment-timeout",
    "unaligned.max-subtasks-per-channel-state-file", "unaligned.interruptible-timers.enabled",
    "aligned-checkpoint-timeout", "checkpoints-after-tasks-finish",
    "checkpoints-after-tasks-finish.enabled", "dir", "savepoint-dir", "storage", "incremental",
    "local-backup.enabled", "local-backup.dirs", "data-inline-threshold", "write-buffer-size",
    "num-retained", "cleaner.parallel-mode", "snapshot-compression", "create-subdir",
    "file-merging.enabled", "file-merging.across-checkpoint-boundary",
    "file-merging.max-file-size", "file-merging.pool-blocking",
    "file-merging.max-subtasks-per-file", "file-merging.max-space-amplification",
    "prefer-checkpoint-for-recovery", "recover-without-channel-state.checkpoint-id",
)  # fmt: skip
_EXECUTION = (
    "runtime-mode", "attached", "shutdown-on-attached-exit", "shutdown-on-application-finish",
    "submit-failed-job-on-application-error", "target", "job-listeners",
    "job-status-changed-listeners", "allow-client-job-configurations",
    "program-config.enabled", "program-config.wildcards", "buffer-timeout",
    "buffer-timeout.enabled", "buffer-timeout.interval", "batch-shuffle-mode",
    "sorted-inputs.enabled", "sorted-inputs.memory", "savepoint.path",
    "savepoint.ignore-unclaimed-state", "savepoint-restore-mode", "state-recovery.path",
    "state-recovery.claim-mode", "state-recovery.ignore-unclaimed-state",
    "state-recovery.from-local", "state-recovery.without-channel-state.checkpoint-id",
    "batch.adaptive.auto-parallelism.enabled", "batch.adaptive.auto-parallelism.min-parallelism",
    "batch.adaptive.auto-parallelism.max-parallelism",
    "batch.adaptive.auto-parallelism.avg-data-volume-per-task",
    "batch.adaptive.auto-parallelism.default-source-parallelism",
    "batch.job-recovery.enabled", "batch.job-recovery.previous-worker.recovery.timeout",
    "batch.job-recovery.snapshot.min-pause", "batch.speculative.enabled",
    "batch.speculative.max-concurrent-executions",
    "batch.speculative.block-slow-node-duration",
    # of the SQL client of older versions
    "type", "planner", "parallelism", "max-parallelism", "time-characteristic", "result-mode",
    "max-table-result-rows", "periodic-watermarks-interval", "restart-strategy.type",
)  # fmt: skip
_PIPELINE = (
    "name", "jars", "classpaths", "auto-generate-uids", "auto-type-registration",
    "auto-watermark-interval", "cached-files", "closure-cleaner-level",
    "default-kryo-serializers", "force-avro", "force-kryo", "force-kryo-avro", "generic-types",
    "global-job-parameters", "jobvertex-parallelism-overrides", "max-parallelism",
    "object-reuse", "operator-chaining", "operator-chaining.enabled",
    "operator-chaining.chain-operators-with-different-max-parallelism",
    "registered-kryo-types", "registered-pojo-types", "serialization-config",
    "vertex-description-mode", "vertex-name-include-index-prefix",
    "watermark-alignment.allow-unaligned-source-splits",
)  # fmt: skip
_OF_GROUPS = (
    *(f"execution.{name}" for name in _EXECUTION),
    *(f"execution.checkpointing.{name}" for name in _CHECKPOINTING),
    *(f"pipeline.{name}" for name in _PIPELINE),
)
_REFUSED = {
    _ZONE: "the zone of TIMESTAMP_LTZ is that of the Spark session, "
    "spark.sql.session.timeZone, and UTC over Arrow tables",
    "table.exec.emit.early-fire.enabled": "use a trigger of the API",
    "table.exec.emit.late-fire.enabled": "use allowed_lateness of the API",
}


def check_options(options: Mapping[str, SetOption], zone: str) -> None:
    """Raise `SqlError` for an option that would change results, and is not followed.

    ``zone``: that of TIMESTAMP_LTZ.
    """
    for name, option in options.items():
        if name in _USED or name.startswith(_WITHOUT_EFFECT) or name in _OF_GROUPS:
            continue
        if name == _ZONE and _is_same_zone(str(option.value), zone):
            continue
        rule = f"this option is not covered: {_REFUSED.get(name)}"
        if name not in _REFUSED:
            near = did_you_mean(name, (*_USED, *_REFUSED, *_OF_GROUPS))
            rule = (
                f"there is no such option that is followed, or that changes no result{near}; "
                f"those that are followed: {', '.join(_USED)}"
            )
        raise option.place.error(rule, name)


def check_order(catalog: Catalog) -> None:
    """Raise `SqlError` for an option that stands after the statements that it is for."""
    tasks: Sequence[Task] = catalog.inserts or catalog.tasks
    for name, option in catalog.options.items():
        values = {task.scope.options.get(name) for task in tasks}
        if not tasks or name not in (*_OF_QUERY, IDLE_TIMEOUT):
            continue
        if all(option.place.start > task.query.start for task in tasks):
            rule = "SET counts for the statements after it, and there is none: write it before them"
        elif name in _OF_QUERY and len(values) > 1:
            rule = "all INSERT statements run as one query: write SET before the first of them"
        else:
            continue
        raise option.place.error(rule, f"{name} = {option.value}")


def explain_options(options: Mapping[str, SetOption]) -> Iterator[str]:
    """Yield a line for each option: what it does."""
    for name in options:
        yield f"-- SET {name}: {_USED.get(name, 'changes no result, and is not used')}"


def read_trigger(options: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the trigger of the interval of checkpoints; None without one."""
    interval = options.get(_INTERVAL)
    if interval is None:
        return None
    duration = timedelta(microseconds=ticks(read_duration(interval)))
    return {"processingTime": f"{duration // timedelta(milliseconds=1)} milliseconds"}


def read_duration(text: str) -> str:
    """Return a duration of Flink's options, whose unit is by default the millisecond."""
    return f"{text} ms" if text.strip().isdigit() else text


def _is_same_zone(one: str, other: str) -> bool:
    return one == other or all(each.upper() in _UTC for each in (one, other))
