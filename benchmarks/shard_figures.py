"""What micro-batches of a shard took, put together, and compared with what is aimed at."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.measure import Measurement
from benchmarks.shard_counts import OPERATIONS, PHASES, Operation
from benchmarks.shard_work import Cost

#: Bytes of a micro-batch that any state may take: what says how it lies.
ALLOWANCE = 64_000
#: Bytes written for each byte of the entries touched.
WRITTEN = 4
#: Bytes read for each key touched, of state that cannot be added to unread.
A_KEY = 16_000
#: The last quarter of the micro-batches over the first one that counts as flat: medians of bytes,
#: for a compaction that comes once is no growth.
FLAT = 1.25


@dataclass(frozen=True)
class Check:
    """A figure and the most that it should be.

    Parameters
    ----------
    what : str
    found, most : float
    unit : str
        Behind the figures.
    """

    what: str
    found: float
    most: float
    unit: str = "kB"

    @property
    def reached(self) -> bool:
        """Whether it is not more."""
        return self.found <= self.most

    def line(self) -> str:
        """Return it in words."""
        verdict = "reached" if self.reached else "missed"
        return f"{self.what} {self.found:,.2f} {self.unit}, at most {self.most:,.2f}: {verdict}"

    def row(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {**asdict(self), "reached": self.reached}


@dataclass(frozen=True)
class Course:
    """What a shard took from its first micro-batch to the end of time.

    Parameters
    ----------
    fill, end : Cost
        Of the micro-batch that fills the state, and of the end of time.
    costs : sequence of Cost
        Of the micro-batches between, one at least.
    live_bytes, file_bytes : int
        Bytes of all live blobs before the end of time, and of the files that hold them.
    """

    fill: Cost
    costs: Sequence[Cost]
    end: Cost
    live_bytes: int
    file_bytes: int

    @property
    def cpu_s(self) -> float:
        """Processor seconds of a micro-batch between fill and end, the mean."""
        return _mean([cost.cpu_s for cost in self.costs])

    def checks(self, *, mergeable: bool, flat: bool) -> Iterator[Check]:
        """Compare with the targets: of state that can be added to unread; of what must be flat."""
        touched = _mean([cost.touched_bytes for cost in self.costs])
        most = WRITTEN * touched + ALLOWANCE
        yield Check("written", _mean(self._bytes("write")) / 1e3, most / 1e3)
        if mergeable:
            unread = _mean([cost.traffic.read_while("taking") for cost in self.costs])
            rest = _mean(self._bytes("read")) - unread
            yield Check("read while rows are taken", unread / 1e3, 0.0)
            yield Check("read otherwise", rest / 1e3, most / 1e3)
        else:
            keys = _mean([cost.touched_keys for cost in self.costs])
            read = _mean(self._bytes("read"))
            yield Check("read", read / 1e3, (A_KEY * keys + ALLOWANCE) / 1e3)
        if flat:
            yield Check("last quarter", self.growth, FLAT, "times the bytes of the first")

    @property
    def growth(self) -> float:
        """Median bytes of the last quarter of the micro-batches over that of the first one."""
        both = [sum(pair) for pair in zip(self._bytes("read"), self._bytes("write"), strict=True)]
        quarter = max(1, len(both) // 4)
        return statistics.median(both[-quarter:]) / max(statistics.median(both[:quarter]), 1.0)

    def details(self) -> dict[str, Any]:
        """Return all figures as JSON can hold them; bytes and calls are those of a micro-batch."""
        costs = self.costs
        return {
            "micro_batches": len(costs),
            "keys_touched": _mean([cost.touched_keys for cost in costs]),
            "touched_bytes": _mean([cost.touched_bytes for cost in costs]),
            "cpu_s": _spread([cost.cpu_s for cost in costs]),
            "written_bytes": _spread(self._bytes("write")),
            "read_bytes": _spread(self._bytes("read")),
            "read_bytes_while": {
                phase: _mean([cost.traffic.read_while(phase) for cost in costs]) for phase in PHASES
            },
            "calls": {o: _mean([c.traffic.calls_of(o) for c in costs]) for o in OPERATIONS},
            "tables": {table: _of_table(costs, table) for table in sorted(self._tables)},
            "growth": self.growth,
            "live_bytes": self.live_bytes,
            "file_bytes": self.file_bytes,
            "results": sum(cost.results for cost in costs),
            "fill": _once(self.fill),
            "end": _once(self.end),
        }

    @property
    def _tables(self) -> frozenset[str]:
        return frozenset().union(*(cost.traffic.tables for cost in self.costs))

    def _bytes(self, operation: Operation) -> list[int]:
        return [cost.traffic.bytes_of(operation) for cost in self.costs]


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values)


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "max": max(values), "mean": _mean(values)}


def _of_table(costs: Sequence[Cost], table: str) -> dict[str, float]:
    """Return calls and bytes of a table in a micro-batch."""
    calls = {f"{o}_calls": _mean([c.traffic.calls_of(o, table) for c in costs]) for o in OPERATIONS}
    read, written = (
        _mean([c.traffic.bytes_of(o, table) for c in costs]) for o in ("read", "write")
    )
    return {**calls, "read_bytes": read, "written_bytes": written}


def _once(cost: Cost) -> dict[str, float]:
    traffic = cost.traffic
    return {
        "cpu_s": cost.cpu_s,
        "results": cost.results,
        "read_bytes": traffic.bytes_of("read"),
        "written_bytes": traffic.bytes_of("write"),
    }


# ---- as text


def columns(m: Measurement) -> dict[str, str]:
    """Return the columns of the table: bytes and calls are those of a micro-batch."""
    details: Mapping[str, Any] = m.details
    missed = [check["what"] for check in details["checks"] if not check["reached"]]
    return {
        "batches": f"{details['micro_batches']:,}",
        "CPU ms": f"{details['cpu_s']['mean'] * 1e3:,.1f}",
        "touched kB": f"{details['touched_bytes'] / 1e3:,.1f}",
        "written kB: mean, median, most": _kilobytes(details["written_bytes"]),
        "read kB: mean, median, most": _kilobytes(details["read_bytes"]),
        "calls: read, write, remove": " ".join(f"{n:,.1f}" for n in details["calls"].values()),
        "fill s": f"{details['fill']['cpu_s']:,.2f}",
        "end s": f"{details['end']['cpu_s']:,.2f}",
        "missed": str(len(missed)) if missed else "",
    }


def _kilobytes(spread: Mapping[str, float]) -> str:
    return " ".join(f"{spread[name] / 1e3:,.1f}" for name in ("mean", "median", "max"))


def verdicts(measurements: Sequence[Measurement]) -> list[str]:
    """Return a line for each target of each contestant, and how many were missed."""
    lines, reached = [], []
    for m in measurements:
        for row in m.details["checks"]:
            check = Check(**{name: row[name] for name in ("what", "found", "most", "unit")})
            lines.append(f"{m.contestant}: {check.line()}")
            reached.append(check.reached)
    return [*lines, f"{reached.count(False)} of {len(reached)} targets missed"]
