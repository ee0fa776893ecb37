"""What a benchmark says below its table: targets, and of streams processor time and state."""

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
    entry : str
        What Spark's state has an entry for.
    """

    of_spark: float
    rows_a_second: int | None = None
    entry: str = "key and window"


def faster(
    own: str, peer: str, least: float | None, measurements: Sequence[Measurement]
) -> list[str]:
    """Compare two contestants, where both took part, with the ratio that is aimed at."""
    medians = {m.contestant: m.median for m in measurements}
    if not {own, peer} <= medians.keys():
        return []
    ratio = medians[peer] / medians[own]
    name = "" if own == OWN else f"{own}: "
    aim = "" if least is None else f", target {least:g}: {_REACHED[ratio >= least]}"
    return [f"{name}{ratio:.2f} times {peer}'s rows a second{aim}"]


def verdict(target: Target, measurements: Sequence[Measurement]) -> list[str]:
    """Compare our contestant, of a stream, with the target and with Spark."""
    by_name = {m.contestant: m for m in measurements}
    own, peer = by_name.get(OWN), by_name.get(_PEER)
    lines = faster(OWN, _PEER, target.of_spark, measurements)
    if own and target.rows_a_second:
        rate = own.details["rows_a_second"]
        lines.append(
            f"{rate:,.0f} rows a second, target {target.rows_a_second:,}: "
            f"{_REACHED[rate >= target.rows_a_second]}"
        )
    entries = peer.details["state_rows"] if peer else None
    return [*lines, *(_costs(m, entries, target.entry) for m in measurements)]


def _costs(m: Measurement, entries: int | None, entry: str) -> str:
    """Say what a contestant takes; ``entries`` are those of Spark's state."""
    details = m.details
    live, held = (details[f"state_{kind}_bytes"] / 1e6 for kind in ("live", "held"))
    each = f", {details['state_live_bytes'] / entries:.1f} bytes a {entry}" if entries else ""
    texts = f"live state of {live:.1f} MB{each}", f"state files had up to {held:.1f} MB"
    if details.get("state_in") != "files":  # of results that are older ours was there, too
        compacted = f"state of {live:.1f} MB in files once compacted{each}"
        texts = compacted, f"RocksDB held up to {held:.1f} MB"
    cpu = f"{details['cpu_s']:.2f} s of processors a micro-batch"
    return f"{m.contestant}: {'; '.join((cpu, *texts))}"
