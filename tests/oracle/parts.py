"""Random parts of scenarios' operators: assigners, triggers, evictors, functions."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from gpu_windows.rules import LONG_MAX
from tests.oracle.streams import number

Part = dict[str, Any]
Maker = Callable[[random.Random], Part]

AGGREGATES = (
    *("sum", "count", "min", "max", "avg", "concat_seq"),
    *("reduce_first", "reduce_last", "reduce_max_by", "reduce_sum"),
)


# ---- assigners


def tumbling(rng: random.Random, domain: str = "event") -> Part:
    size = rng.choice([1000, 3000, 5000, 7001, 10_000, 20_000])
    return {"type": f"tumbling_{domain}_time", "size_ms": size, "offset_ms": offset(rng, size)}


def sliding(rng: random.Random, domain: str = "event") -> Part:
    size = rng.choice([3000, 5000, 7001, 10_000])
    part, whole = rng.randint(size // 6, size), size
    slide = rng.choice([size // 2, size // 3, size // 5, whole, 2 * size, part])
    sizes = {"size_ms": size, "slide_ms": slide, "offset_ms": offset(rng, slide)}
    return {"type": f"sliding_{domain}_time", **sizes}


def offset(rng: random.Random, limit: int) -> int:
    return rng.choice([0, 0, rng.randint(-limit + 1, limit - 1)])


def session(rng: random.Random, domain: str = "event") -> Part:
    return {"type": f"session_{domain}_time", "gap_ms": rng.choice([1, 500, 1500, 4000])}


def dynamic_session(rng: random.Random, domain: str = "event") -> Part:
    gap = {"gap": "floor(value * gap_factor_ms)", "gap_factor_ms": rng.choice([10, 40, 2.5])}
    return {"type": f"dynamic_session_{domain}_time", **gap}


def grid_of(assigner: Part) -> int:
    """Return where windows begin and end."""
    names = ("slide_ms", "size_ms", "gap_ms")
    return next((int(assigner[name]) for name in names if name in assigner), 1000)


# ---- triggers


def event_time(rng: random.Random) -> Part:
    del rng
    return {"type": "event_time"}


def processing_time(rng: random.Random) -> Part:
    del rng
    return {"type": "processing_time"}


def count(rng: random.Random) -> Part:
    return {"type": "count", "n": rng.randint(1, 6)}


def continuous(rng: random.Random, domain: str = "event") -> Part:
    interval = rng.choice([1000, 2500, 3000, 4000])
    return {"type": f"continuous_{domain}_time", "interval_ms": interval}


def continuous_processing(rng: random.Random) -> Part:
    return continuous(rng, "processing")


def delta(rng: random.Random) -> Part:
    kind = rng.choice(["old_minus_new", "new_minus_old", "abs_diff"])
    return {"type": "delta", "threshold": number(rng.randint(0, 160) / 4), "delta": kind}


def timeout(rng: random.Random) -> Part:
    inner = count(rng) if rng.random() < 0.5 else {"type": "purging", "inner": count(rng)}
    return {
        "type": "processing_timeout",
        "inner": inner,
        "timeout_ms": rng.choice([500, 2000, 4000]),
        "reset_timer_on_new_record": rng.random() < 0.5,
        "should_clear_on_timeout": rng.random() < 0.5,
    }


def trigger(rng: random.Random, *choices: Maker, default: float = 0.4) -> Part | None:
    """Return None (the assigner's own) with that probability, else one; of three one purges."""
    if rng.random() < default:
        return None
    made = rng.choice(choices)(rng)
    purges = rng.random() < 0.33 and made["type"] != "processing_timeout"
    return {"type": "purging", "inner": made} if purges else made


def needs_clock(trigger: Part | None) -> bool:
    """Whether a trigger, or one inside it, looks at the clock."""
    return "processing_t" in json.dumps(trigger)


# ---- the rest


def evictor(rng: random.Random, share: float = 0.35) -> Part | None:
    """Return one with that probability."""
    if rng.random() >= share:
        return None
    kinds: list[Part] = [
        {"type": "count", "n": rng.randint(0, 5)},
        {"type": "time", "size_ms": rng.choice([0, 500, 2000, 5000])},
        delta(rng),
    ]
    return {**rng.choice(kinds), "evict_after": rng.random() < 0.5}


def lateness(rng: random.Random, assigner: Part) -> int:
    """Return an allowed lateness; the greatest overflows in Flink's check of merged sessions."""
    longest = 60_000 if "session" in assigner["type"] else LONG_MAX
    return rng.choice([0, 0, 0, 1, 2000, 15_000, rng.randint(1, 9999), longest])


def function(rng: random.Random, *more: str) -> Part:
    return {"type": rng.choice([*["collect"] * 6, *AGGREGATES, *more, *more])}
