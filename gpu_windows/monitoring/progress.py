"""What micro-batches of a streaming query measured, out of Spark's reports of progress."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from gpu_windows.operators.counters import Counters

if TYPE_CHECKING:
    from gpu_windows.annotations import Row, StreamingQueryProgress

#: Under which name a report carries what we measured (``progress.observedMetrics``).
OBSERVATION = "gpu_windows"
#: Names in it besides those of `Counters` and measures.
SHARDS, DEVICE = "shards", "device"
#: Name of the counters of user code; in a report those of each shard that has some, as JSON.
USER = "user"
#: Names in it of what is told of a watermark that is not Spark's: how far it is (ticks), the number
#: of the input that it waits for, from 1 (0: all are idle), and since when (milliseconds).
WATERMARK, HELD_BY, HELD_SINCE = "own_watermark", "held_by", "held_since"
OWN = (WATERMARK, HELD_BY, HELD_SINCE)

_MS_A_SECOND, _US_A_MS = 1_000, 1_000


def observation_of(stage: str) -> str:
    """Return under which name a report carries what an earlier stage of a query measured."""
    return f"{OBSERVATION}.{stage}"


@dataclass(frozen=True)
class HeldWatermark:
    """A watermark that is not Spark's, after a micro-batch, and the input that it waits for.

    Parameters
    ----------
    watermark : datetime, optional
        In UTC; None while there is none.
    input : int, optional
        Its number among those of a union or a join, in order, from 1; None if all are idle.
    since : datetime
        Of the micro-batch since which the watermark is there, or all inputs are idle; in UTC.
    """

    watermark: datetime | None
    input: int | None
    since: datetime | None

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self | None:
        """Take what is told out of some values; None if Spark has the watermark, or nobody told."""
        watermark, held_by, since = (values.pop(name, None) for name in OWN)
        if since is None:
            return None
        reached = None if watermark is None else _instant(watermark)
        return cls(reached, held_by or None, _instant(since * _US_A_MS))

    def __str__(self) -> str:
        holder = "all inputs idle" if self.input is None else f"held by input {self.input}"
        return holder if self.since is None else f"{holder} since {self.since:%Y-%m-%d %H:%M:%S}"


@dataclass(frozen=True)
class BatchMetrics:
    """What one micro-batch did and cost.

    Parameters
    ----------
    number : int
        Of the micro-batch, as the sink is given it.
    seconds : float
        From its beginning to its commit.
    watermark : datetime, optional
        To which it advanced, in UTC; None while there is none. Where it is not Spark's, to which
        the next one will.
    counters : gpu_windows.operators.base.Counters
        Rows, late ones, fired windows and so on, calls of kernels by back end, fallbacks, and those
        of user code.
    shards : int
        That had rows or a timer. State and change of state are theirs.
    kernel_ms : float
        Milliseconds in their operators, added up: kernels and what prepares them.
    state_ms : float
        Milliseconds in reading and writing their state, added up.
    state_rows, state_bytes : int
        Entries (slices, windows, kept rows) and bytes of state that these shards hold.
    state_rows_change, state_bytes_change : int
        How many more than before the micro-batch.
    device : str
        On what kernels ran: ``cpu``, ``cuda``, ``cpu+cuda``, or nothing if none did.
    held : HeldWatermark, optional
        Which input holds the watermark, where it is not Spark's (`with_idleness`, a generator).
    stages : mapping of str to BatchMetrics
        The same of the stages that the query goes on from, by name; the rest is of the last stage.
    """

    number: int
    seconds: float
    watermark: datetime | None
    counters: Counters
    shards: int
    kernel_ms: float
    state_ms: float
    state_rows: int
    state_bytes: int
    state_rows_change: int
    state_bytes_change: int
    device: str
    held: HeldWatermark | None = None
    stages: Mapping[str, BatchMetrics] = field(default_factory=dict)

    @classmethod
    def of(cls, progress: StreamingQueryProgress) -> Self | None:
        """Return what a report of progress carries; None if the query is none of ours."""
        found, prefix = progress.observedMetrics, observation_of("")
        own = found.get(OBSERVATION)
        if own is None:
            return None
        stages = {
            name.removeprefix(prefix): BatchMetrics._of(progress, each)
            for name, each in found.items()
            if name.startswith(prefix)
        }
        return replace(cls._of(progress, own), stages=stages)

    @classmethod
    def _of(cls, progress: StreamingQueryProgress, found: Row) -> Self:
        values = _by_name(found)
        user = _added_up(values.pop(USER, ()))
        counters = Counters(**{name: values.pop(name) for name in Counters.names()}, user=user)
        held, of_spark = HeldWatermark.of(values), progress.eventTime.get("watermark")
        return cls(
            number=progress.batchId,
            seconds=progress.batchDuration / _MS_A_SECOND,
            watermark=_watermark(of_spark) if held is None else held.watermark,
            counters=counters,
            held=held,
            **values,
        )

    @property
    def rows_per_second(self) -> float:
        """Rows for each second of the micro-batch."""
        return _rate(self.counters.rows, self.seconds)


@dataclass(frozen=True)
class QueryMetrics:
    """What the micro-batches of a query did and cost, as far as they were seen.

    Parameters
    ----------
    name : str
        Of the query; its id if it has none.
    batches : int
        Micro-batches seen.
    counters : gpu_windows.operators.base.Counters
        Sums over them, as are ``kernel_ms``, ``state_ms`` and ``seconds``.
    state_rows, state_bytes : int
        Entries and bytes of state that all shards hold: exact if the first micro-batch seen was
        the query's first; else shards that have not been touched at that time are missing.
    last : BatchMetrics, optional
        The latest.
    is_active : bool
        Whether the query runs.
    error : str, optional
        Why it ended.
    stages : mapping of str to QueryMetrics
        The same of the stages that the query goes on from, by name; the rest is of the last stage.
    """

    name: str
    batches: int = 0
    counters: Counters = field(default_factory=Counters)
    kernel_ms: float = 0.0
    state_ms: float = 0.0
    seconds: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0
    last: BatchMetrics | None = None
    is_active: bool = True
    error: str | None = None
    stages: Mapping[str, QueryMetrics] = field(default_factory=dict)

    def plus(self, batch: BatchMetrics) -> Self:
        """Return the metrics with a further micro-batch.

        Where no shard had rows or a timer nobody told of the watermark: it is as it was.
        """
        first, parts = self.last is None, batch.stages
        if batch.held is None and self.last is not None and self.last.held is not None:
            batch = replace(batch, watermark=self.last.watermark, held=self.last.held)
        return replace(
            self,
            batches=self.batches + 1,
            counters=self.counters + batch.counters,
            kernel_ms=self.kernel_ms + batch.kernel_ms,
            state_ms=self.state_ms + batch.state_ms,
            seconds=self.seconds + batch.seconds,
            state_rows=batch.state_rows if first else self.state_rows + batch.state_rows_change,
            state_bytes=batch.state_bytes if first else self.state_bytes + batch.state_bytes_change,
            last=batch,
            stages={n: (self.stages.get(n) or QueryMetrics(n)).plus(b) for n, b in parts.items()},
        )

    def ended(self, error: str | None) -> Self:
        """Return the metrics of a query that has ended."""
        return replace(self, is_active=False, error=error)

    @property
    def rows_per_second(self) -> float:
        """Rows for each second of the micro-batches, not of the time between them."""
        return _rate(self.counters.rows, self.seconds)


def _added_up(texts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Return counters of user code, which each shard has told as JSON."""
    total = Counter[str]()
    for text in texts:
        total.update(json.loads(text))
    return tuple(sorted(total.items()))


def _by_name(row: Row) -> dict[str, Any]:
    values = row.asDict()
    if values.keys() == {"values", "schema"}:  # a report that Connect's client asked for is JSON
        names = (field["name"] for field in values["schema"]["fields"])
        return dict(zip(names, values["values"], strict=True))
    return values


def _rate(rows: int, seconds: float) -> float:
    return rows / seconds if seconds else 0.0


def _instant(ticks: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=ticks)
    except OverflowError:  # no year of four digits
        return None


def _watermark(text: str | None) -> datetime | None:
    """Read Spark's watermark, which is 1970 while there is none."""
    if text is None:
        return None
    time = datetime.fromisoformat(text).astimezone(UTC)
    return time if time.timestamp() > 0 else None
