"""Metrics of the micro-batches of streaming queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from gpu_windows.operators.counters import Counters
from gpu_windows.rules import LONG_MIN
from gpu_windows.vocabulary.watermarks import CombinedWatermark

_US_A_MS = 1_000


@dataclass(frozen=True)
class HeldWatermark:
    """The watermark after a micro-batch, and the input that it waits for.

    Parameters
    ----------
    watermark : datetime, optional
        In UTC; None before the first one.
    input : int, optional
        Its number among those of a union or a join, in order, from 1; None if all are idle.
    since : datetime, optional
        Of the micro-batch since which the watermark is there, or all inputs are idle; in UTC.
    """

    watermark: datetime | None
    input: int | None
    since: datetime | None

    @classmethod
    def of(cls, combined: CombinedWatermark) -> Self:
        """Return the watermark and its holder after a micro-batch."""
        holder = combined.holder
        return cls(
            None if combined.watermark == LONG_MIN else instant(combined.watermark),
            None if holder is None else holder + 1,
            instant(
                (combined.moved_at if combined.idle_since is None else combined.idle_since)
                * _US_A_MS
            ),
        )

    def __str__(self) -> str:
        holder = "all inputs idle" if self.input is None else f"held by input {self.input}"
        return holder if self.since is None else f"{holder} since {self.since:%Y-%m-%d %H:%M:%S}"


@dataclass(frozen=True)
class BatchMetrics:
    """Metrics of a micro-batch.

    Parameters
    ----------
    number : int
        Of the micro-batch, as the sink is given it.
    seconds : float
        From its start to its commit.
    watermark : datetime, optional
        After the micro-batch, in UTC; None before the first one.
    counters : gpu_windows.operators.base.Counters
        Rows, late ones, fired windows and so on, calls of kernels by back end, fallbacks, and those
        of user code.
    shards : int
        All of them run in every micro-batch.
    kernel_ms : float
        Milliseconds in their operators, added up: kernels and what prepares them.
    state_ms : float
        Milliseconds in reading and writing their state, added up.
    state_rows, state_bytes : int
        Entries (slices, windows, stored rows) and bytes of state that they hold.
    device : str
        Where kernels ran: ``cpu``, ``cuda``, ``cpu+cuda``; empty if none ran.
    held : HeldWatermark, optional
        Which input holds the watermark, where there are several, or one may be idle.
    stages : mapping of str to BatchMetrics
        Metrics of earlier stages, by name; the rest is of the last stage.
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
    device: str
    held: HeldWatermark | None = None
    stages: Mapping[str, BatchMetrics] = field(default_factory=dict)

    @property
    def as_json(self) -> dict[str, Any]:
        """The metrics as JSON; `from_json` reads it."""
        holder = self.held
        return {
            **asdict(replace(self, stages={})),
            "watermark": _to_text(self.watermark),
            "held": holder and [_to_text(holder.watermark), holder.input, _to_text(holder.since)],
            "stages": {name: each.as_json for name, each in self.stages.items()},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read what `as_json` returned."""
        counters, holder = found["counters"], found["held"]
        values = {
            "watermark": _from_text(found["watermark"]),
            "counters": Counters(**{**counters, "user": tuple(map(tuple, counters["user"]))}),
            "held": holder
            and HeldWatermark(_from_text(holder[0]), holder[1], _from_text(holder[2])),
            "stages": {name: cls.from_json(each) for name, each in found["stages"].items()},
        }
        return cls(**{**found, **values})

    @property
    def rows_per_second(self) -> float:
        """Rows for each second of the micro-batch."""
        return _rate(self.counters.rows, self.seconds)


@dataclass(frozen=True)
class QueryMetrics:
    """Metrics of a query: sums over the micro-batches that were seen.

    Parameters
    ----------
    name : str
        Of the query; its id if it has none.
    batches : int
        Micro-batches seen.
    counters : gpu_windows.operators.base.Counters
        Sums over them, as are ``kernel_ms``, ``state_ms`` and ``seconds``.
    state_rows, state_bytes : int
        Entries and bytes of state that all shards hold.
    last : BatchMetrics, optional
        The latest.
    is_active : bool
        Whether the query runs.
    error : str, optional
        Why it ended.
    stages : mapping of str to QueryMetrics
        Metrics of earlier stages, by name; the rest is of the last stage.
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
        """Return the metrics with a further micro-batch."""
        parts = batch.stages
        return replace(
            self,
            batches=self.batches + 1,
            counters=self.counters + batch.counters,
            kernel_ms=self.kernel_ms + batch.kernel_ms,
            state_ms=self.state_ms + batch.state_ms,
            seconds=self.seconds + batch.seconds,
            state_rows=batch.state_rows,
            state_bytes=batch.state_bytes,
            last=batch,
            stages={n: (self.stages.get(n) or QueryMetrics(n)).plus(b) for n, b in parts.items()},
        )

    def end(self, error: str | None) -> Self:
        """Return the metrics of a query that has ended."""
        return replace(self, is_active=False, error=error)

    @property
    def rows_per_second(self) -> float:
        """Rows for each second of the micro-batches, not of the time between them."""
        return _rate(self.counters.rows, self.seconds)


def _rate(rows: int, seconds: float) -> float:
    return rows / seconds if seconds else 0.0


def instant(ticks: int) -> datetime | None:
    """Return a time in ticks as a datetime in UTC; None if its year has not four digits."""
    try:
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=ticks)
    except OverflowError:
        return None


def _to_text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _from_text(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
