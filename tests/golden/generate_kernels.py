"""Write the seeded scenarios (inputs only, no results) behind the ``kernels_*`` golden families.

usage: python -m tests.golden.generate_kernels [--seed 11] [--count kernels_sliding=200]... DIR

They ask what a columnar kernel for aligned windows must get right: event-time tumbling and sliding
windows, the default trigger, no evictor, no allowed lateness, and an aggregate function. Scenario i
of a family depends on (seed, family, i) alone. Values are multiples of 1/4, so sums are exact in
any order. A ``bounded_*`` family holds scenarios of its base family with every watermark removed.
Results come from Apache Flink (`tests/oracle`).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle.scenarios import write

Element = dict[str, Any]
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
EPOCH, HOUR = 1_700_000_000_000, 3_600_000
SMALL = 14  # most elements of a scenario of kernels_small
HAND = Path(__file__).with_name("kernels_by_hand.txt")
FUNCTIONS = ("sum", "count", "min", "max", "avg")
HABITS = ("every", "bursts", "jumps", "repeated", "back", "bounds", "none")
SHAPES = (
    *("divides", "rest_1", "rest_slide-1", "rest", "gap", "rest"),
    *("rest_1", "divides", "gap", "rest_slide-1", "equal"),
)
SIZES = (1, 7, 10, 1000, 7001, 10_000, 60_000, 24 * HOUR)
SLIDES = (2, 3, 5, 7, 10, 60, 333, 1000, 1667, 2334, 3500, 7001, HOUR)
COUNTS = {
    "kernels_tumbling": 70,
    "kernels_sliding": 110,
    "kernels_small": 50,
    "bounded_kernels_tumbling": 42,
    "bounded_kernels_sliding": 66,
}


@dataclass(frozen=True)
class Windows:
    """An aligned assigner; ``slide`` is None for tumbling windows."""

    size: int
    slide: int | None = None
    offset: int = 0

    @property
    def step(self) -> int:
        """Distance between two window starts."""
        return self.slide or self.size

    def start(self, ts: int) -> int:
        """The last window start at or before ts."""
        return ts - (ts - self.offset) % self.step

    def to_json(self) -> dict[str, Any]:
        """The assigner as a scenario names it."""
        kind = "sliding" if self.slide else "tumbling"
        slide = {"slide_ms": self.slide} if self.slide else {}
        sizes = {"type": f"{kind}_event_time", "size_ms": self.size}
        return sizes | slide | {"offset_ms": self.offset}


def hand_made(line: str) -> tuple[str, Windows, str, str, list[Element]]:
    """One case of HAND: name, windows, function, what it asks, input."""
    name, sizes, function, what, text = (part.strip() for part in line.split("|"))
    limits = {"~min": LONG_MIN, "~max": LONG_MAX}
    elements: list[Element] = []
    for word in text.split():
        if word[0] == "~":
            elements.append({"watermark": limits.get(word) or int(word[1:])})
        else:
            key, ts, value = word.replace("=", "@").split("@")
            elements.append(record(key, int(ts), float(value)))
    size, slide, offset = sizes.split()
    windows = Windows(int(size), None if slide == "-" else int(slide), int(offset))
    return name, windows, function, what, elements


def record(key: str, ts: int, value: float) -> Element:
    """A record; whole values are written without a fraction."""
    return {"key": key, "ts": ts, "value": int(value) if value == int(value) else value}


def make_windows(rng: random.Random, family: str, i: int) -> tuple[str, Windows]:
    """Assigner i of a family, with the name of its shape."""
    if family == "kernels_tumbling" or (family == "kernels_small" and i % 4 == 0):
        size = SIZES[(i if family == "kernels_tumbling" else i // 4) % len(SIZES)]
        return "tumbling", Windows(size, None, make_offset(rng, size))
    shape = SHAPES[i % len(SHAPES)]
    slide, times = rng.choice(SLIDES), rng.choice((1, 1, 2, 2, 3, 5))
    if shape == "gap":
        size = rng.choice(SIZES[:-1])
        slide = size + rng.choice((1, 2, max(1, size - 1), size, 3 * size, 10 * size))
    elif shape == "equal":
        size = slide = rng.choice(SIZES)
    else:
        rest = {"divides": 0, "rest_1": 1, "rest_slide-1": slide - 1}
        size = (times + (shape == "divides")) * slide + rest.get(shape, rng.randint(1, slide - 1))
        if shape == "rest" and rng.random() < 0.25:
            size, slide = 7001, rng.choice((1000, 1667, 2000, 2334, 3500, 3501, 5000))
    return f"slide {shape}", Windows(size, slide, make_offset(rng, slide))


def make_offset(rng: random.Random, limit: int) -> int:
    """0, or any legal offset of either sign; the extremes more often."""
    return rng.choice((0, 0, 1 - limit, limit - 1, *(rng.randint(1 - limit, limit - 1),) * 3))


def make_input(rng: random.Random, win: Windows, habit: str, *, small: bool) -> list[Element]:
    """Records and watermarks around the bounds of the windows, late rows and gap rows included."""
    rows = rng.randint(4, 10) if small else rng.randint(20, 150)
    keys = rng.randint(1, 3) if small else rng.choice((1, 1, 2, 3, 4, 5, 7, 9, 12))
    most = max(3, min(30, 110 // keys - win.size // win.step))
    span = win.step * (rng.randint(2, 4) if small else rng.randint(3, most))
    base = rng.choice((0, -span // 2, -span // 2, -rng.randint(2 * span, 99 * span), EPOCH))
    disorder = rng.choice((0, win.step // 2, win.size, 2 * win.size))
    late_share, lag = rng.choice((0.03, 0.1, 0.25)), rng.choice((0, 0, 1, win.step // 2, win.size))
    elements: list[Element] = []
    seen: list[int] = []
    mark: int | None = None
    if habit != "none" and rng.random() < 0.2:  # a watermark before all data
        mark = base + rng.randint(-win.size, win.size)
        elements.append({"watermark": mark})
    for i in range(rows):
        now = base + span * i // rows - rng.randint(0, disorder)
        if mark is not None and rng.random() < late_share:
            now = mark - rng.choice((-1, 0, 0, 1, win.step, win.size, rng.randint(0, 3 * win.size)))
        seen.append(make_time(rng, win, now, seen))
        elements.append(record(f"k{rng.randrange(keys)}", seen[-1], rng.randint(-400, 400) / 4))
        for made in make_watermarks(rng, win, habit, max(seen) - lag - 1, mark):
            mark = made if mark is None else max(made, mark)
            elements.append({"watermark": made})
    return elements[:SMALL] if small else elements


def make_time(rng: random.Random, win: Windows, now: int, seen: list[int]) -> int:
    """A timestamp at or near now: as it is, tied, at a bound of a window, or in a gap."""
    dice, start = rng.random(), win.start(now)
    if dice < 0.12 and seen:
        return rng.choice(seen[-6:])
    if dice < 0.32:
        return start + rng.choice((0, win.size)) + rng.randint(-1, 1)
    if dice < 0.52 and win.step > win.size:
        gap = win.step - win.size
        return start + win.size + rng.choice((0, gap - 1, rng.randrange(gap)))
    return now


def make_watermarks(
    rng: random.Random, win: Windows, habit: str, due: int, mark: int | None
) -> list[int]:
    """The watermarks that follow a record; due is what an ordinary source would send."""
    last = due if mark is None else mark
    if habit == "every":
        return [due]
    if habit == "none" or rng.random() > 0.2:
        return []
    if habit == "bursts":
        return sorted(due - rng.randint(0, win.size + win.step) for _ in range(rng.randint(2, 4)))
    if habit == "jumps":
        return [due + (rng.randint(0, 2 * (win.size + win.step)) if rng.random() < 0.3 else 0)]
    if habit == "repeated":
        return [last] if rng.random() < 0.5 else [due, due]
    if habit == "back":
        return [last - rng.randint(0, 3 * win.size) if rng.random() < 0.6 else due]
    end = win.start(due) + win.size  # "bounds": just before, at and just after the time that fires
    return [end - 1 + rng.choice((-1, 0, 0, 1, -win.step))]


def scenario(seed: int, family: str, i: int) -> dict[str, Any]:
    """Scenario i of a family; of a bounded family, the twin of its base family's scenario i."""
    base = family.removeprefix("bounded_")
    rng = random.Random(f"{seed}/{base}/{i}")  # a string seed: no part in Python's hash seed
    shape, win = make_windows(rng, base, i)
    function, habit = FUNCTIONS[i % len(FUNCTIONS)], HABITS[i % len(HABITS)]
    elements = make_input(rng, win, habit, small=base == "kernels_small")
    what = f"{shape}; watermarks: {habit}; seed {seed}, number {i}"
    return assemble(f"{i:04d}_{function}", family, what, win, function, elements)


def assemble(
    name: str, family: str, what: str, win: Windows, function: str, elements: list[Element]
) -> dict[str, Any]:
    """A scenario in the format of FORMAT.md, without results."""
    if family.startswith("bounded_"):
        elements = [e for e in elements if "watermark" not in e]
    operator = {
        "kind": "window",
        "assigner": win.to_json(),
        "trigger": None,
        "evictor": None,
        "allowed_lateness_ms": 0,
        "late_side_output": True,
        "function": {"type": function},
    }
    return {
        "name": name,
        "family": family,
        "description": what,
        "operator": operator,
        "input": elements,
    }


def scenarios(seed: int, counts: dict[str, int]) -> Iterator[dict[str, Any]]:
    """All scenarios; those made by hand go into every family that fits them."""
    lines = HAND.read_text(encoding="utf-8").splitlines()
    by_hand = [hand_made(line) for line in lines if line and line[0] != "#"]
    for family, count in counts.items():
        for i in range(count):
            yield scenario(seed, family, i)
        for name, win, function, what, elements in by_hand:
            kind = "sliding" if win.slide else "tumbling"
            small = family == "kernels_small" and len(elements) <= SMALL
            if small or family.endswith(f"kernels_{kind}"):
                what_ = f"by hand: {what}"
                yield assemble(f"hand_{name}", family, what_, win, function, elements)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--count", action="append", default=[], metavar="FAMILY=N")
    parser.add_argument("dir", type=Path)
    args = parser.parse_args()
    counts = {f: int(n) for f, _, n in (c.partition("=") for c in args.count)} or COUNTS
    if not counts.keys() <= COUNTS.keys():
        parser.error(f"families: {', '.join(COUNTS)}")
    write(scenarios(args.seed, counts), args.dir)


if __name__ == "__main__":
    main()
