"""Draws what arrives: rows and marks in their order, and what must not matter, cuts and crashes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from gpu_windows.functions.two_inputs import SIDE
from gpu_windows.rules import LONG_MAX, LONG_MIN
from tests.planning import queries
from tests.simulation.case import Crash, Cut, Element, Mark, Row

#: The columns of rows, of either side of a join.
SCHEMA = pa.schema(
    [
        *queries.SCHEMA,
        pa.field("seq", pa.int64()),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("gap", pa.int64()),
    ]
)
_KEYS = ("a", "b", "", "c", "d", None)
_ODD = (float("nan"), float("inf"), float("-inf"), -0.0)
#: Gaps with which a row is given back, each in the place of one that is drawn. None is so long that
#: a session before 1970 would last: triggers that go on by the clock would fire in it without end.
_BAD_GAPS = {28: None, 29: 0, 30: -7}
#: Operations after which a micro-batch dies at the latest: half of them have less than 40.
_CRASHES = (40, 40, 150)
_ENDS = (LONG_MIN, LONG_MIN + 1, LONG_MIN + 40, LONG_MAX - 40, LONG_MAX - 1, LONG_MAX)


def script(rng: Random, step: int, most: int, *, in_processing_time: bool) -> tuple[Element, ...]:
    """Draw a script of up to ``most`` rows, and times of which there is one in ``step`` ticks.

    ``in_processing_time``: whether that time is looked at, which differs between micro-batches.
    """
    moves, cuts = rng.choice([0.1, 0.15, 0.3]), rng.choice([0, 0.08, 0.2])
    crashes = rng.random() / 6
    rows, times = _Rows(rng), _Times(rng, step)
    elements: list[Element] = []
    for _ in range(rng.randint(0, most)):
        elements.append(rows.next(times.watermark))
        if rng.random() < crashes:
            elements.append(Crash(rng.randint(0, rng.choice(_CRASHES))))
        moved = rng.random() < moves
        if moved:
            elements.append(times.mark(moves_on=True))
        if rng.random() < (0.3 if moved else cuts):
            elements.append(times.mark(moves_on=False) if in_processing_time else Cut())
    return tuple(elements)


class _Times:
    """Processing time, which every micro-batch moves, and the watermark."""

    def __init__(self, rng: Random, step: int) -> None:
        self._rng, self._step = rng, step
        self._now, self.watermark = 1, -80

    def mark(self, *, moves_on: bool) -> Mark:
        """Draw the next times."""
        rng = self._rng
        self._now += 1
        if moves_on:
            self._now += rng.choice([0, rng.randint(0, 20)])
            self.watermark += rng.choice([0, 1, rng.randint(0, 40), rng.randint(0, 40)])
        return Mark(self._now * self._step, self.watermark // self._step * self._step - 1)


class _Rows:
    """Rows of a few keys, one of them hot, about and before and after where the watermark is."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._keys = rng.sample(_KEYS, rng.randint(1, len(_KEYS)))
        self._hot, self._step = rng.random() * 0.8, rng.choice([1, 1, 5])
        self._seq = 0

    def next(self, watermark: int) -> Row:
        rng = self._rng
        hot = rng.random() < self._hot
        values = {
            SIDE: rng.random() < 0.5,
            "key": self._keys[0] if hot else rng.choice(self._keys),
            "part": None if rng.random() < 0.1 else 0 if hot else rng.randint(0, 1),
            "ts": self._time(watermark),
            **dict(_values(rng)),
        }
        self._seq += 1
        return Row(self._seq - 1, rng.random(), values)

    def _time(self, watermark: int) -> int | None:
        rng, kind = self._rng, self._rng.random()
        if kind < 0.03:
            return None
        if kind < 0.04:
            return rng.choice(_ENDS)
        near = watermark + rng.randint(-25, 45)
        return near // self._step * self._step


def _values(rng: Random) -> Iterator[tuple[str, Any]]:
    """Yield values, some null; sums of floats do not depend on their order."""
    some = {
        "i": rng.randint(-(2**40), 2**40) if rng.random() < 0.2 else rng.randint(-3, 9),
        "small": rng.randint(-(2**15), 2**15 - 1),
        "f": rng.choice(_ODD) if rng.random() < 0.05 else rng.randint(-40, 40) / 4,
        "d": Decimal(rng.randint(-(10**9), 10**9)) / 1000,
        "b": rng.random() < 0.5,
        "day": date(2020, 1, 1) + timedelta(rng.randint(-30_000, 30_000)),
        "text": rng.choice(["x", "y", "zz", ""]),
    }
    for name, value in some.items():
        yield name, None if rng.random() < 0.1 else value
    yield "value", rng.randint(1, 40) / 4
    gap = rng.randint(1, 30)
    yield "gap", _BAD_GAPS.get(gap, gap)
