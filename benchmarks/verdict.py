"""What a benchmark of streams says below its table: targets, processor time, state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.measure import Measurement
from benchmarks.report import OWN

_PEER = "spark"
_REACHED = {True: "reached", False: "missed"}


@dataclass(frozen=True)
class Target:
    """What is aimed at.

    Parameters
    ----------
    of_spark : float
        Rows a second over Spark's.
    rows_a_second : int, optional
    """

    of_spark: float
    rows_a_second: int | None = None


def verdict(target: Target, measurements: Sequence[Measurement]) -> list[str]:
    """Compare our contestant with the target and with Spark."""
    by_name = {m.contestant: m for m in measurements}
    own, peer = by_name.get(OWN), by_name.get(_PEER)
    lines = []
    if own and peer:
        ratio = peer.median / own.median
        lines.append(
            f"{ratio:.2f} times {_PEER}'s rows a second, target {target.of_spark:g}: "
            f"{_REACHED[ratio >= target.of_spark]}"
        )
    if own and target.rows_a_second:
        rate = own.details["rows_a_second"]
        lines.append(
            f"{rate:,.0f} rows a second, target {target.rows_a_second:,}: "
            f"{_REACHED[rate >= target.rows_a_second]}"
        )
    windows = peer.details["state_rows"] if peer else None
    return [*lines, *(_costs(m, windows) for m in measurements)]


def _costs(m: Measurement, windows: int | None) -> str:
    """Say what a contestant takes; ``windows`` are those of all keys that are in state."""
    seen = m.details
    each = f", {seen['state_live_bytes'] / windows:.1f} bytes a key and window" if windows else ""
    return (
        f"{m.contestant}: {seen['cpu_s']:.2f} s of processors a micro-batch; "
        f"state of {seen['state_live_bytes'] / 1e6:.1f} MB in files once compacted{each}; "
        f"RocksDB held up to {seen['state_held_bytes'] / 1e6:.1f} MB"
    )
