"""Families of random scenarios of process functions."""

from __future__ import annotations

import random

from tests.oracle.parts import Part
from tests.oracle.streams import Shape
from tests.oracle.words import function

_TIMERS = ("inactivity", "count_with_timeout", "timer_per_element", "align_and_chain")
_OF_THE_CLOCK = ("state_and_timer", "both_timers", "timers_in_timers", "reducing_and_map", "ttl")
_PARAMS = (1, 500, 1000, 2500)
_DOMAINS = ("event_time", "processing_time")
#: Functions that set timers of processing time at a ``ts``, which must be near the clock.
_ABSOLUTE = "both_timers"

Process = tuple[Part, Shape]


def _size(rng: random.Random) -> int:
    return rng.choice([20, 60, 120, 200])


def _asked(
    rng: random.Random, kind: str, name: str, domain: str, *, restarts: bool = False
) -> Process:
    made = function(name, rng.choice(_PARAMS), domain)
    shape = Shape(
        _size(rng),
        rng.choice([20, 100, 300]),
        500,
        sides=kind != "process",
        clock=domain == "processing_time" or name in ("both_timers", "ttl"),
        origin=0 if name == _ABSOLUTE else None,
        restarts=restarts,
    )
    return {"kind": kind, "function": made}, shape


def process(rng: random.Random) -> Process:
    """Return a function of event time, with one input."""
    names = (*_TIMERS, "delete_on_negative", "watermark_probe", "state_and_timer")
    name = rng.choice([*names, "timers_in_timers", "reducing_and_map"])
    return _asked(rng, "process", name, "event_time")


def co_process(rng: random.Random) -> Process:
    """Return a function of event time, with two inputs."""
    return _asked(
        rng, "co_process", rng.choice(["threshold_rules", "pair_or_timeout"]), "event_time"
    )


def process_clock(rng: random.Random) -> Process:
    """Return a function whose timers are set by the clock."""
    name = rng.choice([*_TIMERS, "delete_on_negative", *_OF_THE_CLOCK, *_OF_THE_CLOCK])
    return _asked(rng, "process", name, "processing_time")


def side_outputs(rng: random.Random) -> Process:
    """Return a function with side outputs, with one input."""
    return _asked(rng, "process", "side_outputs", rng.choice(_DOMAINS))


def co_process_clock(rng: random.Random) -> Process:
    """Return a function of two inputs by the clock, or with side outputs."""
    name = rng.choice(["threshold_rules", "pair_or_timeout", "co_side_outputs", "co_side_outputs"])
    domain = rng.choice(_DOMAINS) if name == "co_side_outputs" else "processing_time"
    return _asked(rng, "co_process", name, domain)


def broadcast_process(rng: random.Random) -> Process:
    """Return a function of rows and of what is broadcast."""
    name = rng.choice(["rules", "rules", "rules_side_outputs", "broadcast_probe"])
    return _asked(rng, "broadcast_process", name, rng.choice(_DOMAINS))


def process_restart(rng: random.Random) -> Process:
    """Return a function that is stopped and restored between records."""
    name = rng.choice([*_TIMERS, *_OF_THE_CLOCK, *_OF_THE_CLOCK, "side_outputs", "watermark_probe"])
    kind, names = rng.choice(
        [
            ("process", (name,)),
            ("process", (name,)),
            ("co_process", ("threshold_rules", "pair_or_timeout", "co_side_outputs")),
        ]
    )
    return _asked(rng, kind, rng.choice(names), rng.choice(_DOMAINS), restarts=True)
