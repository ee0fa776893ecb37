"""What a benchmark is: contestants, each a piece of work over the same data."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.data import DataSet
from gpu_windows.vocabulary.options import show_ticks, ticks

if TYPE_CHECKING:
    from benchmarks.measure import Measurement
    from benchmarks.stage import Stage

#: Contestants that ``--peers`` chooses from; every other one takes part in any case.
PEERS = ("spark", "polars", "duckdb", "identity")


@dataclass(frozen=True)
class Window:
    """Size and slide of the windows, in microseconds."""

    size: int
    slide: int

    @classmethod
    def of(cls, size: str, slide: str | None = None) -> Window:
        """Read durations such as ``"60 minutes"``; without a slide the windows tumble."""
        return cls(ticks(size), ticks(size if slide is None else slide))

    def __post_init__(self) -> None:
        if not 0 < self.slide <= self.size:
            message = f"slide must be positive and not greater than size, got {self.describe()}"
            raise ValueError(message)

    @property
    def tumbles(self) -> bool:
        """Whether every row is in one window only."""
        return self.size == self.slide

    @property
    def size_delta(self) -> timedelta:
        """Size as a `datetime.timedelta`."""
        return timedelta(microseconds=self.size)

    @property
    def slide_delta(self) -> timedelta:
        """Slide as a `datetime.timedelta`."""
        return timedelta(microseconds=self.slide)

    def describe(self) -> str:
        """Return size and slide in words."""
        size = show_ticks(self.size)
        return (
            f"{size} windows" if self.tumbles else f"{size} windows every {show_ticks(self.slide)}"
        )


@dataclass(frozen=True)
class Work:
    """A contestant that is ready to run.

    Parameters
    ----------
    measure : callable
        Runs once and returns the seconds that it took.
    window : Window
        Contestants with the same window must have the same result.
    result : callable, optional
        Returns the answer as `benchmarks.equality` compares it; None where there is none.
    floor : bool
        Whether it computes nothing and only shows what cannot be undercut.
    details : callable
        Is called after the last run, with the numbers, from 0 on, of the runs that count, and
        returns what else was measured, as JSON can hold it.
    warm : callable, optional
        Does the same work on data of its own until it has worked for so many seconds.
    """

    measure: Callable[[], float]
    window: Window
    result: Callable[[], pa.Table] | None = None
    floor: bool = False
    details: Callable[[Sequence[int]], Mapping[str, Any]] = field(default=lambda _: {})
    warm: Callable[[float], None] | None = None


Factory = Callable[["Stage"], Work]


@dataclass(frozen=True)
class Benchmark:
    """A named set of contestants.

    Parameters
    ----------
    name, about : str
        As the command line shows them.
    size, slide : str
        The default windows; without a slide they tumble.
    contestants : mapping of str to callable
        Name to `Factory`. Those named in `PEERS` run when asked for; a suffix in brackets
        (``spark[10 min]``) does not count for that.
    peers : tuple of str
        The peers that take part unless ``--peers`` says otherwise.
    rows, keys : int
        The default size of the data set.
    warmups, repeats : int
        Runs before the ones that count, and by default of those that count.
    warm_seconds : float
        Seconds that each contestant works before that, see `Work.warm`: a JVM takes minutes to
        compile what it then runs for days.
    in_a_row : int
        Runs in one turn, see `benchmarks.measure.race`.
    summary : callable, optional
        Further lines below the table, made of the measurements.
    columns : callable, optional
        What the table says of a measurement, heading to text, in place of times and ratio.
    data : type
        The kind of data set.
    checks_runs : bool
        Whether results are those of the very runs that were timed, so compared after them.
    period : float, optional
        Seconds from the begin of a run to that of the next, where runs come at a steady rate.
    """

    name: str
    about: str
    size: str
    contestants: Mapping[str, Factory]
    slide: str | None = None
    peers: tuple[str, ...] = ()
    rows: int = 10_000_000
    keys: int = 1_000
    warmups: int = 1
    repeats: int = 3
    warm_seconds: float = 0.0
    in_a_row: int = 1
    summary: Callable[[Sequence[Measurement]], Sequence[str]] = field(default=lambda _: ())
    columns: Callable[[Measurement], Mapping[str, str]] | None = None
    data: type[DataSet] = DataSet
    checks_runs: bool = False
    period: float | None = None

    @property
    def names(self) -> frozenset[str]:
        """Names of the contestants, without the suffix in brackets."""
        return frozenset(map(base_name, self.contestants))

    def chosen(
        self, peers: Sequence[str], without: Sequence[str] = (), only: Sequence[str] = ()
    ) -> dict[str, Factory]:
        """Return the contestants that take part, in the benchmark's order.

        Parameters
        ----------
        peers, without : sequence of str
            Names: peers that take part; whoever does not.
        only : sequence of str
            Words of names: who has all words of one of these takes part, no other.

        Raises
        ------
        ValueError
            If one of ``only`` is of no contestant.
        """
        wanted = {name for text in only for name in self._with_words(text)}
        return {
            name: factory
            for name, factory in self.contestants.items()
            if (base_name(name) not in PEERS or base_name(name) in peers)
            and name not in without
            and base_name(name) not in without
            and (name in wanted or not only)
        }

    def _with_words(self, text: str) -> list[str]:
        found = [name for name in self.contestants if words(text) <= words(name)]
        if not found:
            message = f"{self.name} has no contestant with {text!r} in its name"
            raise ValueError(message)
        return found


def base_name(name: str) -> str:
    """Return the name of a contestant without the suffix in brackets."""
    return name.partition("[")[0]


def words(name: str) -> frozenset[str]:
    """Return the words of a name, those of the suffix in brackets too."""
    return frozenset(re.findall(r"[^\[\], ]+", name))


def stopwatch(run: Callable[[], object]) -> Callable[[], float]:
    """Return a function that calls ``run`` and returns the seconds that it took."""

    def measure() -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return measure
