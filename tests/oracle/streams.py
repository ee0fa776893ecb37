"""Random input of scenarios: out of order, late, tied, on the bounds of windows."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Element = dict[str, Any]
Side = str | None


@dataclass(frozen=True)
class Shape:
    """What a stream shall have.

    Parameters
    ----------
    records : int
    step_ms : int
        Half of the longest time between two records.
    grid_ms : int
        Windows begin and end at its multiples, which records and watermarks hit on purpose.
    sides : bool
        Whether there are two inputs.
    clock : bool
        Whether the clock is set between records.
    watermarks : bool
    value : callable, optional
        Values; default: multiples of 1/4, so that sums are exact in any order.
    echoes : sequence of int
        Distances to an earlier record, hit on purpose.
    origin : int, optional
        About the first timestamp; default: any.
    restarts : bool
        Whether the operator is stopped and restored between records.
    """

    records: int
    step_ms: int
    grid_ms: int
    sides: bool = False
    clock: bool = False
    watermarks: bool = True
    value: Callable[[], float] | None = None
    echoes: Sequence[int] = (0,)
    origin: int | None = None
    restarts: bool = False


def stream(rng: random.Random, shape: Shape) -> list[Element]:
    """Return random elements in their order of arrival."""
    return _Stream(rng, shape).elements


def around(*distances: int) -> tuple[int, ...]:
    """Return these distances exactly and 1 ms off, both ways, and 0."""
    return (0, *(s * d + off for d in distances for s in (1, -1) for off in (-1, 0, 1)))


def number(value: float) -> float:
    """Return whole numbers without a fraction, as in the golden files."""
    return int(value) if value == int(value) else value


class _Stream:
    def __init__(self, rng: random.Random, shape: Shape) -> None:
        self.elements: list[Element] = []
        self._rng, self._shape = rng, shape
        self._timestamps: list[int] = []
        sides: tuple[Side, ...] = ("left", "right") if shape.sides else (None,)
        self._newest: dict[Side, int | None] = dict.fromkeys(sides)
        self._disorder = rng.choice([0, 500, 2500, 8000])
        self._late_share, self._late_by = rng.choice([0, 0.05, 0.2]), rng.choice([3000, 20_000])
        self._echo_share = rng.choice([0, 0.1, 0.5] if shape.echoes == (0,) else [0.1, 0.3])
        self._lag = rng.choice([0, 0, 500, 1500, 5000])
        habits = ["random", "random", "batch", "batch", "every", "none"]
        self._habit = rng.choice(habits if shape.watermarks else ["none"])
        self._batch = rng.choice([3, 10, 25, 60])
        keys = rng.choice([1, 2, 3] if shape.sides else [1, 2, 3, 5, 8])
        self._keys = [f"k{i}" for i in range(keys)]
        self._fill()

    def _fill(self) -> None:
        rng, shape = self._rng, self._shape
        time = rng.choice([0, 0, -60_000, -1_234_567, 1_700_000_000_000])
        if shape.origin is not None:
            time = shape.origin
        now = 0
        for index in range(shape.records):
            time += rng.randint(0, 2 * shape.step_ms)
            if rng.random() < 0.02:  # a pause
                time += shape.step_ms * rng.randint(5, 40)
            if shape.clock and rng.random() < 0.35:
                now += rng.choice([0, 1, 499, 1000, rng.randint(1, 3000)])
                self.elements.append({"processing_time": now})
            if shape.restarts and rng.random() < 0.08:
                self.elements.append({"restart": True})
            self._record(time)
            if self._is_due(index):
                self._watermark()
        if shape.clock and rng.random() < 0.7:
            self.elements.append({"processing_time": now + 20_000})

    def _record(self, time: int) -> None:
        rng, shape = self._rng, self._shape
        ts = time - rng.randint(0, self._disorder)
        if rng.random() < self._late_share:
            ts -= self._disorder + rng.randint(0, self._late_by)
        if rng.random() < 0.2:  # on the bound of a window, or 1 ms before
            ts = ts // shape.grid_ms * shape.grid_ms - rng.randint(0, 1)
        if self._timestamps and rng.random() < self._echo_share:
            ts = rng.choice(self._timestamps[-5:]) + rng.choice(shape.echoes)
        self._timestamps.append(ts)
        side = rng.choice(["left", "right"]) if shape.sides else None
        value = rng.randint(-40, 360) / 4 if shape.value is None else shape.value()
        record = {"key": rng.choice(self._keys), "ts": ts, "value": number(value)}
        self.elements.append(record if side is None else {"side": side, **record})
        newest = self._newest[side]
        self._newest[side] = ts if newest is None else max(ts, newest)

    def _is_due(self, index: int) -> bool:
        if self._habit == "random":
            return self._rng.random() < 0.25
        return self._habit == "every" or (
            self._habit == "batch" and index % self._batch == self._batch - 1
        )

    def _watermark(self) -> None:
        rng = self._rng
        of_side = self._shape.sides and self._habit != "batch"
        side = rng.choice(["left", "right"]) if of_side else None
        known = [self._newest[side]] if side in self._newest else list(self._newest.values())
        seen = [time for time in known if time is not None]
        if len(seen) < len(known):
            return
        time = min(seen) - self._lag - 1
        if self._habit == "random":
            time = self._astray(time)
        self.elements.append({"watermark": time} | ({} if side is None else {"side": side}))

    def _astray(self, time: int) -> int:
        rng, grid = self._rng, self._shape.grid_ms
        dice = rng.random()
        if dice < 0.3:  # around the bound of a window
            return time // grid * grid + rng.randint(-2, 1)
        if dice < 0.38:  # may not advance
            return time - rng.randint(0, 5000)
        return time + rng.randint(0, 20_000) if dice < 0.41 else time  # makes what comes late
