"""Names of Flink's options of SET, of groups in which a typing error must not pass unnoticed."""

from __future__ import annotations

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
#: Names of options by their groups; other names of these groups are mistakes.
NAMES_BY_GROUP = {
    "execution.": (
        *(f"execution.{name}" for name in _EXECUTION),
        *(f"execution.checkpointing.{name}" for name in _CHECKPOINTING),
    ),
    "pipeline.": tuple(f"pipeline.{name}" for name in _PIPELINE),
}
