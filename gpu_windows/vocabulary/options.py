"""Durations and the options of a query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Literal, get_args

from gpu_windows.errors import InvalidDurationError, InvalidOptionError, did_you_mean

#: Ticks (microseconds, the unit of Spark's TIMESTAMP) in each unit of time.
TICKS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_ABBREVIATIONS = {
    "us": "microsecond",
    "ms": "millisecond",
    "s": "second",
    "min": "minute",
    "h": "hour",
    "d": "day",
}
#: Words that are mistaken for units, with hints.
_NO_LENGTH = "months, quarters and years have no fixed length: write days, or CalendarWindows"
_NOT_UNITS = {
    "month": _NO_LENGTH,
    "quarter": _NO_LENGTH,
    "year": _NO_LENGTH,
    "yr": _NO_LENGTH,
    "mo": _NO_LENGTH,
    "mon": _NO_LENGTH,
    "mth": _NO_LENGTH,
    "qtr": _NO_LENGTH,
    "m": "m may be minutes or months: write min",
}
_OTHER_UNITS = {"hr": "h", "msec": "ms", "usec": "us", "μs": "us", "dy": "d", "wk": "weeks"}
_PART = re.compile(r"\s*([+-]?\d+)\s*([a-zA-Z]+)\s*")

#: Upper bound of the number of shards.
MAX_SHARDS = 1 << 16
#: Upper bound of the number of threads.
MAX_THREADS = 1 << 10

Duration = timedelta | str
Device = Literal["auto", "cpu", "cuda"]
Partials = Literal["auto", "kernels", "spark"]
Engine = Literal["auto", "reference"]


def is_whole(value: object) -> bool:
    """Whether a value is an integer; a bool is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def ticks(duration: Duration) -> int:
    """Convert a duration to ticks (microseconds).

    Parameters
    ----------
    duration : datetime.timedelta or str
        A string is one or several of ``<integer> <unit>``: ``"1 minute"``,
        ``"1 hour 30 minutes"``, ``"-250 ms"``. Units: microseconds (us), milliseconds (ms),
        seconds (s), minutes (min), hours (h), days (d), weeks. Months and years have no fixed
        length and are refused, as in Flink.

    Raises
    ------
    InvalidDurationError
        If it is neither, or names an unknown unit.
    """
    if isinstance(duration, timedelta):
        if getattr(duration, "nanoseconds", 0):  # those of pandas have some
            rule = "a duration is a whole number of microseconds"
            raise InvalidDurationError(rule, value=repr(duration))
        return duration // timedelta(microseconds=1)
    if not isinstance(duration, str):
        rule = "a duration must be a datetime.timedelta or a string such as '5 minutes'"
        raise InvalidDurationError(rule, value=repr(duration))
    total, position = 0, 0
    while position < len(duration):
        part = _PART.match(duration, position)
        if part is None:
            break
        total += int(part[1]) * _unit(part[2], duration)
        position = part.end()
    if position == 0 or position < len(duration):
        rule = "a duration must read '<integer> <unit>', such as '5 minutes'"
        raise InvalidDurationError(rule, value=repr(duration))
    return total


def _unit(word: str, duration: str) -> int:
    name = _ABBREVIATIONS.get(word, word.lower().removesuffix("s"))
    if name not in TICKS:
        rule = f"a unit of time must be one of {', '.join(TICKS)}, or {', '.join(_ABBREVIATIONS)}"
        if name in _NOT_UNITS:
            rule = f"{rule}; {_NOT_UNITS[name]}"
        elif unit := _find_unit(name):
            rule = f"{rule}: did you mean {unit} for {word}"
        raise InvalidDurationError(rule, value=repr(duration))
    return TICKS[name]


def _find_unit(word: str) -> str | None:
    """Return the unit that begins with a word, or one that is written almost like it."""
    if word in _OTHER_UNITS:
        return _OTHER_UNITS[word]
    begins = [unit for unit in TICKS if len(word) > 1 and unit.startswith(word)]
    near = begins or get_close_matches(word, TICKS, 1, 0.7)
    return f"{near[0]}s" if near else None


def show_ticks(value: int) -> str:
    """Write ticks (microseconds) as a duration: ``90_000_000`` is ``'1 min 30 s'``."""
    if value == 0:
        return "0 s"
    sign, rest, parts = "-" if value < 0 else "", abs(value), []
    for short in ("d", "h", "min", "s", "ms", "us"):
        count, rest = divmod(rest, TICKS[_ABBREVIATIONS[short]])
        if count:
            parts.append(f"{sign}{count} {short}")
    return " ".join(parts)


@dataclass(frozen=True)
class Options:
    """How a query is executed; no option changes its result.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        Which kernels the executors call. ``"auto"``: CUDA where the task has a usable device
        and the batch is large enough for the transfer, else CPU; logged and counted, never
        silent. A Spark task has the GPU that Spark assigned to it, or one that
        ``CUDA_VISIBLE_DEVICES`` names, else none. ``"cuda"``: a device is used, assigned or not;
        `DeviceUnavailableError` if there is none, `UnsupportedQueryError` for a query that no
        kernel of a device runs (docs/strategies.md).
    partials : {"auto", "kernels", "spark"}
        Who makes the partial aggregates of slices on Spark batch: our kernels, to which every
        row crosses, or Spark's own aggregation, so that only partials cross. Same results.
        ``"auto"``: Spark where it can if nothing crosses then, or if rows cross slowly
        (`gpu_windows.configure`).
    engine : {"auto", "reference"}
        ``"reference"``: row at a time in plain Python, for windows and patterns; slow.
        `UnsupportedQueryError` for OVER, interval and temporal joins and a top of keys.
        ``"auto"``: the planner's choice.
    shards : int, optional
        Number of shards of the keys on Spark: a worker holds one shard at a time (several, while
        they are small). Default: four times ``spark.sql.shuffle.partitions``.
    batch_rows : int, optional
        Rows gathered before a kernel is called. Default: 131,072 on a CPU, 8,388,608 on a GPU,
        where a call costs its launches and transfers however few its rows are.
    threads : int, optional
        Threads in which CPU kernels run. Default: locally one for each core that this process may
        use, in a Spark task ``spark.task.cpus``.

    Examples
    --------
    >>> users = gw.stream(pa.table({"user": ["ann", "ann"]})).key_by("user")
    >>> on_cpu = users.count_window(2).options(device="cpu", threads=1)
    >>> on_cpu.aggregate(n=gw.count())["n"].to_pylist()
    [2]
    """

    device: Device = "auto"
    partials: Partials = "auto"
    engine: Engine = "auto"
    shards: int | None = None
    batch_rows: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        _one_of("device", self.device, get_args(Device))
        _one_of("partials", self.partials, get_args(Partials))
        _one_of("engine", self.engine, get_args(Engine))
        for name in ("shards", "batch_rows", "threads"):
            value = getattr(self, name)
            if value is not None and not is_whole(value):
                raise InvalidOptionError(f"{name} must be a whole number", value=repr(value))
        if self.shards is not None and not 0 < self.shards <= MAX_SHARDS:
            raise InvalidOptionError(f"shards must be in 1..{MAX_SHARDS}", value=self.shards)
        if self.batch_rows is not None and self.batch_rows <= 0:
            raise InvalidOptionError("batch_rows must be positive", value=self.batch_rows)
        if self.threads is not None and not 0 < self.threads <= MAX_THREADS:
            raise InvalidOptionError(f"threads must be in 1..{MAX_THREADS}", value=self.threads)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidOptionError(f"{name} must be one of {', '.join(allowed)}", value=repr(value))


def change_options(options: Options, changes: Mapping[str, Any]) -> Options:
    """Return options with some of them changed.

    Raises
    ------
    InvalidOptionError
        If there is no such option, or it does not take the value.
    """
    unknown = [name for name in changes if name not in vars(options)]
    if unknown:
        hint = did_you_mean(unknown[0], vars(options))
        rule = f"options are {', '.join(vars(options))}{hint}"
        raise InvalidOptionError(rule, value=", ".join(unknown))
    return replace(options, **changes)
