"""What is aimed at on a GPU, and whether the results reach it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.gpu.drive import Outcome, Row

#: Spans of windows over which combining must take the same time.
_COMBINED = ("combine, span 10", "combine, span 1,000", "combine, span 100,000")
_OF_COPY, _OF_HOST = "share_of_copy", "share_of_host_copy"


@dataclass(frozen=True)
class Target:
    """A number that is aimed at.

    Parameters
    ----------
    name : str
    measure : str
        What the number is.
    wanted : float
    find : callable
        Gives the number and the rows of the input, of all measurements; None if it was not
        measured.
    most : bool
        Whether the number is to be at most what is wanted, else at least.
    """

    name: str
    measure: str
    wanted: float
    find: Callable[[Sequence[Row]], tuple[float, int] | None]
    most: bool = False


@dataclass(frozen=True)
class Verdict:
    """What became of a target.

    Parameters
    ----------
    target : Target
    found : float, optional
    rows : int
        Of the input, of the largest that was measured.
    """

    target: Target
    found: float | None
    rows: int

    @property
    def word(self) -> str:
        """Return "reached", "missed" or "not measured"."""
        if self.found is None:
            return "not measured"
        far = self.found - self.target.wanted
        return "reached" if (far <= 0 if self.target.most else far >= 0) else "missed"

    @property
    def wanted(self) -> str:
        """Return what is aimed at, in words."""
        return f"at {'most' if self.target.most else 'least'} {self.target.wanted:g}"


def _largest(what: str, field: str) -> Callable[[Sequence[Row]], tuple[float, int] | None]:
    """Return what finds a number at the most rows for which it was measured."""

    def find(rows: Sequence[Row]) -> tuple[float, int] | None:
        found = [(row["rows"], row[field]) for row in rows if row["what"] == what and field in row]
        return max(found)[::-1] if found else None

    return find


def _least_combined(rows: Sequence[Row]) -> tuple[float, int] | None:
    found = [_largest(what, _OF_COPY)(rows) for what in _COMBINED]
    return min(each for each in found if each) if all(found) else None


def _spread(rows: Sequence[Row]) -> tuple[float, int] | None:
    """Return the longest over the shortest time, at the most rows that all spans have."""
    times = [{r["rows"]: r["device_s"] for r in rows if r["what"] == what and "device_s" in r}
             for what in _COMBINED]  # fmt: skip
    common = set.intersection(*map(set, times))
    if not common:
        return None
    each = [by_rows[max(common)] for by_rows in times]
    return max(each) / min(each), max(common)


_COPY, _PCIE = "of the device copy's rate", "of the rate from pinned memory to the device"
TARGETS = (
    Target("assign", _COPY, 0.80, _largest("assign", _OF_COPY)),
    Target("slices, int64", _COPY, 0.25, _largest("slices, int64", _OF_COPY)),
    Target("slices, float64", _COPY, 0.25, _largest("slices, float64", _OF_COPY)),
    Target("combine, all spans", _COPY, 0.50, _least_combined),
    Target("combine, spread", "longest over shortest time", 1.2, _spread, most=True),
    Target("join: sort, bounds, pairs", _COPY, 0.15, _largest("join", _OF_COPY)),
    Target("Arrow to Arrow", _PCIE, 0.60, _largest("Arrow to Arrow, tumbling", _OF_HOST)),
)


def judge(outcomes: Sequence[Outcome]) -> list[Verdict]:
    """Return what became of every target."""
    rows = [row for outcome in outcomes for row in outcome.rows]
    found = [(target, target.find(rows)) for target in TARGETS]
    return [Verdict(target, *(number or (None, 0))) for target, number in found]


def as_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return a line a target, with the number."""
    return [f"{v.word:>12}  {v.target.name}: {_number(v)}" for v in verdicts]


def _number(verdict: Verdict) -> str:
    if verdict.found is None:
        return verdict.wanted
    told = f"{verdict.found:.2f} {verdict.target.measure}, {verdict.wanted}"
    return f"{told} ({verdict.rows:,} rows)"
