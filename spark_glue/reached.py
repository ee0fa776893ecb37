"""The watermark that a shard of a stage had reached when it was called before."""

from __future__ import annotations

import pyarrow as pa

from gpu_windows.operators.state.store import Store

#: Where a store keeps it: in metadata, for it is no row.
_WHERE = ("reached", 0)
_NAME = b"watermark_ms"


class Reached:
    """What the next stage is told with results that come before the watermark of a micro-batch.

    Results may be of a time before the last watermark: their timers were set in the past, and wait
    for the next one. Then the shard was called at the last one, so it knows it, and the next stage
    can tell that they are late; most of its shards have not been called then.

    Parameters
    ----------
    store : Store
        Of the shard.
    known_ms : int, optional
        What it holds: Spark's watermark at the last call, in milliseconds, 0 before there is one.
    """

    def __init__(self, store: Store, known_ms: int | None) -> None:
        self._store, self._known_ms = store, known_ms
        self.before_ms = known_ms or 0

    @classmethod
    def in_store(cls, store: Store) -> Reached:
        """Read what `finish` left."""
        found = store.load_first(*_WHERE)
        return cls(store, None if found is None else int(found.schema.metadata[_NAME]))

    def learn(self, watermark_ms: int) -> None:
        """Take the watermark of the micro-batch before, which rows of another stage tell."""
        self.before_ms = max(self.before_ms, watermark_ms)

    def finish(self, watermark_ms: int) -> None:
        """Note the watermark of a call."""
        if watermark_ms != self._known_ms:
            told = {_NAME: str(watermark_ms).encode()}
            self._store.save(*_WHERE, pa.table({}).replace_schema_metadata(told))
